//! One line on a terminal that says how far a command has come, and is painted over.

use std::{
    io::{IsTerminal, Write},
    os::fd::AsFd,
};

/// To the beginning of the line, and all of it away.
const CLEAR: &str = "\r\x1b[K";

/// Of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;

pub(super) struct Live {
    /// Fixed, or else as wide as the terminal is at that moment.
    width: Option<usize>,
    /// What is there now.
    painted: String,
}

impl Live {
    /// None if stderr is no terminal, or one that cannot paint over.
    pub(super) fn of_stderr() -> Option<Self> {
        let live = std::io::stderr().is_terminal() && !super::terminal_is_dumb();
        live.then_some(Self { width: None, painted: String::new() })
    }

    #[cfg(test)]
    pub(super) fn as_wide_as(width: usize) -> Self {
        Self { width: Some(width), painted: String::new() }
    }

    pub(super) fn paint(&mut self, on: &mut dyn Write, text: &str) {
        // The last column stays free: some terminals go on to the next line with it.
        let room = self.width.unwrap_or_else(|| terminal_width(std::io::stderr())).saturating_sub(1);
        let fitting: String = text.chars().take(room).collect();
        if fitting != self.painted && write!(on, "{CLEAR}{fitting}").and_then(|()| on.flush()).is_ok() {
            self.painted = fitting;
        }
    }

    pub(super) fn clear(&mut self, on: &mut dyn Write) {
        if !std::mem::take(&mut self.painted).is_empty() {
            let _ = write!(on, "{CLEAR}").and_then(|()| on.flush());
        }
    }
}

pub(super) fn terminal_width(of: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(of);
    size.ok().map(|size| size.ws_col.into()).filter(|width| *width > 0).unwrap_or(USUAL_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_so_that_it_can_be_painted_over() {
        let mut screen = Vec::new();
        let mut live = Live::as_wide_as(8);
        live.paint(&mut screen, "waiting for é");
        live.paint(&mut screen, "waiting for b");
        live.clear(&mut screen);
        live.clear(&mut screen);
        assert_eq!(String::from_utf8(screen).unwrap(), format!("{CLEAR}waiting{CLEAR}"));
    }
}
