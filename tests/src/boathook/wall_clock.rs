//! The wall clock of a process of Boathook, which can be stepped while the machine's own clock is not: this program is that
//! process, and its definition of `clock_gettime` is found before the C library's.

// Safety: the function has the C library's signature and contract, and leaves both to the kernel.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, Ordering};

use libc::{CLOCK_REALTIME, SYS_clock_gettime, c_int, clockid_t, timespec};

/// By how many seconds this process is ahead of the machine.
static STEPPED_BY: AtomicI64 = AtomicI64::new(0);

pub(super) fn step(seconds: i64) {
    STEPPED_BY.fetch_add(seconds, Ordering::SeqCst);
}

#[unsafe(no_mangle)]
extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller's pointer is handed on as it is.
    let code = unsafe { libc::syscall(SYS_clock_gettime, clock, time) };
    if code == 0 && clock == CLOCK_REALTIME {
        // SAFETY: the kernel has just written there.
        unsafe { (*time).tv_sec += STEPPED_BY.load(Ordering::SeqCst) };
    }
    code as c_int
}
