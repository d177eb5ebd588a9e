//! How it is with a book that is served: as the server tells it, and as people and programs read it.

use std::{fmt, time::SystemTime};

use crate::note::millis;

/// A served book at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// In milliseconds since 1970; by a command, until another one thaws it.
    pub(crate) frozen_since: Option<u64>,
    /// How many sessions hold it frozen.
    pub(crate) holders: usize,
    /// How many are written, whole.
    pub(crate) records: u64,
}

impl Status {
    pub(crate) fn is_frozen(self) -> bool {
        self.frozen_since.is_some() || self.holders > 0
    }

    /// One line, for [`Status::parse`].
    pub(crate) fn line(self) -> String {
        let Self { frozen_since, holders, records } = self;
        format!("{} {holders} {records}", frozen_since.map_or_else(|| "-".to_owned(), |since| since.to_string()))
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let [since, holders, records] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let frozen_since = if since == "-" { None } else { Some(since.parse().ok()?) };
        Some(Self { frozen_since, holders: holders.parse().ok()?, records: records.parse().ok()? })
    }

    /// For a program.
    pub(crate) fn json(self) -> String {
        let Self { frozen_since, holders, records } = self;
        let since = frozen_since.map_or_else(|| "null".to_owned(), |since| since.to_string());
        let frozen = self.is_frozen();
        format!(r#"{{"frozen":{frozen},"frozenSinceMillis":{since},"holders":{holders},"records":{records}}}"#)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frozen_since, holders, records } = *self;
        match (frozen_since, holders) {
            (Some(since), _) => {
                let tenths = millis(SystemTime::now()).saturating_sub(since) / 100;
                write!(to, "frozen for {}.{} s", tenths / 10, tenths % 10)?;
            }
            (None, 0) => write!(to, "not frozen")?,
            (None, holders) => write!(to, "held frozen by {holders} session{}", if holders == 1 { "" } else { "s" })?,
        }
        write!(to, ", {records} records")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_it_was_written() {
        for frozen_since in [None, Some(1_733_000_000_123)] {
            let status = Status { frozen_since, holders: 1, records: 812 };
            assert_eq!(Status::parse(&status.line()), Some(status));
        }
        assert_eq!(Status::parse("- 1"), None);
    }

    #[test]
    fn people_and_programs_read_it() {
        let status = Status { frozen_since: None, holders: 0, records: 812 };
        assert_eq!(status.to_string(), "not frozen, 812 records");
        assert_eq!(status.json(), r#"{"frozen":false,"frozenSinceMillis":null,"holders":0,"records":812}"#);
        let held = Status { holders: 1, ..status };
        assert_eq!(held.to_string(), "held frozen by 1 session, 812 records");
        let frozen = Status { frozen_since: Some(millis(SystemTime::now()) - 1_250), ..status }.to_string();
        let seconds = frozen.strip_prefix("frozen for ").and_then(|rest| rest.strip_suffix(" s, 812 records"));
        // The clock goes on between the two lines above.
        let seconds: f64 = seconds.unwrap().parse().unwrap();
        assert!((1.2..31.2).contains(&seconds), "{frozen}");
    }
}
