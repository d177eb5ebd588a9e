//! What a container writes, a file per instance, in the format of CRI: time, stream, `F`ull or `P`artial, text.
//!
//! A log is written by one `Log` and read from its file by any number of readers, also after a restart of the node.
//! It is cut into two files when it grows: the newest lines are always there, the oldest may be gone.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::{mpsc, watch};

use super::container::Output;

/// As a real kubelet's default (`containerLogMaxSize`).
const SIZE_OF_A_FILE: u64 = 10 << 20;
/// As containerd's default: a longer line is written in parts.
const LONGEST_LINE: usize = 16 << 10;

/// What of a log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    pub follow: bool,
    pub timestamps: bool,
    pub since: Option<Timestamp>,
    pub tail: Option<usize>,
    pub limit_bytes: Option<usize>,
}

/// A log that is being written.
pub struct Log {
    path: PathBuf,
    file: Mutex<(File, u64)>,
    progress: watch::Sender<Progress>,
    /// Those who look on: what they are too slow for they miss.
    attached: Mutex<Vec<(mpsc::Sender<Bytes>, mpsc::Sender<Bytes>)>>,
}

/// Changes with every write, so that followers look again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    writes: u64,
    files: u64,
    complete: bool,
}

impl Log {
    pub fn create(path: &Path) -> io::Result<Arc<Log>> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let file = Mutex::new((File::create(path)?, 0));
        Ok(Arc::new(Log {
            path: path.to_owned(),
            file,
            progress: watch::Sender::new(Progress::default()),
            attached: Mutex::default(),
        }))
    }

    /// Writes what a stream says until its end.
    pub async fn record(&self, mut stream: impl AsyncRead + Unpin, name: &str) {
        let mut pending = Vec::new();
        let mut buffer = vec![0; LONGEST_LINE];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    self.show(name, &buffer[..count]);
                    pending.extend_from_slice(&buffer[..count]);
                }
            }
            let mut rest = pending.as_slice();
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n').map(|end| end.min(LONGEST_LINE)) {
                let full = rest[end] == b'\n';
                self.write(Timestamp::now(), name, full, &rest[..end]);
                rest = &rest[end + usize::from(full)..];
            }
            while rest.len() >= LONGEST_LINE {
                self.write(Timestamp::now(), name, false, &rest[..LONGEST_LINE]);
                rest = &rest[LONGEST_LINE..];
            }
            pending = rest.to_vec();
        }
        if !pending.is_empty() {
            self.write(Timestamp::now(), name, false, &pending);
        }
    }

    /// Stdout and stderr from now on, as they come.
    pub fn attach(&self) -> (Output, Output) {
        let ((out, to_read), (err, err_to_read)) = (mpsc::channel(64), mpsc::channel(64));
        self.attached.lock().expect("no one panics while holding it").push((out, err));
        (Box::new(Onlooker::new(to_read)), Box::new(Onlooker::new(err_to_read)))
    }

    fn show(&self, name: &str, bytes: &[u8]) {
        let mut attached = self.attached.lock().expect("no one panics while holding it");
        attached.retain(|(out, err)| {
            let to = if name == "stdout" { out } else { err };
            to.try_send(Bytes::copy_from_slice(bytes)).ok();
            !to.is_closed()
        });
    }

    fn write(&self, time: Timestamp, stream: &str, full: bool, text: &[u8]) {
        let mut line = format!("{time:.9} {stream} {} ", if full { 'F' } else { 'P' }).into_bytes();
        line.extend_from_slice(text);
        line.push(b'\n');
        let mut file = self.file.lock().expect("no one panics while holding it");
        let new_file = file.1 + line.len() as u64 > SIZE_OF_A_FILE;
        if new_file
            && std::fs::rename(&self.path, older(&self.path)).is_ok()
            && let Ok(next) = File::create(&self.path)
        {
            *file = (next, 0);
        }
        // A full disk loses lines of the log, not the container.
        if file.0.write_all(&line).is_ok() {
            file.1 += line.len() as u64;
        }
        self.progress.send_modify(|progress| {
            progress.writes += 1;
            progress.files += u64::from(new_file);
        });
    }

    /// Nothing will be written any more: followers end.
    pub fn complete(&self) {
        self.attached.lock().expect("no one panics while holding it").clear();
        self.progress.send_modify(|progress| progress.complete = true);
    }

    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The end of the log, for a container's termination message.
    pub fn tail(path: &Path, lines: usize, bytes: usize) -> String {
        let options = LogOptions { tail: Some(lines), ..LogOptions::default() };
        let mut text = Vec::new();
        for line in selected(path, &options).map(|(lines, _)| lines).unwrap_or_default() {
            text.extend_from_slice(&shown(&line, false));
        }
        String::from_utf8_lossy(&text[text.len().saturating_sub(bytes)..]).into_owned()
    }
}

