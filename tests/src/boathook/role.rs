//! What a process of the test binary is: the tests, or something that they have started.

use std::{io, process::ExitCode};

use super::api_relay;

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

/// Ends this process when the tests that started it are gone: they hold the other end of its stdin.
fn end_with_the_tests() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    });
}
