//! How a drill went: in words, and as an exit code.

use std::{io, process::ExitCode};

use crate::{
    output::{Colour, Screen, plain::one_line},
    snapshot::NOT_THAWED,
    waiting::INTERRUPTED,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All was frozen, and all is thawed; and its hooks are gone, or go.
    Good { gone: bool },
    /// Not all was frozen, for this reason; all is thawed.
    NotFrozen(String),
    /// Somebody did not want to wait; all is thawed.
    Interrupted,
    /// Of these hooks nobody knows that they are thawed.
    NotThawed(Vec<String>),
}

impl Outcome {
    pub(super) fn code(&self) -> ExitCode {
        match self {
            Self::Good { .. } => ExitCode::SUCCESS,
            Self::NotFrozen(_) => ExitCode::FAILURE,
            Self::NotThawed(_) => ExitCode::from(NOT_THAWED),
            Self::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Good { .. } => "Thawed",
            Self::NotFrozen(_) => "NotFrozen",
            Self::NotThawed(_) => "NotThawed",
            Self::Interrupted => "Interrupted",
        }
    }

    pub(super) fn tell(&self, screen: &mut Screen) -> io::Result<()> {
        let (colour, text) = match self {
            Self::Good { gone } => {
                let left = if *gone { "nothing is left of the drill" } else { "its hooks are about to go" };
                (Colour::Good, format!("frozen and thawed; nothing was cut, and {left}"))
            }
            Self::NotFrozen(why) => (Colour::Bad, format!("NOT frozen, and everything is thawed: {}", one_line(why))),
            Self::Interrupted => (Colour::Odd, "interrupted, and everything is thawed".to_owned()),
            Self::NotThawed(hooks) => (
                Colour::Bad,
                format!(
                    "NOT thawed: {}; it is tried again until it succeeds, see boathook hooks list",
                    hooks.join(", ")
                ),
            ),
        };
        screen.text("", Some(colour), &text)
    }
}
