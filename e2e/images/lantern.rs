//! The one program of the image without a shell (`localhost/distroless:1`), built as a static binary by `rustc` alone.
//!
//! `lantern` prints `lit`, then `reloaded N` for each SIGHUP, and ends with 0 on SIGTERM.
//! `lantern exit N` ends with N at once: something to exec where there is nothing else.

use std::process::exit;

const SIGHUP: i32 = 1;
const SIGTERM: i32 = 15;
const SIG_BLOCK: i32 = 0;

/// glibc's `sigset_t`: 1024 bits.
type SignalSet = [u64; 16];

unsafe extern "C" {
    fn sigemptyset(set: *mut SignalSet) -> i32;
    fn sigaddset(set: *mut SignalSet, signal: i32) -> i32;
    fn sigprocmask(how: i32, set: *const SignalSet, old: *mut SignalSet) -> i32;
    fn sigwait(set: *const SignalSet, signal: *mut i32) -> i32;
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => burn(),
        ["exit", code] => exit(code.parse().unwrap_or(2)),
        _ => {
            eprintln!("usage: lantern [exit CODE]");
            exit(2)
        }
    }
}

/// Waits for signals for ever. They are blocked before the first line is printed, so whoever has seen `lit` can send.
fn burn() {
    let mut signals: SignalSet = [0; 16];
    // SAFETY: the set is as large as glibc's and outlives the calls; nothing else runs in this process.
    unsafe {
        sigemptyset(&mut signals);
        sigaddset(&mut signals, SIGHUP);
        sigaddset(&mut signals, SIGTERM);
        sigprocmask(SIG_BLOCK, &signals, std::ptr::null_mut());
    }
    println!("lit");
    let mut reloads = 0;
    loop {
        let mut signal = 0;
        // SAFETY: as above; `signal` is written by the call.
        let failed = unsafe { sigwait(&signals, &mut signal) } != 0;
        match signal {
            _ if failed => exit(1),
            SIGHUP => {
                reloads += 1;
                println!("reloaded {reloads}");
            }
            _ => return,
        }
    }
}
