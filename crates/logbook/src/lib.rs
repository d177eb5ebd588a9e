//! A small database under load, to be frozen, copied and thawed: what the demo and the tests snapshot.
//!
//! Its book is two files that belong together. A record is written to `entries` in several parts, and when it is there
//! a line in `index` says where. While it writes it is in the midst of a record nearly always, and whoever copies the
//! files one after the other finds them at two moments: so a copy taken without a freeze is torn again and again.
//! Frozen, it ends the record it is in, syncs both files, and writes no more until it is thawed: a copy taken meanwhile
//! is whole up to a record's end. That it is frozen is noted on the disk, so a new process in the same volume is frozen
//! too; a copy of the volume is not.
//!
//! | command | what it does |
//! |---|---|
//! | `logbook serve DIR [--pace N] [--thaw-after SECONDS]` | writes N records a second (50), until it is killed |
//! | `logbook freeze DIR` | ends with 0 when nothing is written any more; frozen already, at once |
//! | `logbook thaw DIR` | lets it go on; not frozen, it changes nothing |
//! | `logbook hold DIR` | frozen while this runs: prints `READY`, ends with 0 on the line `RELEASE` or at the end of stdin |
//! | `logbook status DIR [-o json]` | frozen or not, since when, and how many records there are |
//! | `logbook verify DIR [-o json]` | reads a copy: 0 whole, 1 torn, 2 not to be read |
//!
//! It is std alone. So it cannot wait for signals, and as pid 1 of a container it does not hear SIGTERM: give its pod
//! a short grace period. A record that a kill cut off is dropped when it serves again.

mod book;
mod command_line;
mod control;
mod error;
mod gate;
mod note;
mod record;
#[cfg(test)]
mod scratch;
mod server;
mod status;
mod verify;

pub use command_line::run;
pub use error::Error;
pub use verify::{Problem, Report, verify};
