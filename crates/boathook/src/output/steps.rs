//! The steps of something under way, a line each. Every step has a key, so that each is told once, whatever a watch left
//! out.

use std::{collections::BTreeSet, io, time::Duration};

use super::{Colour, Screen, duration::shown, table::NOTHING};

/// Before each step stands how long after the beginning it was seen.
const TIME_ROOM: usize = 8;

/// The words of steps: as wide as the widest.
const WORD_ROOM: usize = 8;

/// Between those, and before the text.
const GAP: usize = 2;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// No other step has it.
    pub(crate) key: String,
    pub(crate) word: &'static str,
    pub(crate) colour: Option<Colour>,
    pub(crate) text: String,
    /// Lines below it.
    pub(crate) details: Vec<String>,
}

impl Step {
    pub(crate) fn new(key: String, word: &'static str, colour: Option<Colour>, text: String) -> Self {
        Self { key, word, colour, text, details: vec![] }
    }
}

/// The keys of what was told.
#[derive(Default)]
pub(crate) struct Told(BTreeSet<String>);

impl Told {
    /// Tells what was not told yet; without a time if nobody was there to see it.
    pub(crate) fn tell(
        &mut self,
        steps: impl IntoIterator<Item = Step>,
        since: Option<Duration>,
        screen: &mut Screen,
    ) -> io::Result<()> {
        let time = since.map_or_else(|| NOTHING.to_owned(), |since| format!("+{}", shown(since)));
        for Step { key, word, colour, text, details } in steps {
            if !self.0.insert(key) {
                continue;
            }
            let word = format!("{word:WORD_ROOM$}");
            let word = colour.map_or_else(|| word.clone(), |colour| screen.painted(colour, &word));
            screen.text(&format!("{time:>TIME_ROOM$}{:GAP$}{word}{:GAP$}", "", ""), None, &text)?;
            for detail in details {
                screen.text(&" ".repeat(TIME_ROOM + WORD_ROOM + 2 * GAP), None, &detail)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::Sheet, *};

    #[test]
    fn each_step_is_told_once_with_what_stands_below_it() {
        let results = Sheet::default();
        let mut screen = Screen::on_paper(&results, &Sheet::default());
        let mut told = Told::default();
        let cut = || Step::new("cut".to_owned(), "cut", None, "claim data".to_owned());
        told.tell([cut()], Some(Duration::from_millis(35)), &mut screen).unwrap();
        let failed = Step {
            details: vec!["| no".to_owned()],
            ..Step::new("end".to_owned(), "FAILED", None, "exit code 1".to_owned())
        };
        told.tell([cut(), failed], None, &mut screen).unwrap();
        let wanted = "   +35ms  cut       claim data
       -  FAILED    exit code 1
                    | no
";
        assert_eq!(results.text(), wanted);
    }
}
