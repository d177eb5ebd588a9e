//! Time passes: everybody who gets any does what there is to do, when there is.

use jiff::{SignedDuration, Timestamp};

use super::{World, objects::Hook};
use crate::world::{
    process::{Luck, Who},
    request::Fate,
};

/// More than this without time passing, and they would go on for ever.
const RESTLESS: usize = 2_000;

/// Longer than anything is put off.
const LONG: SignedDuration = SignedDuration::from_mins(15);

/// As conditions have it.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).expect("a moment")
}

impl World {
    pub(crate) fn pass(&mut self, time: SignedDuration) {
        let until = self.now + time;
        loop {
            self.rest();
            match self.next_event().filter(|next| *next <= until) {
                Some(next) => self.now = next,
                None => break,
            }
        }
        self.now = until;
        self.rest();
    }

    /// The faults stop: everybody is there, and hooks succeed.
    pub(crate) fn settle(&mut self) {
        (self.settling, self.webhook, self.usual) = (true, true, Hook::Succeeds);
        self.deliver_late();
        if self.lease.is_none() {
            self.lease = Some(Who::First);
        }
        for who in [Who::First, Who::Second] {
            self.controller(who).luck = None;
            if self.controller(who).down {
                self.restart(who);
            }
            let now = self.now;
            self.controller(who).wake(now);
        }
        self.native.queued = true;
        self.pass(LONG);
        let settled = self.revision;
        let now = self.now;
        self.controllers.iter_mut().for_each(|controller| controller.wake(now));
        self.native.queued = true;
        self.pass(LONG);
        assert_eq!(self.revision, settled, "I12: writes go on though nothing happens: {:#?}", self.lifecycle);
        self.settling = false;
    }

    /// Everybody does what is due now, until nobody has anything to do.
    fn rest(&mut self) {
        for _ in 0..RESTLESS {
            let mut restless = self.hooks_go_on() | self.pods_go_on();
            if self.sets_changed {
                restless = true;
                self.sets_sync();
            }
            if self.native.queued || self.native.again.is_some_and(|again| again <= self.now) {
                restless = true;
                self.native_syncs(false);
            }
            restless |= self.go_on(Who::First);
            restless |= self.go_on(Who::Second);
            if !restless {
                return;
            }
        }
        panic!("I12: they do not come to rest: {:#?} {:#?} {:#?}", self.lifecycle, self.deployment, self.sets);
    }

    /// One thing that this controller has to do now.
    fn go_on(&mut self, who: Who) -> bool {
        let (now, leads) = (self.now, self.lease == Some(who));
        let controller = self.controller(who);
        if controller.down {
            return false;
        }
        if controller.begun.is_some() {
            self.end_look(who);
        } else if controller.doing.is_some() {
            match controller.luck.take() {
                None => self.act(who, Fate::Answered),
                Some(Luck::Fate(fate)) => self.act(who, fate),
                Some(Luck::Crash) => self.crash(who),
            }
        } else if leads && controller.wake.is_some_and(|wake| wake <= now) {
            self.look(who);
        } else {
            return false;
        }
        true
    }

    fn next_event(&self) -> Option<Timestamp> {
        let awake = self.controllers.iter().zip([Who::First, Who::Second]);
        let awake = awake.filter(|(controller, who)| !controller.down && self.lease == Some(*who));
        let wakes = awake.filter_map(|(controller, _)| controller.wake);
        let others = [self.native.again, self.next_of_pods(), self.next_of_hooks()].into_iter().flatten();
        wakes.chain(others).filter(|then| *then > self.now).min()
    }
}
