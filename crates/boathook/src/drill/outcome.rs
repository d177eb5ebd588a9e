//! How a drill went: in words, and as an exit code.

use std::{io, process::ExitCode};

use crate::{
    cli::called_as,
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
    /// Ended by Ctrl-C; all is thawed.
    Interrupted,
    /// The thaw of these hooks is not confirmed: it failed, or the command did not wait for it.
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

    pub(super) fn tell(&self, namespace: &str, screen: &mut Screen) -> io::Result<()> {
        let (colour, text) = match self {
            Self::Good { gone } => {
                let left = if *gone { "its hooks are deleted" } else { "its hooks are being deleted" };
                (Colour::Good, format!("frozen and thawed; nothing was cut, and {left}"))
            }
            Self::NotFrozen(why) => {
                (Colour::Bad, format!("NOT frozen, and everything is thawed again: {}", one_line(why)))
            }
            Self::Interrupted => (Colour::Odd, "interrupted, and everything is thawed again".to_owned()),
            Self::NotThawed(hooks) => (
                Colour::Bad,
                format!(
                    "thaw NOT confirmed of {}: Boathook retries it until it succeeds, see {} hooks list -n {namespace}",
                    hooks.join(", "),
                    called_as()
                ),
            ),
        };
        screen.text("", Some(colour), &text)
    }
}
