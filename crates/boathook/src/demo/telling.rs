//! How the story is told: numbered steps, what each does and found, and a table of all of it at the end.

use std::{future::Future, io, pin::pin, time::Duration};

use anyhow::{Result, bail};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    output::{Colour, Screen, duration::shown, table::Columns},
    timeline::{self, Timeline},
};

/// How often the progress is painted.
const FRAME: Duration = Duration::from_millis(100);

/// How long one thing may take: far more than it does, on a machine that compiles on all cores meanwhile.
const DEADLINE: Duration = Duration::from_secs(300);

pub(super) struct Teller {
    screen: Screen,
    begun: Instant,
    rows: Vec<Row>,
}

/// A step that is over.
struct Row {
    title: &'static str,
    found: Result<String, String>,
    took: Duration,
}

impl Teller {
    pub(super) fn new(screen: Screen) -> Self {
        Self { screen, begun: Instant::now(), rows: Vec::new() }
    }

    /// Begins the next step.
    pub(super) fn step(&mut self, title: &'static str) -> io::Result<Instant> {
        let number = self.rows.len() + 1;
        if number > 1 {
            self.screen.line("")?;
        }
        self.screen.line(&format!("{number}. {title}"))?;
        Ok(Instant::now())
    }

    /// Ends the step that was begun at this time, with what it found, or why it could not.
    pub(super) fn end(&mut self, title: &'static str, begun: Instant, found: Result<String, String>) -> io::Result<()> {
        match &found {
            Ok(found) => self.screen.text("   => ", Some(Colour::Good), found)?,
            Err(error) => self.screen.text("   => ", Some(Colour::Bad), &format!("FAILED: {error}"))?,
        }
        self.rows.push(Row { title, found, took: begun.elapsed() });
        Ok(())
    }

    /// What is done, or was seen on the way.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        self.screen.text("   ", None, text)
    }

    /// Something that should make one frown.
    pub(super) fn say_odd(&mut self, text: &str) -> io::Result<()> {
        self.screen.text("   ", Some(Colour::Odd), text)
    }

    /// A line that belongs to no step.
    pub(super) fn aside(&mut self, text: &str) -> io::Result<()> {
        self.screen.line(text)
    }

    /// Who was frozen from when to when.
    pub(super) fn draw(&mut self, title: &str, timeline: &Timeline) -> Result<()> {
        self.screen.line("")?;
        self.screen.line(title)?;
        timeline::print(timeline, &mut self.screen)
    }

    /// Waits for something, not for ever, and paints what it waits for.
    pub(super) async fn wait<T>(&mut self, what: &str, done: impl Future<Output = Result<T>>) -> Result<T> {
        let begun = Instant::now();
        let mut done = pin!(done);
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let outcome = loop {
            tokio::select! {
                outcome = &mut done => break outcome,
                _ = frames.tick() => {}
            }
            if begun.elapsed() > DEADLINE {
                self.screen.clear();
                bail!("{what}: not done within {}", shown(DEADLINE));
            }
            self.screen.progress(&format!("   {what} ({}s)", begun.elapsed().as_secs()));
        };
        self.screen.clear();
        outcome
    }

    /// The table of all steps, and the verdict.
    pub(super) fn summary(&mut self, verified: bool) -> io::Result<()> {
        let cells = |title: &str, took: &str, found: &str| [title, took, found].map(str::to_owned).to_vec();
        let mut rows = vec![cells("STEP", "TIME", "FOUND")];
        rows.extend(self.rows.iter().map(|row| {
            let found = row.found.as_ref().map_or("FAILED", String::as_str);
            cells(row.title, &shown(row.took), found)
        }));
        self.screen.line("")?;
        let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
        for (lead, found) in rows.iter().map(|row| columns.parts(row)) {
            self.screen.text(&lead, None, found)?;
        }
        let took = shown(self.begun.elapsed());
        let verdict = match verified {
            true => self.screen.painted(Colour::Good, &format!("everything was verified ({took})")),
            false => self.screen.painted(Colour::Bad, &format!("not everything could be verified ({took})")),
        };
        self.screen.line(&verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::Sheet;

    #[tokio::test]
    async fn steps_are_numbered_and_summed_up() {
        let sheet = Sheet::default();
        let mut teller = Teller::new(Screen::on_paper(&sheet, &sheet));
        let begun = teller.step("A cluster").unwrap();
        teller.say("it starts").unwrap();
        teller.end("A cluster", begun, Ok("it serves".to_owned())).unwrap();
        let begun = teller.step("A snapshot").unwrap();
        let waited = teller.wait("cutting", async { bail!("no disk") as Result<()> }).await;
        teller.end("A snapshot", begun, Err(waited.unwrap_err().to_string())).unwrap();
        teller.summary(false).unwrap();
        let said = sheet.text();
        let story = "1. A cluster\n   it starts\n   => it serves\n\n2. A snapshot\n   => FAILED: no disk\n\nSTEP";
        assert!(said.starts_with(story), "{said}");
        let last = said.lines().find(|line| line.starts_with("A snapshot   ")).unwrap();
        assert!(last.ends_with("FAILED") && said.contains("\nnot everything could be verified ("), "{said}");
    }
}
