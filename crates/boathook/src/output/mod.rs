//! Everything that a command prints: results on stdout, notes and progress on stderr, colours only on a terminal.

pub(crate) mod action;
pub(crate) mod duration;
pub(crate) mod format;
mod live;
pub(crate) mod plain;
pub(crate) mod steps;
pub(crate) mod table;

use std::io::{self, IsTerminal, Write};

use boathook_runtime::error_class::chain;
use live::Live;

/// What means the same everywhere: that something is well, is not, or asks for a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Good,
    Bad,
    Odd,
}

/// Where a command prints.
pub(crate) struct Screen {
    results: Box<dyn Write>,
    notes: Box<dyn Write>,
    coloured: bool,
    /// How wide it is where results are read; none where nobody sees its edge.
    width: Option<fn() -> usize>,
    live: Option<Live>,
}

/// What stands below a lead has at least this much room, or else begins further to the left.
const LEAST_ROOM: usize = 30;

/// How far to the left that is.
const SMALL_INDENT: usize = 4;

impl Screen {
    /// Results go to stdout.
    pub(crate) fn new() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            results: Box::new(io::stdout()),
            notes: Box::new(io::stderr()),
            coloured: is_terminal && colours_are_wanted(),
            width: is_terminal.then_some(width),
            live: Live::of_stderr(),
        }
    }

    /// Results are for a person and go to stderr: on stdout something else is printed, for a program.
    pub(crate) fn aside() -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self {
            results: Box::new(io::stderr()),
            coloured: is_terminal && colours_are_wanted(),
            width: is_terminal.then_some(|| live::terminal_width(io::stderr())),
            ..Self::new()
        }
    }

    /// One line of the result.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.clear();
        writeln!(self.results, "{text}")?;
        self.results.flush()
    }

    /// A text of the result, after a lead. A terminal that is too narrow for it has the rest below its beginning.
    pub(crate) fn text(&mut self, lead: &str, colour: Option<Colour>, text: &str) -> io::Result<()> {
        let indent = visible(lead);
        let width = self.width.map_or(usize::MAX, |width| width());
        let below = if width < indent.saturating_add(LEAST_ROOM) { SMALL_INDENT } else { indent };
        let folded = plain::folded(text, width.saturating_sub(indent), width.saturating_sub(below));
        for (number, line) in folded.iter().enumerate() {
            let line = colour.map_or_else(|| line.clone(), |colour| self.painted(colour, line));
            let line = if number == 0 { format!("{lead}{line}") } else { format!("{:below$}{line}", "") };
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// Something to know that is no result.
    pub(crate) fn note(&mut self, text: &str) {
        self.clear();
        // Whoever closed stderr does not want to know.
        let _ = writeln!(self.notes, "{text}");
    }

    /// Something to look at.
    pub(crate) fn warn(&mut self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    /// How far it has come: one line that is painted over, on a terminal only.
    pub(crate) fn progress(&mut self, text: &str) {
        if let Some(live) = &mut self.live {
            live.paint(&mut self.notes, text);
        }
    }

    /// Takes the progress away.
    pub(crate) fn clear(&mut self) {
        if let Some(live) = &mut self.live {
            live.clear(&mut self.notes);
        }
    }

    /// The text in this colour, if colours are shown.
    pub(crate) fn painted(&self, colour: Colour, text: &str) -> String {
        if !self.coloured {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Good => 32,
            Colour::Bad => 31,
            Colour::Odd => 33,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// How many columns a text takes: colours take none.
fn visible(text: &str) -> usize {
    let mut parts = text.split('\x1b');
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

/// Prints something whole, for a program, on stdout.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// A line on stdout of a process that serves: it goes on when stdout is closed.
pub(crate) fn to_stdout(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// A line on stderr. A closed stderr is not an error.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// An error that ends the command.
pub(crate) fn error(error: &anyhow::Error) {
    to_stderr(&format!("error: {}", said_once(error)));
}

/// What happened and why, to the last cause.
pub(crate) fn said_once(error: &anyhow::Error) -> String {
    chain(error.as_ref())
}

/// See no-color.org: set to anything but nothing, it means none.
fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !terminal_is_dumb()
}

/// How wide the screen is on which results are printed; in a pipe, as terminals usually are.
pub(crate) fn width() -> usize {
    live::terminal_width(io::stdout())
}

/// Whether those who read know more letters than ASCII, by what their locale says.
pub(crate) fn is_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    let locale = locale.map(|locale| locale.to_string_lossy().to_lowercase()).unwrap_or_default();
    locale.contains("utf-8") || locale.contains("utf8")
}

fn terminal_is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A sheet that keeps what is written on it.
    #[derive(Clone, Default)]
    pub(crate) struct Sheet(Arc<Mutex<Vec<u8>>>);

    impl Write for Sheet {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sheet {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Screen {
        /// Both streams on paper: no colours, no progress.
        pub(crate) fn on_paper(results: &Sheet, notes: &Sheet) -> Self {
            let (results, notes) = (Box::new(results.clone()), Box::new(notes.clone()));
            Self { results, notes, coloured: false, width: None, live: None }
        }
    }

    #[test]
    fn results_and_notes_go_their_own_ways() {
        let (results, notes) = (Sheet::default(), Sheet::default());
        let mut screen = Screen::on_paper(&results, &notes);
        screen.line("a result").unwrap();
        screen.warn("look here");
        screen.progress("half of it");
        assert_eq!((results.text().as_str(), notes.text().as_str()), ("a result\n", "warning: look here\n"));
    }

    #[test]
    fn colours_are_only_where_they_are_shown() {
        let mut screen = Screen::on_paper(&Sheet::default(), &Sheet::default());
        assert_eq!(screen.painted(Colour::Bad, "FAILED"), "FAILED");
        screen.coloured = true;
        assert_eq!(screen.painted(Colour::Bad, "FAILED"), "\x1b[31mFAILED\x1b[0m");
    }

    #[test]
    fn a_text_is_folded_below_its_beginning_where_its_end_would_not_be_seen() {
        let told = |width: Option<fn() -> usize>, lead: &str| {
            let results = Sheet::default();
            let mut screen = Screen::on_paper(&results, &Sheet::default());
            (screen.width, screen.coloured) = (width, true);
            let lead = screen.painted(Colour::Odd, lead);
            screen.text(&lead, None, "the quick brown fox jumps over the lazy dog").unwrap();
            results.text().replace("\x1b[33m", "").replace("\x1b[0m", "")
        };
        assert_eq!(told(None, "risk: "), "risk: the quick brown fox jumps over the lazy dog\n");
        assert_eq!(told(Some(|| 40), "risk: "), "risk: the quick brown fox jumps over the\n      lazy dog\n");
        let narrow = "a long lead the quick\n    brown fox jumps\n    over the lazy dog\n";
        assert_eq!(told(Some(|| 22), "a long lead "), narrow);
    }

    #[test]
    fn no_cause_is_told_twice() {
        let error = anyhow::anyhow!("refused").context("failed to connect: refused").context("failed to list pods");
        assert_eq!(said_once(&error), "failed to list pods: failed to connect: refused");
    }

    #[test]
    fn progress_makes_room_for_lines() {
        let notes = Sheet::default();
        let mut screen = Screen::on_paper(&notes, &notes);
        screen.live = Some(Live::as_wide_as(20));
        screen.progress("one");
        screen.line("a result").unwrap();
        screen.progress("two");
        screen.clear();
        assert_eq!(notes.text(), "\r\x1b[Kone\r\x1b[Ka result\n\r\x1b[Ktwo\r\x1b[K");
    }
}