/// Reads what a `Log` shows.
struct Onlooker {
    chunks: mpsc::Receiver<Bytes>,
    current: Bytes,
}

impl Onlooker {
    fn new(chunks: mpsc::Receiver<Bytes>) -> Onlooker {
        Onlooker { chunks, current: Bytes::new() }
    }
}

impl AsyncRead for Onlooker {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.current.is_empty() {
            match ready!(self.chunks.poll_recv(context)) {
                Some(chunk) => self.current = chunk,
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.current.len().min(buffer.remaining());
        buffer.put_slice(&self.current.split_to(count));
        Poll::Ready(Ok(()))
    }
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

fn time_of(line: &[u8]) -> Option<Timestamp> {
    let end = line.iter().position(|byte| *byte == b' ')?;
    std::str::from_utf8(&line[..end]).ok()?.parse().ok()
}

/// A line as its reader sees it.
fn shown(line: &[u8], timestamps: bool) -> Vec<u8> {
    let mut fields = line.splitn(4, |byte| *byte == b' ');
    let (Some(time), Some(_), Some(tag), Some(text)) = (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return line.to_vec();
    };
    let mut shown = Vec::new();
    if timestamps {
        shown.extend_from_slice(time);
        shown.push(b' ');
    }
    // A part of a line is not ended.
    let text = if tag == b"P" { text.strip_suffix(b"\n").unwrap_or(text) } else { text };
    shown.extend_from_slice(text);
    shown
}

/// The lines that are there now, and the newest file after them.
fn selected(path: &Path, options: &LogOptions) -> io::Result<(VecDeque<Vec<u8>>, BufReader<File>)> {
    let mut lines = VecDeque::new();
    let mut take = |line: Vec<u8>| {
        if options.since.is_none_or(|since| time_of(&line).is_some_and(|time| time >= since)) {
            lines.push_back(line);
        }
        if options.tail.is_some_and(|tail| lines.len() > tail) {
            lines.pop_front();
        }
    };
    let mut newest = BufReader::new(File::open(path)?);
    if let Ok(older) = File::open(older(path)) {
        read_lines(&mut BufReader::new(older), &mut take)?;
    }
    read_lines(&mut newest, &mut take)?;
    Ok((lines, newest))
}

fn read_lines(file: &mut impl BufRead, mut each: impl FnMut(Vec<u8>)) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        match file.read_until(b'\n', &mut line)? {
            0 => return Ok(()),
            _ => each(line),
        }
    }
}

/// Reads a log. Without the progress of a writer there is nothing to follow.
pub fn read(
    path: PathBuf,
    progress: Option<watch::Receiver<Progress>>,
    options: LogOptions,
) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static> {
    File::open(&path)?;
    let limit = options.limit_bytes.unwrap_or(usize::MAX);
    let (send, receive) = mpsc::channel(16);
    tokio::spawn(async move {
        if let Err(error) = send_lines(&path, progress, &options, &send).await {
            send.send(Err(error)).await.ok();
        }
    });
    Ok(futures::stream::unfold((receive, limit), |(mut receive, limit)| async move {
        let next: io::Result<Bytes> = receive.recv().await.filter(|_| limit > 0)?;
        let next = next.map(|bytes| bytes.slice(..bytes.len().min(limit)));
        let left = limit - next.as_ref().map_or(limit, Bytes::len);
        Some((next, (receive, left)))
    }))
}

