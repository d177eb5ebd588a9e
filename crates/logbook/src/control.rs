//! What is asked of a server: one line, over its socket.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use crate::{
    error::{Doing, Result},
    server::socket,
    status::Status,
};

/// How long an answer may take: a sync on a busy disk.
const PATIENCE: Duration = Duration::from_secs(60);

/// More than any answer.
const LONGEST: u64 = 1_000;

/// Asks for `freeze`, `thaw` or `status`.
pub(crate) fn ask(dir: &Path, request: &str) -> Result<Status> {
    open(dir, request).map(|(_, status)| status)
}

/// Holds it frozen, tells `ready`, and lets go on the line `RELEASE` or at the end of the input.
pub(crate) fn hold(dir: &Path, input: impl Read, ready: impl FnOnce()) -> Result<()> {
    let (session, _) = open(dir, "hold")?;
    ready();
    let mut lines = BufReader::new(input).take(LONGEST).lines();
    let released = lines.find(|line| line.as_ref().map_or(true, |line| line.trim_end() == "RELEASE"));
    drop(session);
    released.transpose().map(drop).doing(|| "wait for the line `RELEASE`".to_owned())
}

fn open(dir: &Path, request: &str) -> Result<(UnixStream, Status)> {
    let path = socket(dir);
    let stream = UnixStream::connect(&path).doing(|| format!("reach the server at `{}`", path.display()))?;
    let status = exchange(&stream, request).doing(|| format!("{request} the book in `{}`", dir.display()))?;
    Ok((stream, status))
}

fn exchange(mut stream: &UnixStream, request: &str) -> io::Result<Status> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    writeln!(stream, "{request}")?;
    let mut answer = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut answer)?;
    let answer = answer.trim_end();
    match answer.split_once(' ') {
        Some(("ok", status)) => Status::parse(status),
        Some(("error", error)) => return Err(io::Error::other(error.to_owned())),
        _ => None,
    }
    .ok_or_else(|| io::Error::other(format!("the server ended, or answers in another language: `{answer}`")))
}

#[cfg(test)]
mod tests;
