//! A hold on what an exec started, so that all of it can be ended.

use std::{collections::BTreeSet, io, time::Duration};

use boathook_process::{Cgroup, Identity, Process, Tree, arguments, find_by_argument, pid_namespace, processes};
use tokio::time::Instant;

use super::{
    gate::{self, Gate},
    notes::{Note, Notes},
};

/// How soon a process that was just started is looked for, and looked for again: it takes a few milliseconds to come.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LATER_LOOKS: Duration = Duration::from_millis(20);
/// By then who is looked for may have a number that somebody had before.
const LOOK_AT_ALL: Duration = Duration::from_secs(1);
/// How soon, and then how often, a tree without a cgroup is looked at: who leaves session and parent in between is not
/// seen to do so, and must be found by what it took along.
const FIRST_WATCH: Duration = Duration::from_millis(100);
const LATER_WATCHES: Duration = Duration::from_secs(1);

/// Which container it is about, as this host sees it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) container_id: String,
    pub(super) pid: i32,
    /// Where it is noted what runs there.
    pub(super) notes: Option<Notes>,
}

pub(super) enum Hold {
    /// It was found, and is held from its beginning.
    Held { tree: Tree, has_cgroup: bool, note: Option<Note> },
    /// Without a gate: it is still to be found among those who came after the exec began.
    Sought(Search),
}

impl Hold {
    /// Waits at the gate until whoever stands there is held. Nothing of the command has run then. `before` are the
    /// numbers of those who were there already.
    pub(super) async fn at_gate(place: &Place, gate: &Gate, mut before: BTreeSet<i32>) -> io::Result<Self> {
        let begun = Instant::now();
        let mut pause = FIRST_LOOK;
        loop {
            match find_by_argument(&gate.id, &before)? {
                Some(process) => return Self::of(place, process.identity, Some(gate::mark(&gate.id)), &gate.id),
                None => tokio::time::sleep(pause).await,
            }
            pause = LATER_LOOKS.min(pause * 2);
            if begun.elapsed() > LOOK_AT_ALL {
                before.clear();
            }
        }
    }

    fn of(place: &Place, first: Identity, mark: Option<String>, id: &str) -> io::Result<Self> {
        let cgroup = cgroup(place, first, id);
        let has_cgroup = cgroup.is_some();
        let tree = Tree::of(first, mark, cgroup)?;
        let note = place.notes.as_ref().map(|notes| notes.write(id, first));
        Ok(Self::Held { tree, has_cgroup, note })
    }

    /// Looks at it while it runs, as often as is needed. Never returns.
    pub(super) async fn watch(&mut self, place: &Place) {
        let (mut pause, mut watch) = (FIRST_LOOK, FIRST_WATCH);
        loop {
            match self {
                // Nobody gets away.
                Self::Held { has_cgroup: true, .. } => std::future::pending().await,
                Self::Held { tree, .. } => {
                    tokio::time::sleep(watch).await;
                    watch = LATER_WATCHES.min(watch * 2);
                    if let Err(error) = tree.observe() {
                        tracing::debug!(%error, "failed to list the processes of a command");
                    }
                }
                Self::Sought(_) => {
                    tokio::time::sleep(pause).await;
                    pause = LATER_LOOKS.min(pause * 2);
                    self.seek(place);
                }
            }
        }
    }

    fn seek(&mut self, place: &Place) {
        let Self::Sought(search) = self else { return };
        let found = search.look().and_then(|found| match found {
            Some(first) => Self::of(place, first, None, &search.id).map(Some),
            None => Ok(None),
        });
        match found {
            Ok(Some(held)) => *self = held,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "failed to search for the first process of a command"),
        }
    }

    /// Ends all of it. The error says what may remain.
    pub(super) async fn end(mut self, place: &Place) -> Result<(), String> {
        self.seek(place);
        match self {
            Self::Held { tree, note, .. } => {
                tree.end().await.map_err(|remaining| remaining.to_string())?;
                if let Some(note) = note {
                    note.close();
                }
                Ok(())
            }
            Self::Sought(_) => Err("the agent did not find its first process in the container".to_owned()),
        }
    }

    pub(super) fn release(self) {
        match self {
            Self::Held { tree, note, .. } => {
                tree.release();
                if let Some(note) = note {
                    note.close();
                }
            }
            Self::Sought(_) => {}
        }
    }
}

/// The name of the cgroup of the exec with this id.
pub(super) fn cgroup_name(id: &str) -> String {
    format!("boathook-{id}")
}

/// One of its own inside the container's, if that can be had: it is the surest hold, and not the only one.
fn cgroup(place: &Place, first: Identity, id: &str) -> Option<Cgroup> {
    let made = Cgroup::within(place.pid, &place.container_id, &cgroup_name(id));
    let made = made.inspect_err(|error| tracing::debug!(%error, "failed to create a cgroup in the container's cgroup"));
    let cgroup = made.ok().flatten()?;
    match cgroup.add(first.pid) {
        Ok(()) => Some(cgroup),
        Err(error) => {
            tracing::debug!(%error, "failed to move a command into a cgroup");
            cgroup.remove().ok();
            None
        }
    }
}

/// Looks for a command's first process: it has its arguments, came after the exec began, is in the container's pid
/// namespace, and does not descend from the container's own first process. Two equal commands that are started at
/// once cannot be told apart; either may be taken for the other.
pub(super) struct Search {
    id: String,
    command: Vec<String>,
    container_pid: i32,
    namespace: String,
    before: BTreeSet<Identity>,
}

impl Search {
    /// To be made before the exec begins.
    pub(super) fn new(place: &Place, command: &[String]) -> io::Result<Self> {
        Ok(Self {
            id: Gate::new().id,
            command: command.to_owned(),
            container_pid: place.pid,
            namespace: pid_namespace(place.pid)?,
            before: processes()?.into_iter().map(|process| process.identity).collect(),
        })
    }

    fn look(&self) -> io::Result<Option<Identity>> {
        let all = processes()?;
        let new = all.iter().filter(|process| !process.ended && !self.before.contains(&process.identity));
        let of_container = new.filter(|process| !descends(process, self.container_pid, &all));
        let pid_and_start = of_container.map(|process| process.identity).filter(|identity| {
            pid_namespace(identity.pid).is_ok_and(|namespace| namespace == self.namespace)
                && arguments(identity.pid).is_some_and(|arguments| arguments == self.command)
        });
        Ok(pid_and_start.min_by_key(|identity| identity.started))
    }
}

fn descends(process: &Process, from: i32, all: &[Process]) -> bool {
    let mut one = *process;
    // As many steps as there are processes: a look at the whole is not one moment, and may show a circle.
    for _ in 0..all.len() {
        if one.identity.pid == from || one.parent == from {
            return true;
        }
        match all.iter().find(|other| other.identity.pid == one.parent) {
            Some(parent) => one = *parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descent_is_followed_to_its_end() {
        let process =
            |pid, parent| Process { identity: Identity { pid, started: 1 }, parent, session: 0, ended: false };
        let all = [
            process(1, 0),
            process(10, 1),
            process(11, 10),
            process(12, 11),
            process(20, 1),
            process(30, 31),
            process(31, 30),
        ];
        assert!(descends(&all[3], 10, &all) && descends(&all[1], 10, &all));
        assert!(!descends(&all[4], 10, &all) && !descends(&all[5], 10, &all));
    }
}
