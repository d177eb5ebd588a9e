//! `boathook agent` as a process, where its API server and its streams fail.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// An agent that does not ask again in this time has stopped asking.
const DEADLINE: Duration = Duration::from_secs(600);

/// Answers every request with 403, and reports the first line of each.
fn refusing_api_server(kubeconfig: &Path) -> Receiver<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: c, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n"
    );
    fs::write(kubeconfig, text).unwrap();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = sender.send(refuse(stream.unwrap()));
        }
    });
    requests
}

fn refuse(mut stream: TcpStream) -> String {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut line) = (String::new(), String::new());
    lines.read_line(&mut first).unwrap();
    while lines.read_line(&mut line).unwrap() > 2 {
        line.clear();
    }
    let body =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}"#;
    let head = "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nconnection: close";
    let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    first
}

#[test]
fn agent_with_a_closed_stderr_goes_on_and_ends_on_sigterm() {
    let dir = std::env::temp_dir().join(format!("boathook-test-agent-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let kubeconfig = dir.join("kubeconfig");
    let requests = refusing_api_server(&kubeconfig);
    let mut agent = Command::new(env!("CARGO_BIN_EXE_boathook"))
        .args(["agent", "--node", "node", "--kubeconfig"])
        .arg(&kubeconfig)
        .arg("--cri-socket")
        .arg(dir.join("cri.sock"))
        .arg("--state-dir")
        .arg(dir.join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((agent.stdout.take(), agent.stderr.take()));

    // Each refusal but the first comes after a line of the log.
    let mut lists = 0;
    while lists < 3 {
        match requests.recv_timeout(DEADLINE) {
            Ok(request) => lists += usize::from(request.contains("/podnotifications?")),
            Err(error) => {
                let _ = agent.kill();
                panic!("the agent lists no longer: {error}");
            }
        }
    }
    kill_process(Pid::from_child(&agent), Signal::TERM).unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(0));
    fs::remove_dir_all(dir).unwrap();
}
