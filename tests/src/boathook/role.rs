//! What a process of the test binary is: the tests, or something that they have started.

use std::{io, process::ExitCode};

use jiff::Timestamp;

use super::{api_relay, wall_clock};

/// Names the role in the environment of a process that the tests start.
pub(super) const ROLE: &str = "BOATHOOK_TEST_ROLE";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program under test, with its own command line.
    Boathook,
    /// See [`api_relay`].
    Relay,
}

impl Role {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Boathook => "boathook",
            Self::Relay => "relay",
        }
    }
}

/// Plays the role that this process was started in, if any: then this is all that it does.
pub(crate) fn play() -> Option<ExitCode> {
    let role = std::env::var(ROLE).ok()?;
    end_with_the_tests();
    let known = [Role::Boathook, Role::Relay].into_iter().find(|known| known.word() == role);
    Some(match known {
        Some(Role::Boathook) => boathook::main(),
        Some(Role::Relay) => api_relay::main(),
        None => {
            eprintln!("error: {ROLE}=`{role}` is no role");
            ExitCode::FAILURE
        }
    })
}

/// A line on the stdin of a process: its wall clock is stepped by the seconds after this word.
pub(super) const STEP: &str = "step ";

/// Obeys the tests that started this process through its stdin, and ends it when they are gone.
fn end_with_the_tests() {
    std::thread::spawn(|| {
        for line in io::stdin().lines().map_while(Result::ok) {
            let seconds = line.strip_prefix(STEP).and_then(|seconds| seconds.parse().ok());
            if seconds.is_some_and(|seconds| !is_stepped(seconds)) {
                eprintln!("error: this process does not read the wall clock that the tests step");
                break;
            }
        }
        std::process::exit(1);
    });
}

/// Steps the wall clock, and whether what Boathook reads has followed.
fn is_stepped(seconds: i64) -> bool {
    let before = Timestamp::now().as_second();
    wall_clock::step(seconds);
    let moved = Timestamp::now().as_second() - before;
    eprintln!("the wall clock of this process is stepped by {moved} s");
    (moved - seconds).abs() < seconds.abs() / 2
}
