//! What a person sees while a snapshot is taken: a line for each step as it is made, and what is waited for.

use std::{collections::BTreeSet, io, time::Duration};

use boathook_api::{ApplicationSnapshot, ExecutionHook};
use kube::ResourceExt;

use super::{
    result,
    steps::{WORD_ROOM, steps, waiting_for},
};
use crate::output::{Colour, Screen, duration::shown};

/// Before each step stands how long after the beginning it was seen.
const TIME_ROOM: usize = 8;

pub(crate) struct View {
    pub(crate) screen: Screen,
    told: BTreeSet<String>,
}

impl View {
    pub(crate) fn new(screen: Screen) -> Self {
        Self { screen, told: BTreeSet::new() }
    }

    pub(super) fn created(&mut self, snapshot: &ApplicationSnapshot) -> io::Result<()> {
        self.screen.line(&format!("applicationsnapshot.boathook.dev/{} created", snapshot.name_any()))
    }

    /// Tells what was not told yet.
    pub(crate) fn show(
        &mut self,
        snapshot: &ApplicationSnapshot,
        hooks: &[&ExecutionHook],
        since: Duration,
    ) -> io::Result<()> {
        for step in steps(snapshot, hooks) {
            if !self.told.insert(step.key) {
                continue;
            }
            let time = format!("+{}", shown(since));
            let word = format!("{:WORD_ROOM$}", step.word);
            let word = step.colour.map_or_else(|| word.clone(), |colour| self.screen.painted(colour, &word));
            self.screen.line(&format!("{time:>TIME_ROOM$}  {word}  {}", step.text))?;
        }
        Ok(())
    }

    /// Paints what is waited for.
    pub(crate) fn progress(
        &mut self,
        snapshot: Option<&ApplicationSnapshot>,
        hooks: &[&ExecutionHook],
        since: Duration,
    ) {
        let waiting = snapshot.map_or_else(|| "creating".to_owned(), |snapshot| waiting_for(snapshot, hooks));
        self.screen.progress(&format!("{waiting} ({}s)", since.as_secs()));
    }

    pub(super) fn end(&mut self, snapshot: &ApplicationSnapshot) -> io::Result<()> {
        for (number, (colour, line)) in result::lines(snapshot).into_iter().enumerate() {
            let line = match (number, colour) {
                (0, _) => self.screen.painted(colour, &line),
                (_, Colour::Bad) => format!("  {}", self.screen.painted(colour, &line)),
                (_, Colour::Good | Colour::Odd) => format!("  {line}"),
            };
            self.screen.line(&line)?;
        }
        Ok(())
    }

    /// Nobody waits any more: what goes on by itself, and how to end it.
    pub(super) fn left(&mut self, name: &str, namespace: &str) {
        self.screen.note("the snapshot goes on without this command, and so does its thaw:");
        self.screen.note(&format!("  to look:      kubectl boathook timeline {name} -n {namespace}"));
        self.screen.note(&format!("  to thaw now:  kubectl boathook thaw {name} -n {namespace}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::steps::tests::snapshot, *};
    use crate::output::tests::Sheet;

    #[test]
    fn each_step_is_told_once() {
        let results = Sheet::default();
        let mut view = View::new(Screen::on_paper(&results, &Sheet::default()));
        let cutting = snapshot(&json!({"phase": "Cutting", "snapshots": [
            {"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly"}]}));
        view.show(&cutting, &[], Duration::from_millis(35)).unwrap();
        view.show(&cutting, &[], Duration::from_millis(1_240)).unwrap();
        assert_eq!(results.text(), "   +35ms  cutting   claim data\n");
    }
}
