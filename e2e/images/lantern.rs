//! The one program of the image without a shell: std alone, so that `rustc` builds it for the real cluster as a static
//! binary, and cargo builds it for the embedded one beside the scenarios.
//!
//! | command | what it does |
//! |---|---|
//! | `lantern` | prints `lit`, then `reloaded N` for each SIGHUP, and ends with 0 on SIGTERM |
//! | `lantern exit N` | ends with N at once: something to exec where there is nothing else |
//! | `lantern serve ADDRESS:PORT TEXT` | answers every HTTP request with the text, and prints `asked for PATH`, until SIGTERM |
//! | `lantern get URL` | prints what a GET of `http://ADDRESS:PORT/...` answers; fails after a minute of silence |
//! | `lantern files` | prints the files that it is made of: itself, its libraries, its loader |
//!
//! Unsafe because std cannot wait for signals; one thread calls it, before any other is started.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::process::exit;
use std::time::Duration;

const SIGHUP: i32 = 1;
const SIGTERM: i32 = 15;
const SIG_BLOCK: i32 = 0;

/// How long another side may be silent: longer than a busy machine keeps it from running.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a connection may take: the kernel answers for a process that is not running.
const CONNECT: Duration = Duration::from_secs(5);
/// More than any request or answer here.
const CAP: u64 = 1 << 20;

/// glibc's `sigset_t`, the largest: 1024 bits.
type SignalSet = [u64; 16];

unsafe extern "C" {
    fn sigemptyset(set: *mut SignalSet) -> i32;
    fn sigaddset(set: *mut SignalSet, signal: i32) -> i32;
    fn sigprocmask(how: i32, set: *const SignalSet, old: *mut SignalSet) -> i32;
    fn sigwait(set: *const SignalSet, signal: *mut i32) -> i32;
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => burn(&block_signals()),
        ["exit", code] => exit(code.parse().unwrap_or(2)),
        ["serve", address, text] => serve(address, text.to_owned()),
        ["get", url] => get(url),
        ["files"] => files(),
        _ => {
            eprintln!("usage: lantern [exit CODE | serve ADDRESS:PORT TEXT | get URL | files]");
            exit(2)
        }
    };
    if let Err(error) = done {
        eprintln!("lantern: {error}");
        exit(1)
    }
}

/// They are blocked before the first line is printed, so whoever has seen `lit` can send.
fn block_signals() -> SignalSet {
    let mut signals: SignalSet = [0; 16];
    // SAFETY: the set is at least as large as the library's and outlives the calls; nothing else runs in this process.
    unsafe {
        sigemptyset(&mut signals);
        sigaddset(&mut signals, SIGHUP);
        sigaddset(&mut signals, SIGTERM);
        sigprocmask(SIG_BLOCK, &signals, std::ptr::null_mut());
    }
    signals
}

/// Waits for signals until SIGTERM.
fn burn(signals: &SignalSet) -> Result<()> {
    println!("lit");
    let mut reloads = 0;
    loop {
        let mut signal = 0;
        // SAFETY: as above; `signal` is written by the call.
        if unsafe { sigwait(signals, &mut signal) } != 0 {
            return Err(Error::other("failed to wait for a signal"));
        }
        if signal != SIGHUP {
            return Ok(());
        }
        reloads += 1;
        println!("reloaded {reloads}");
    }
}

fn serve(address: &str, text: String) -> Result<()> {
    let signals = block_signals();
    let listener = TcpListener::bind(address)?;
    std::thread::spawn(move || {
        for guest in listener.incoming().flatten() {
            // A guest that goes early, as a probe does, is gone.
            let _ = answer(guest, &text);
        }
    });
    burn(&signals)
}

fn answer(mut guest: TcpStream, text: &str) -> Result<()> {
    guest.set_read_timeout(Some(PATIENCE))?;
    guest.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if request.len() as u64 == CAP || guest.read(&mut byte)? == 0 {
            return Ok(());
        }
        request.push(byte[0]);
    }
    // Whoever has the answer can look it up here.
    println!("asked for {}", String::from_utf8_lossy(&request).split(' ').nth(1).unwrap_or_default());
    let length = text.len();
    write!(guest, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}")
}

fn get(url: &str) -> Result<()> {
    let wrong = || Error::new(ErrorKind::InvalidInput, format!("`{url}` is not http://ADDRESS:PORT/..."));
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
    let address = host.parse().map_err(|_| wrong())?;
    let mut server = TcpStream::connect_timeout(&address, CONNECT)?;
    server.set_read_timeout(Some(PATIENCE))?;
    write!(server, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    server.take(CAP).read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => std::io::stdout().write_all(body.as_bytes()),
        _ => Err(Error::other(format!("no page: {answer:?}"))),
    }
}

/// What the kernel has mapped, and the loader by the name that the program knows it by.
fn files() -> Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let mut files: BTreeSet<String> =
        maps.lines().filter_map(|line| Some(line[line.find('/')?..].to_owned())).collect();
    files.extend(loader(&std::fs::read(std::env::current_exe()?)?));
    files.iter().for_each(|file| println!("{file}"));
    Ok(())
}

/// The path in the ELF segment `PT_INTERP` of a 64-bit program; none in a static one.
fn loader(program: &[u8]) -> Option<String> {
    const PT_INTERP: usize = 3;
    let number = |at: usize, size: usize| {
        let bytes = program.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let segment = (0..count).map(|index| table + index * size).find(|at| number(*at, 4) == Some(PT_INTERP))?;
    let begin = number(segment + 8, 8)?;
    let path = program.get(begin..begin + number(segment + 32, 8)?)?;
    Some(String::from_utf8_lossy(path).trim_end_matches('\0').to_owned())
}
