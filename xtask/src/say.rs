//! What a person sees while a chore works: on a terminal one line that moves, in a pipe a plain line now and then.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// In a pipe, how often a long step says that it is still at work: often enough to tell it from a hang.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// One step of a chore, from "…" to its time. Dropped without an end (an error is on its way), it only clears its line.
pub(crate) struct Step {
    what: String,
    started: Instant,
    spoke: Instant,
    terminal: bool,
    open: bool,
}

impl Step {
    pub(crate) fn start(what: impl Into<String>) -> Self {
        let now = Instant::now();
        let step = Self { what: what.into(), started: now, spoke: now, terminal: stderr().is_terminal(), open: true };
        if step.terminal {
            step.redraw("");
        }
        step
    }

    /// Shows how far the step is. Cheap enough to be called several times a second.
    pub(crate) fn progress(&mut self, how_far: &str) {
        if self.terminal {
            self.redraw(how_far);
        } else if self.spoke.elapsed() >= HEARTBEAT {
            self.spoke = Instant::now();
            eprintln!("  {} … {how_far} ({})", self.what, seconds(self.started.elapsed()));
        }
    }

    pub(crate) fn done(mut self) {
        self.open = false;
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        eprintln!("{clear}  {} ({})", self.what, seconds(self.started.elapsed()));
    }

    fn redraw(&self, how_far: &str) {
        let how_far = if how_far.is_empty() { String::new() } else { format!("{how_far} ") };
        eprint!("\r\x1b[K  {} … {how_far}{}", self.what, seconds(self.started.elapsed()));
        // A line that does not appear is no reason to fail.
        let _ = stderr().flush();
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.open && self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

pub(crate) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f32()),
        whole => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_a_person_says_them() {
        assert_eq!(seconds(Duration::from_millis(4_260)), "4.3 s");
        assert_eq!(seconds(Duration::from_secs(305)), "5 min 05 s");
    }
}
