//! A server and its callers.

use std::{
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use super::*;
use crate::{
    scratch::Scratch,
    server::{Options, Server},
    verify::verify,
};

const DEADLINE: Duration = Duration::from_secs(600);

const FAST: Options = Options { pace: 500, thaw_after: None };

/// A server that writes until it is dropped.
struct Running {
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<Server>>,
}

impl Running {
    fn start(dir: &Path, options: &Options) -> Self {
        let mut server = Server::start(dir, options).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let writer = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                server.write_one().unwrap();
            }
            server
        });
        Self { stop, writer: Some(writer) }
    }
}

impl Drop for Running {
    /// Only a server that is not frozen comes to its end.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(writer) = self.writer.take().filter(|_| !thread::panicking()) {
            writer.join().unwrap();
        }
    }
}

fn wait_until(dir: &Path, what: &str, condition: impl Fn(Status) -> bool) -> Status {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let status = ask(dir, "status").unwrap();
        if condition(status) {
            return status;
        }
        assert!(Instant::now() < deadline, "{what}: {status}");
        thread::yield_now();
    }
}

#[test]
fn a_frozen_book_is_whole_and_stays_as_it_is_until_it_is_thawed() {
    let dir = Scratch::new("freeze");
    let _running = Running::start(dir.path(), &FAST);
    for round in 1..=5 {
        wait_until(dir.path(), "nothing is written", |status| status.records >= round * 10);
        let frozen = ask(dir.path(), "freeze").unwrap();
        assert!(frozen.is_frozen());
        let report = verify(dir.path()).unwrap();
        assert_eq!((report.records, report.is_torn()), (frozen.records, false), "{report}");
        assert_eq!(ask(dir.path(), "freeze").unwrap(), frozen, "frozen twice");
        assert_eq!(verify(dir.path()).unwrap(), report);
        assert!(!ask(dir.path(), "thaw").unwrap().is_frozen());
        assert!(!ask(dir.path(), "thaw").unwrap().is_frozen());
    }
}

#[test]
fn a_new_server_in_the_same_directory_is_frozen_too() {
    let dir = Scratch::new("restart");
    let mut server = Server::start(dir.path(), &FAST).unwrap();
    server.write_one().unwrap();
    let frozen = ask(dir.path(), "freeze").unwrap();
    drop(server);
    let running = Running::start(dir.path(), &FAST);
    assert_eq!(ask(dir.path(), "status").unwrap(), frozen);
    ask(dir.path(), "thaw").unwrap();
    wait_until(dir.path(), "it does not go on", |status| status.records > 1);
    drop(running);
    assert!(!Server::start(dir.path(), &FAST).unwrap().status().is_frozen());
}

#[test]
fn a_session_holds_it_frozen_as_long_as_it_lasts() {
    let dir = Scratch::new("hold");
    let _running = Running::start(dir.path(), &FAST);
    let (input, mut other_end) = UnixStream::pair().unwrap();
    let at_ready = std::cell::Cell::new(None);
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let holding = scope.spawn(|| hold(dir.path(), input, move || ready.send(()).unwrap()));
        is_ready.recv_timeout(DEADLINE).unwrap();
        at_ready.set(Some(ask(dir.path(), "status").unwrap()));
        ask(dir.path(), "thaw").unwrap();
        let report = verify(dir.path()).unwrap();
        assert_eq!((report.is_torn(), Some(report.records)), (false, at_ready.get().map(|status| status.records)));
        writeln!(other_end, "not yet\nRELEASE").unwrap();
        holding.join().unwrap().unwrap();
    });
    wait_until(dir.path(), "it is held still", |status| !status.is_frozen());
    let (session, _) = open(dir.path(), "hold").unwrap();
    assert_eq!(ask(dir.path(), "status").unwrap().holders, 1);
    drop(session);
    wait_until(dir.path(), "a session that broke off holds it", |status| status.holders == 0);
}

#[test]
fn it_thaws_itself_only_when_it_was_told_to() {
    let dir = Scratch::new("itself");
    let thaw_after = Some(Duration::from_millis(200));
    let _running = Running::start(dir.path(), &Options { thaw_after, ..FAST });
    let begun = Instant::now();
    ask(dir.path(), "freeze").unwrap();
    wait_until(dir.path(), "it does not thaw itself", |status| !status.is_frozen());
    assert!(begun.elapsed() >= Duration::from_millis(199), "{:?}", begun.elapsed());
}

#[test]
fn two_servers_never_write_in_one_directory() {
    let dir = Scratch::new("twice");
    let _server = Server::start(dir.path(), &FAST).unwrap();
    let refusal = Server::start(dir.path(), &FAST).err().unwrap().to_string();
    assert!(refusal.contains("another server writes there"), "{refusal}");
}

#[test]
fn without_a_server_nothing_is_frozen() {
    let dir = Scratch::new("nobody");
    assert!(ask(dir.path(), "freeze").unwrap_err().to_string().starts_with("failed to reach the server at `"));
    let _server = Server::start(dir.path(), &FAST).unwrap();
    assert!(ask(dir.path(), "sink").unwrap_err().to_string().ends_with("unknown request `sink`"));
}
