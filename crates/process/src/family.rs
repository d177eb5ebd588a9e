//! Who came of one process, as looks at `/proc` show it. Pure.
//!
//! One look finds its session and its descendants. Whoever left both between two looks is found only by what it took
//! along, or by a cgroup: that is the tree's to add.

use std::collections::BTreeSet;

use crate::snapshot::{Identity, Process};

#[derive(Clone, Debug)]
pub(crate) struct Family {
    first: Identity,
    /// All that were ever seen.
    known: BTreeSet<Identity>,
}

impl Family {
    pub(crate) fn of(first: Identity) -> Self {
        Self { first, known: [first].into() }
    }

    pub(crate) fn knows(&self, one: &Identity) -> bool {
        self.known.contains(one)
    }

    pub(crate) fn add(&mut self, others: impl IntoIterator<Item = Identity>) {
        self.known.extend(others);
    }

    /// Adds whoever belongs to it among these. `in_reach` says whether a process can belong to it at all: a session's
    /// number may come again elsewhere.
    pub(crate) fn observe(&mut self, all: &[Process], in_reach: impl Fn(i32) -> bool) {
        // A number is not given again while a session has it.
        let session_is_ours =
            !all.iter().any(|process| process.identity.pid == self.first.pid && process.identity != self.first);
        loop {
            let before = self.known.len();
            let new: Vec<Identity> = all
                .iter()
                .filter(|process| !self.known.contains(&process.identity))
                .filter(|process| session_is_ours && self.shares_session(process) || self.begot(process, all))
                .map(|process| process.identity)
                .filter(|identity| in_reach(identity.pid))
                .collect();
            self.known.extend(new);
            if self.known.len() == before {
                return;
            }
        }
    }

    fn shares_session(&self, process: &Process) -> bool {
        process.session == self.first.pid && process.identity.started >= self.first.started
    }

    fn begot(&self, process: &Process, all: &[Process]) -> bool {
        let parent = all.iter().find(|other| other.identity.pid == process.parent).map(|parent| parent.identity);
        // Nobody is older than who started them.
        parent.is_some_and(|parent| self.known.contains(&parent) && process.identity.started >= parent.started)
    }

    /// Those of it who have not ended.
    pub(crate) fn alive(&self, all: &[Process]) -> Vec<Identity> {
        let alive = all.iter().filter(|process| !process.ended && self.known.contains(&process.identity));
        alive.map(|process| process.identity).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, started: u64, parent: i32, session: i32) -> Process {
        Process { identity: Identity { pid, started }, parent, session, ended: false }
    }

    fn pids(family: &Family, all: &[Process]) -> Vec<i32> {
        family.alive(all).into_iter().map(|identity| identity.pid).collect()
    }

    #[test]
    fn descendants_and_the_session_belong_to_it() {
        let first = process(10, 100, 1, 10);
        let all = [
            process(1, 1, 0, 1),
            first,
            // Begun again from low numbers, and listed before its parent.
            process(5, 103, 12, 5),
            process(12, 102, 10, 12),
            // Its parent is gone, its session is not.
            process(14, 102, 1, 10),
            process(15, 102, 1, 1),
        ];
        let mut family = Family::of(first.identity);
        family.observe(&all, |_| true);
        assert_eq!(pids(&family, &all), [10, 5, 12, 14]);
    }

    #[test]
    fn who_was_seen_once_is_known_though_its_parent_is_gone() {
        let mut family = Family::of(Identity { pid: 10, started: 100 });
        let daemon = process(12, 101, 11, 12);
        family.observe(&[process(10, 100, 1, 10), process(11, 101, 10, 10), daemon], |_| true);
        let later = [process(12, 101, 1, 12), process(13, 102, 12, 13)];
        family.observe(&later, |_| true);
        assert_eq!(pids(&family, &later), [12, 13]);
    }

    #[test]
    fn a_number_that_came_again_is_somebody_else() {
        let mut family = Family::of(Identity { pid: 10, started: 100 });
        let others = [process(10, 200, 1, 10), process(11, 201, 10, 10)];
        family.observe(&others, |pid| pid != 11);
        assert_eq!(pids(&family, &others), [] as [i32; 0]);
    }

    #[test]
    fn who_has_ended_is_not_alive() {
        let ended = Process { ended: true, ..process(10, 100, 1, 10) };
        assert_eq!(Family::of(ended.identity).alive(&[ended]), []);
    }
}
