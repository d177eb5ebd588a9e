//! Between the writer and those who freeze it: who is frozen waits, and who freezes waits until nothing is written.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use crate::{
    book,
    error::{Doing, Result},
    note::{Note, millis},
    status::Status,
};

pub(crate) struct Gate {
    dir: PathBuf,
    note: Note,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// By a command, until one takes it back.
    frozen_since: Option<SystemTime>,
    /// How many sessions hold it frozen, as long as they last.
    holders: usize,
    writing: bool,
    records: u64,
}

impl State {
    fn is_shut(&self) -> bool {
        self.frozen_since.is_some() || self.holders > 0
    }

    fn status(&self) -> Status {
        Status { frozen_since: self.frozen_since.map(millis), holders: self.holders, records: self.records }
    }
}

impl Gate {
    /// As the book was left.
    pub(crate) fn of(dir: &Path, records: u64) -> Result<Self> {
        let note = Note::in_dir(dir);
        let state = State { frozen_since: note.read()?, holders: 0, writing: false, records };
        Ok(Self { dir: dir.to_owned(), note, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// For the writer, before a record: waits until it may.
    pub(crate) fn enter(&self) {
        let mut state = self.wait_while(self.lock(), State::is_shut);
        state.writing = true;
    }

    /// For the writer, in the midst of a record: takes its time, unless somebody waits for its end.
    pub(crate) fn pause(&self, time: Duration) {
        let shut = self.changed.wait_timeout_while(self.lock(), time, |state| !state.is_shut());
        drop(shut.unwrap_or_else(PoisonError::into_inner));
    }

    /// For the writer, after a record.
    pub(crate) fn leave(&self, records: u64) {
        let mut state = self.lock();
        (state.writing, state.records) = (false, records);
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn status(&self) -> Status {
        self.lock().status()
    }

    /// Freezes, and returns when nothing is written any more and all that was is on the disk. Noted first: a process
    /// that dies in between leaves a frozen book, which a thaw opens again.
    pub(crate) fn freeze(&self) -> Result<Status> {
        let mut state = self.lock();
        if state.frozen_since.is_none() {
            let now = SystemTime::now();
            self.note.write(now)?;
            state.frozen_since = Some(now);
            self.changed.notify_all();
        }
        self.settled(state)
    }

    pub(crate) fn thaw(&self) -> Result<Status> {
        let mut state = self.lock();
        self.note.remove()?;
        state.frozen_since = None;
        self.changed.notify_all();
        Ok(state.status())
    }

    /// Frozen until [`Gate::release`], whatever else freezes and thaws.
    pub(crate) fn hold(&self) -> Result<Status> {
        let mut state = self.lock();
        state.holders += 1;
        self.changed.notify_all();
        self.settled(state)
    }

    pub(crate) fn release(&self) -> Status {
        let mut state = self.lock();
        state.holders -= 1;
        self.changed.notify_all();
        state.status()
    }

    /// Thaws by itself what has been frozen for so long. Never returns but on failure.
    pub(crate) fn thaw_after(&self, time: Duration) -> Result<()> {
        loop {
            let state = self.wait_while(self.lock(), |state| state.frozen_since.is_none());
            let since = state.frozen_since.unwrap_or_else(SystemTime::now);
            let left = time.saturating_sub(since.elapsed().unwrap_or_default());
            if left.is_zero() {
                drop(state);
                println!("thawed by itself after {} s: {}", time.as_secs(), self.thaw()?);
            } else {
                let thawed = |state: &mut State| state.frozen_since == Some(since);
                drop(self.changed.wait_timeout_while(state, left, thawed));
            }
        }
    }

    /// Once the writer has left: nobody writes while the state is held.
    fn settled(&self, state: MutexGuard<'_, State>) -> Result<Status> {
        let state = self.wait_while(state, |state| state.writing && state.is_shut());
        if !state.is_shut() {
            return Err(io::Error::other("it was thawed meanwhile")).doing(|| "freeze".to_owned());
        }
        book::sync(&self.dir)?;
        Ok(state.status())
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        condition: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        self.changed.wait_while(state, |state| condition(state)).unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whole between any two lines: nothing here panics in between.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;
    use crate::scratch::Scratch;

    /// In the midst of a record.
    fn entered(dir: &Scratch) -> Arc<Gate> {
        book::Book::open(dir.path()).unwrap();
        let gate = Gate::of(dir.path(), 0).unwrap();
        gate.enter();
        Arc::new(gate)
    }

    fn freeze_begun(gate: &Arc<Gate>) -> thread::JoinHandle<Result<Status>> {
        let freezing = Arc::clone(gate);
        let freeze = thread::spawn(move || freezing.freeze());
        // Ends early: somebody waits.
        gate.pause(Duration::from_secs(60));
        freeze
    }

    #[test]
    fn who_freezes_waits_for_the_end_of_the_record() {
        let dir = Scratch::new("gate");
        let gate = entered(&dir);
        let freeze = freeze_begun(&gate);
        assert!(!freeze.is_finished());
        gate.leave(1);
        assert_eq!(freeze.join().unwrap().unwrap().records, 1);
    }

    #[test]
    fn a_freeze_that_was_taken_back_meanwhile_is_none() {
        let dir = Scratch::new("taken-back");
        let gate = entered(&dir);
        let freeze = freeze_begun(&gate);
        gate.thaw().unwrap();
        assert!(freeze.join().unwrap().unwrap_err().to_string().contains("thawed meanwhile"));
    }
}
