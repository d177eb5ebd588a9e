//! `boathook controller` without an API server.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

const DEADLINE: Duration = Duration::from_secs(600);

#[test]
fn waiting_controller_ends_at_sigterm() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Each connection is closed without an answer.
    thread::spawn(move || listener.incoming().for_each(drop));
    let kubeconfig = std::env::temp_dir().join(format!("boathook-no-server-{}", std::process::id()));
    let text = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}], users: [{{name: a, user: {{}}}}]}}"
    );
    fs::write(&kubeconfig, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_boathook"));
    command.args(["controller", "--kubeconfig"]).arg(&kubeconfig).stderr(Stdio::piped());
    // A failed test leaves no process behind.
    command.arg("--child-of").arg(std::process::id().to_string());
    let mut process = command.spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(process.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with("warning: waiting for the API server; error: "), "{line}");
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || tell.send(process.wait().unwrap().code()));
    assert_eq!(ended.recv_timeout(DEADLINE), Ok(Some(0)));
    fs::remove_file(kubeconfig).unwrap();
}
