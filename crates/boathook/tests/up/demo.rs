//! `boathook demo`, in a pipe: to its end, kept, interrupted, and killed; whatever happens, nothing of it runs on.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustix::process::{Pid, Signal, kill_process};

use super::looking::block_until;

/// A demo whose files are in a folder of its own.
struct Demo {
    dir: PathBuf,
    process: Child,
    lines: BufReader<ChildStdout>,
    said: String,
}

impl Demo {
    fn start(name: &str, options: &[&str]) -> Self {
        let dir = std::env::temp_dir().join(format!("boathook-demo-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_boathook"));
        command.arg("demo").args(options).env("TMPDIR", &dir).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { dir, process, lines, said: String::new() }
    }

    /// Reads until it has said a line that holds this, and returns that line.
    fn says(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "the demo never said `{words}`:\n{}", self.said);
            self.said += &line;
            if line.contains(words) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for its end, and returns its exit code and all that it said.
    fn ended(mut self) -> (Option<i32>, String) {
        self.lines.read_to_string(&mut self.said).unwrap();
        let code = self.process.wait().unwrap().code();
        let left: Vec<_> = fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        (code, std::mem::take(&mut self.said))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A process, told from a later one with its number by when it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    started: String,
}

fn process(stat: &Path) -> Option<Process> {
    let stat = fs::read_to_string(stat).ok()?;
    let (pid, rest) = stat.split_once(' ')?;
    // The name, in parentheses, may hold anything.
    let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split(' ').collect();
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
    })
}

/// All that a process has started, and what those have.
fn descendants(of: u32) -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<Process> = entries.filter_map(|entry| process(&entry.path().join("stat"))).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|process| process.parent == parent) {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// None of them runs, a moment after the demo has ended: their parents are gone, and they go with them.
fn assert_gone(processes: &[Process]) {
    let runs = |one: &Process| {
        process(&PathBuf::from(format!("/proc/{}/stat", one.pid))).is_some_and(|now| now.started == one.started)
    };
    for process in processes {
        block_until(&format!("{process:?} ends"), || !runs(process));
    }
}

#[test]
fn the_demo_verifies_everything_and_says_so_in_plain_lines() {
    let mut demo = Demo::start("whole", &[]);
    demo.says("A snapshot without hooks");
    let started = descendants(demo.process.id());
    let (code, said) = demo.ended();
    assert_eq!(code, Some(0), "{said}");
    for words in [
        "=> torn after ",
        "=> whole: all ",
        "=> it answered: ",
        "v2 is rolled out: v1 starts, pre of v2, v1 ends, mid of v2, v2 starts, post of v2",
        "a bad version vetoed",
        "after the kill",
        "everything was verified (",
    ] {
        assert!(said.contains(words), "`{words}` is missing:\n{said}");
    }
    let drawing =
        said.split_once("as `boathook timeline` draws it").and_then(|(_, rest)| rest.split_once("STEP ")).unwrap().0;
    for words in ["logbook/logbook ", "cut of data ", "frozen for ", "all at once from "] {
        assert!(drawing.contains(words), "`{words}` is missing:\n{drawing}");
    }
    assert!(!said.contains('\x1b'), "a pipe is no terminal: {said:?}");
    assert_gone(&started);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_is_kept_goes_on_until_it_is_interrupted() {
    let mut demo = Demo::start("kept", &["--keep"]);
    let line = demo.says("ready: export KUBECONFIG=");
    let kubeconfig = Kubeconfig::read_from(line.trim_end().split_once('=').unwrap().1).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(Client::try_from(config).unwrap());
    let phase = pods.get("logbook").await.unwrap().status.and_then(|status| status.phase);
    assert_eq!(phase.as_deref(), Some("Running"));
    let started = descendants(demo.process.id());
    demo.signal(Signal::INT);
    let (code, said) = demo.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("kubectl exec logbook -- ./boathook logbook status data"), "{said}");
    assert_gone(&started);
}

#[test]
fn an_interrupt_ends_all_of_it_wherever_it_comes() {
    for words in ["A small Kubernetes", "A snapshot with hooks", "kill -9"] {
        let mut demo = Demo::start("interrupted", &[]);
        demo.says(words);
        let started = descendants(demo.process.id());
        assert!(words == "A small Kubernetes" || started.len() > 1, "nothing runs: {started:?}");
        demo.signal(Signal::INT);
        let (code, said) = demo.ended();
        assert_eq!(code, Some(130), "{said}");
        assert_gone(&started);
    }
}

#[test]
fn a_killed_demo_takes_its_processes_along() {
    let mut demo = Demo::start("killed", &[]);
    demo.says("A snapshot without hooks");
    let started = descendants(demo.process.id());
    assert!(started.iter().any(|process| process.parent == demo.process.id()), "nothing runs: {started:?}");
    demo.signal(Signal::KILL);
    demo.process.wait().unwrap();
    assert_gone(&started);
}
