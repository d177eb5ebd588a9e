//! Signals by name: the Linux set, with and without `SIG`. Numbers are refused, for they differ between machines.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use snafu::{Snafu, ensure};

/// The names without `SIG`, and their numbers on every architecture that Kubernetes' Linux nodes have.
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// Signals that end or stop a container, which Kubernetes does in its own ways: an agent sends them only when it was
/// started with `--allow-signals` that names them.
const GUARDED: &[&str] = &["KILL", "STOP", "TERM"];

/// One signal of the Linux set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signal(/* Its place in `SIGNALS`. */ usize);

/// A name that is not a Linux signal.
#[derive(Debug, Snafu, PartialEq, Eq, Clone)]
pub enum ParseSignalError {
    #[snafu(display("signal `{given}` is a number: name it, for example SIGHUP"))]
    Number { given: String },
    #[snafu(display("`{given}` is not a Linux signal: write a name such as SIGHUP or USR1"))]
    Unknown { given: String },
}

impl Signal {
    pub fn number(self) -> i32 {
        SIGNALS[self.0].1
    }

    fn bare_name(self) -> &'static str {
        SIGNALS[self.0].0
    }

    /// Whether it is sent only if the agent's `--allow-signals` names it.
    pub fn is_guarded(self) -> bool {
        GUARDED.contains(&self.bare_name())
    }
}

impl FromStr for Signal {
    type Err = ParseSignalError;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        ensure!(given.parse::<i64>().is_err(), NumberSnafu { given });
        let bare = given.strip_prefix("SIG").unwrap_or(given);
        let found = SIGNALS.iter().position(|(name, _)| *name == bare);
        found.map(Self).ok_or_else(|| UnknownSnafu { given }.build())
    }
}

impl TryFrom<String> for Signal {
    type Error = ParseSignalError;

    fn try_from(given: String) -> Result<Self, Self::Error> {
        given.parse()
    }
}

impl From<Signal> for String {
    fn from(signal: Signal) -> Self {
        signal.to_string()
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SIG{}", self.bare_name())
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl JsonSchema for Signal {
    fn schema_name() -> Cow<'static, str> {
        "Signal".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = SIGNALS.iter().flat_map(|(name, _)| [format!("SIG{name}"), (*name).to_owned()]);
        json_schema!({
            "type": "string",
            "description": "A Linux signal by name, with or without `SIG`. Requires the node agent.",
            "enum": names.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_known_with_and_without_sig() {
        assert_eq!("SIGHUP".parse::<Signal>(), "HUP".parse());
        assert_eq!("USR1".parse::<Signal>().unwrap().number(), 10);
        assert_eq!("USR1".parse::<Signal>().unwrap().to_string(), "SIGUSR1");
    }

    #[test]
    fn numbers_and_unknown_names_are_refused_with_what_to_write() {
        assert!("1".parse::<Signal>().unwrap_err().to_string().contains("SIGHUP"));
        assert_eq!("-9".parse::<Signal>(), Err(ParseSignalError::Number { given: "-9".to_owned() }));
        assert_eq!("hup".parse::<Signal>(), Err(ParseSignalError::Unknown { given: "hup".to_owned() }));
        assert_eq!("SIGSIGHUP".parse::<Signal>(), Err(ParseSignalError::Unknown { given: "SIGSIGHUP".to_owned() }));
    }

    #[test]
    fn what_ends_a_container_is_guarded() {
        let guarded = |name: &str| name.parse::<Signal>().unwrap().is_guarded();
        assert!(guarded("KILL") && guarded("SIGSTOP") && guarded("TERM"));
        assert!(!guarded("HUP"));
    }
}
