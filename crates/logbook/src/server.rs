//! `logbook serve`: one thread writes, one for each caller freezes, thaws and tells.

use std::{
    fs::{File, TryLockError},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use crate::{
    book::{Book, PARTS},
    error::{Doing, Result},
    gate::Gate,
    record,
    status::Status,
};

/// How long a caller may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// More than any request.
const LONGEST: u64 = 100;

/// What may be chosen.
pub(crate) struct Options {
    /// Records a second.
    pub(crate) pace: u32,
    pub(crate) thaw_after: Option<Duration>,
}

/// A book that is open, and answers; nothing is written yet.
pub(crate) struct Server {
    book: Book,
    gate: Arc<Gate>,
    pause: Duration,
    /// Held while it lives: two writers would spoil the book.
    _lock: File,
}

/// Where the server of this directory listens.
pub(crate) fn socket(dir: &Path) -> PathBuf {
    dir.join("socket")
}

impl Server {
    pub(crate) fn start(dir: &Path, options: &Options) -> Result<Self> {
        std::fs::create_dir_all(dir).doing(|| format!("make `{}`", dir.display()))?;
        let lock = lock(dir)?;
        let (book, dropped) = Book::open(dir)?;
        dropped.iter().for_each(|problem| println!("dropped: {problem}"));
        let gate = Arc::new(Gate::of(dir, book.records())?);
        let listener = listen(dir).doing(|| format!("listen on `{}`", socket(dir).display()))?;
        let answering = Arc::clone(&gate);
        thread::spawn(move || answer_all(&listener, &answering));
        if let Some(time) = options.thaw_after {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.thaw_after(time).unwrap_or_else(|error| println!("still frozen: {error}")));
        }
        println!("opened: {}", gate.status());
        println!("serving");
        let pause = Duration::from_secs(1) / options.pace / PARTS as u32;
        Ok(Self { book, gate, pause, _lock: lock })
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> Status {
        self.gate.status()
    }

    /// Writes one record, as soon as it may. Its parts take all the time that the pace leaves.
    pub(crate) fn write_one(&mut self) -> Result<()> {
        let text = record::text(self.book.records() + 1);
        self.gate.enter();
        // Failed, it never leaves: nobody who freezes it is told that the book is whole.
        self.book.append(&text, || self.gate.pause(self.pause))?;
        self.gate.leave(self.book.records());
        Ok(())
    }
}

fn lock(dir: &Path) -> Result<File> {
    let path = dir.join("lock");
    let file = File::create(&path).doing(|| format!("make `{}`", path.display()))?;
    let locked = file.try_lock().map_err(|error| match error {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => io::Error::other("another server writes there"),
    });
    locked.doing(|| format!("lock `{}`", path.display()))?;
    Ok(file)
}

/// What an earlier server left there goes: it is dead, by the lock.
fn listen(dir: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket(dir)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    UnixListener::bind(socket(dir))
}

fn answer_all(listener: &UnixListener, gate: &Arc<Gate>) {
    for caller in listener.incoming().flatten() {
        let gate = Arc::clone(gate);
        thread::spawn(move || {
            // A caller that has gone hears nothing more; what it asked for is done.
            let _ = answer(&caller, &gate);
        });
    }
}

/// One line is asked, one is answered.
fn answer(caller: &UnixStream, gate: &Gate) -> io::Result<()> {
    caller.set_read_timeout(Some(PATIENCE))?;
    caller.set_write_timeout(Some(PATIENCE))?;
    let mut request = String::new();
    BufReader::new(caller.take(LONGEST)).read_line(&mut request)?;
    let outcome = match request.trim_end() {
        "freeze" => said("frozen", gate.freeze()),
        "thaw" => said("thawed", gate.thaw()),
        "status" => Ok(gate.status()),
        "hold" => return hold(caller, gate),
        other => Err(format!("unknown request `{other}`")),
    };
    tell(caller, outcome)
}

/// Frozen as long as the caller is there.
fn hold(mut caller: &UnixStream, gate: &Gate) -> io::Result<()> {
    let told = tell(caller, said("held", gate.hold()));
    let gone = told.and_then(|()| caller.set_read_timeout(None)).and_then(|()| caller.read(&mut [0]));
    println!("released: {}", gate.release());
    gone.map(drop)
}

/// The log of the container says when it happened, by the container's own clock.
fn said(what: &str, outcome: Result<Status>) -> Result<Status, String> {
    match outcome {
        Ok(status) => {
            println!("{what}: {status}");
            Ok(status)
        }
        Err(error) => {
            println!("not {what}: {error}");
            Err(error.to_string())
        }
    }
}

fn tell(mut caller: &UnixStream, outcome: Result<Status, String>) -> io::Result<()> {
    match outcome {
        Ok(status) => writeln!(caller, "ok {}", status.line()),
        Err(error) => writeln!(caller, "error {error}"),
    }
}
