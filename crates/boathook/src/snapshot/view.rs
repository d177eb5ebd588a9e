//! What a person sees while a snapshot is taken: a line for each step as it is made, and what is waited for.

use std::{io, time::Duration};

use boathook_api::{ApplicationSnapshot, ExecutionHook};
use kube::ResourceExt;

use super::{
    result,
    steps::{steps, waiting_for},
};
use crate::{
    cli::called_as,
    output::{Colour, Screen, steps::Told},
};

pub(crate) struct View {
    pub(crate) screen: Screen,
    told: Told,
}

impl View {
    pub(crate) fn new(screen: Screen) -> Self {
        Self { screen, told: Told::default() }
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
        self.told.tell(steps(snapshot, hooks), Some(since), &mut self.screen)
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
            match (number, colour) {
                (0, _) => self.screen.text("", Some(colour), &line)?,
                (_, Colour::Bad) => self.screen.text("  ", Some(colour), &line)?,
                (_, Colour::Good | Colour::Odd) => self.screen.text("  ", None, &line)?,
            }
        }
        Ok(())
    }

    /// Nobody waits any more: what goes on by itself, and how to end it.
    pub(super) fn left(&mut self, name: &str, namespace: &str) {
        self.screen.note("the snapshot and its thaw continue without this command:");
        let boathook = called_as();
        self.screen.note(&format!("  to look at it:  {boathook} timeline {name} -n {namespace}"));
        self.screen.note(&format!("  to thaw it now: {boathook} thaw {name} -n {namespace}"));
    }
}