async fn send_lines(
    path: &Path,
    progress: Option<watch::Receiver<Progress>>,
    options: &LogOptions,
    send: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let progress = progress.filter(|_| options.follow);
    // Seen before reading: what is written meanwhile makes it change, and is then read.
    let seen = progress.as_ref().map(|progress| *progress.borrow());
    let (first, mut file) = selected(path, options)?;
    for line in first {
        if send.send(Ok(shown(&line, options.timestamps).into())).await.is_err() {
            return Ok(());
        }
    }
    let (Some(mut progress), Some(mut seen)) = (progress, seen) else { return Ok(()) };
    loop {
        let mut lines = Vec::new();
        read_lines(&mut file, |line| lines.push(line))?;
        for line in lines {
            if send.send(Ok(shown(&line, options.timestamps).into())).await.is_err() {
                return Ok(());
            }
        }
        let now = *progress.borrow_and_update();
        if now.files != seen.files {
            file = BufReader::new(File::open(path)?);
        } else if now.writes == seen.writes {
            let ended = now.complete || progress.changed().await.is_err();
            if ended {
                return Ok(());
            }
        }
        seen = now;
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = std::env::temp_dir().join(format!("boathook-log-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            Scratch(dir)
        }

        fn log(&self) -> Arc<Log> {
            Log::create(&self.0.join("0.log")).unwrap()
        }

        async fn read(&self, options: LogOptions) -> String {
            let lines = read(self.0.join("0.log"), None, options).unwrap();
            let lines: Vec<_> = lines.map(|bytes| bytes.unwrap().to_vec()).collect().await;
            String::from_utf8(lines.concat()).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).ok();
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn a_log_is_shown_by_tail_since_and_with_times() {
        let dir = Scratch::new("select");
        let log = dir.log();
        for second in 1..=3 {
            log.write(at(second), "stdout", true, format!("line {second}").as_bytes());
        }
        assert_eq!(dir.read(LogOptions::default()).await, "line 1\nline 2\nline 3\n");
        assert_eq!(dir.read(LogOptions { tail: Some(1), ..Default::default() }).await, "line 3\n");
        assert_eq!(dir.read(LogOptions { since: Some(at(2)), ..Default::default() }).await, "line 2\nline 3\n");
        let timed = LogOptions { timestamps: true, tail: Some(1), ..Default::default() };
        assert_eq!(dir.read(timed).await, "1970-01-01T00:00:03.000000000Z line 3\n");
        assert_eq!(dir.read(LogOptions { limit_bytes: Some(8), ..Default::default() }).await, "line 1\nl");
    }

    #[tokio::test]
    async fn a_line_without_an_end_keeps_none_and_a_long_one_is_whole() {
        let dir = Scratch::new("partial");
        let long = "x".repeat(LONGEST_LINE * 2 + 5);
        dir.log().record(format!("{long}\nno end").as_bytes(), "stdout").await;
        assert_eq!(dir.read(LogOptions::default()).await, format!("{long}\nno end"));
        let file = std::fs::read_to_string(dir.0.join("0.log")).unwrap();
        assert_eq!(file.lines().filter(|line| line.contains(" stdout P ")).count(), 3);
    }

    #[tokio::test]
    async fn an_onlooker_sees_each_stream_from_now_on() {
        let dir = Scratch::new("attach");
        let log = dir.log();
        log.record(&b"before\n"[..], "stdout").await;
        let (mut out, mut err) = log.attach();
        log.record(&b"no end"[..], "stdout").await;
        log.record(&b"bad\n"[..], "stderr").await;
        log.complete();
        let (mut seen, mut seen_err) = (String::new(), String::new());
        out.read_to_string(&mut seen).await.unwrap();
        err.read_to_string(&mut seen_err).await.unwrap();
        assert_eq!((seen.as_str(), seen_err.as_str()), ("no end", "bad\n"));
    }

    #[tokio::test]
    async fn a_follower_sees_every_line_across_files_and_then_ends() {
        let dir = Scratch::new("follow");
        let log = dir.log();
        log.write(at(1), "stdout", true, b"first");
        let options = LogOptions { follow: true, ..Default::default() };
        let mut lines = Box::pin(read(dir.0.join("0.log"), Some(log.progress()), options).unwrap());
        assert_eq!(lines.next().await.unwrap().unwrap(), "first\n");
        let filler = vec![b'x'; SIZE_OF_A_FILE as usize - 100];
        log.write(at(2), "stdout", true, &filler);
        assert_eq!(lines.next().await.unwrap().unwrap().len(), filler.len() + 1);
        log.write(at(3), "stdout", true, b"in the next file");
        assert_eq!(lines.next().await.unwrap().unwrap(), "in the next file\n");
        log.complete();
        assert!(lines.next().await.is_none());
    }
}
