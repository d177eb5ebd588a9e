//! What must always hold, by the numbers of the design; and what must have come about when faults have stopped.

use boathook_api::{
    PodNotification,
    outcome::Work,
    pod_notification::{Executor, PodNotificationStatus, State},
    words::{UNDO_FINALIZER, condition, reason},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{World, held};
use crate::world::{is_closed, process::Who, run::Run};

/// How late an undo may start.
const LATE: SignedDuration = SignedDuration::from_secs(1);

/// How many writes each of the two phases may take.
const MOST_WRITES: usize = 5;

impl World {
    /// After every step.
    pub(crate) fn check_now(&self) {
        for (phase, writes) in ["the handlers' end", "the undo's end"].into_iter().zip(self.writes) {
            assert!(writes <= MOST_WRITES, "I13: {writes} writes until {phase}");
        }
        for (place, handler) in self.pods.handlers.iter().enumerate() {
            let twice = self.pods.handlers[..place].iter().any(|earlier| earlier.container == handler.container);
            assert!(!twice, "I10: the handler ran twice in `{}`", handler.container);
        }
    }

    /// Every version that is new since the last time, against the one before it.
    pub(crate) fn check_versions(&mut self) {
        for version in self.checked..self.server.newest() {
            let (Some(before), Some(after)) = (self.server.version(version), self.server.version(version + 1)) else {
                continue;
            };
            let (before, after) = (status(before), status(after));
            if before.state.is_terminal() {
                let kept = |status: &PodNotificationStatus| {
                    (status.state, status.complete_time.clone(), status.error.clone(), status.claim.clone())
                };
                assert_eq!(kept(&before), kept(&after), "I8: a terminal state changed");
                assert!(
                    !reasons(&before).any(|reason| reason == reason::UNDO_SUCCEEDED)
                        || reasons(&after).any(|reason| reason == reason::UNDO_SUCCEEDED),
                    "I8: what was undone is not undone"
                );
                assert!(
                    held::said(&before) != Some(false) || held::said(&after) == Some(false),
                    "what was lost is held"
                );
            } else if after.state == State::Succeeded {
                self.check_success(&after);
            }
        }
        self.checked = self.server.newest();
    }

    fn check_success(&self, status: &PodNotificationStatus) {
        let succeeded = |name: &str| self.pods.handlers.iter().any(|one| one.container == name && one.succeeded);
        for container in &status.containers {
            assert!(succeeded(&container.name), "I10: succeeded in `{}`, and nobody said so", container.name);
        }
        let nothing = reasons(status).any(|reason| reason == reason::NO_MATCHING_NOTIFIER);
        assert_eq!(status.containers.is_empty(), nothing, "only what nobody declares succeeds without a container");
    }

    /// Handlers are about to start: a claim of this very process was written before anyone revoked.
    pub(crate) fn check_start(&mut self, who: Who, work: &[(String, Work)]) {
        let identity = self.process(who).identity(who);
        let claim = |version: usize| status(self.server.version(version)?).claim;
        // One that it never heard of is written again: the last one is what it goes by.
        let is_written = |version: &usize| {
            let (before, after) = (version.checked_sub(1).and_then(claim), claim(*version));
            before != after && after.is_some_and(|claim| claim.holder == identity)
        };
        let claimed = (0..=self.server.newest()).rev().find(is_written);
        let claimed = claimed.and_then(|version| self.server.version(version));
        let claimed = claimed.expect("I4: a handler starts without a claim");
        assert!(!claimed.spec.undo_requested, "I4: a handler starts after it was revoked");
        assert!(claimed.metadata.deletion_timestamp.is_none(), "I4: a handler starts after its object was deleted");
        assert!(self.enabled || who == Who::Agent, "a controller starts a handler with the gate off");
        // The agent's undo counts from here on.
        let expired = who != Who::Agent && expiry(claimed).is_some_and(|expires| expires <= self.now);
        assert!(!expired, "I4: a handler starts after its undo has expired");
        let recorded = status(claimed).containers;
        for (container, _) in work {
            let record = recorded.iter().find(|record| record.name == *container);
            let armed = record.is_some_and(|record| record.undo.is_some() == claimed.spec.undo.is_some());
            assert!(armed, "I1: the handler starts in `{container}` before its undo is armed");
        }
        let held = claimed.finalizers().iter().any(|finalizer| finalizer == UNDO_FINALIZER);
        assert!(held || claimed.spec.undo.is_none(), "I1: a handler starts while nothing holds its object");
    }

    /// An undo is about to start: somebody asked for it, its time has come, or the handler is not known to hold; or it
    /// was decided on without the lease.
    pub(crate) fn check_undo(&mut self, who: Who, thaw_only: bool) {
        let object = self.server.last_seen().clone();
        let now = self.now;
        let status = status(&object);
        let revoked = object.spec.undo_requested || object.metadata.deletion_timestamp.is_some();
        let gone = self.server.current().is_none();
        let process = self.process(who);
        let ended_badly = match &process.memory.run {
            Run::Ended { results, .. } => results.iter().any(|(_, ended)| ended.outcome.failure().is_some()),
            Run::Idle | Run::Running(_) => false,
        };
        // Whatever was the reason for the first round: it goes on until it succeeds.
        let next_round = matches!(process.memory.undo, Run::Ended { .. });
        let expires = process.ledger.as_ref().map_or_else(|| expiry(&object), |record| record.expires);
        let expired = expires.is_some_and(|expires| expires <= now);
        let let_go = self.is_to_be_let_go(who);
        assert!(
            revoked
                || gone
                || expired
                || ended_badly
                || next_round
                || thaw_only
                || let_go
                || status.state == State::Failed,
            "an undo starts that nobody needs: {who:?} {object:#?}"
        );
    }

    /// I2: as time passes, an expired undo is started by whoever can.
    pub(crate) fn check_expiry(&self) {
        let Some(object) = self.server.current() else { return };
        let who = match self.plan.executor {
            Executor::Agent => Who::Agent,
            Executor::Api => match self.lease {
                Some(leader) => leader,
                None => return,
            },
        };
        let process = &self.processes[who as usize];
        let expires = match self.plan.executor {
            Executor::Agent => process.ledger.as_ref().and_then(|record| record.expires),
            Executor::Api => expiry(object),
        };
        let Some(expires) = expires else { return };
        let late = self.now > expires.max(process.memory.steady_since) + LATE;
        if !late || !process.is_awake() || is_closed(object) {
            return;
        }
        for handler in self.pods.handlers.iter().filter(|handler| self.pods.runs(&handler.pod)) {
            let undone = self.pods.undos.iter().any(|undo| {
                let same = (&undo.pod, &undo.container) == (&handler.pod, &handler.container);
                same && undo.started > handler.started
            });
            assert!(undone, "I2: `{}` expired at {expires}, and it is {}", handler.container, self.now);
        }
    }

    /// I15: as time passes, what is owed to a pod that was told to end is undone.
    pub(crate) fn check_ending(&self) {
        let (Some(object), Some(since)) = (self.server.current(), self.pods.ending_since) else { return };
        let Some(leader) = self.lease else { return };
        let needs_agent = self.plan.executor == Executor::Agent;
        let needed = if needs_agent { vec![leader, Who::Agent] } else { vec![leader] };
        let needed = || needed.iter().map(|who| &self.processes[*who as usize]);
        let steady_since = needed().map(|process| process.memory.steady_since).fold(since, Timestamp::max);
        let can = needed().all(|process| process.is_awake()) && !(needs_agent && self.agent_is_cut_off);
        if !can || self.now <= steady_since + LATE || self.plan.undo.is_none() || is_closed(object) {
            return;
        }
        for handler in self.pods.handlers.iter().filter(|handler| self.pods.runs(&handler.pod)) {
            let undone = self.pods.undos.iter().any(|undo| {
                let same = (&undo.pod, &undo.container) == (&handler.pod, &handler.container);
                same && undo.started > handler.started
            });
            assert!(
                undone,
                "I15: pod told to end at {since}, and `{}` is not undone at {}",
                handler.container, self.now
            );
        }
    }

    /// When faults have stopped.
    pub(crate) fn check_settled(&self) {
        let object = self.server.last_seen();
        let status = status(object);
        let gone = self.server.current().is_none();
        assert!(gone || status.state.is_terminal(), "I12: still not complete: {object:#?}");
        let held = self.server.current().is_some_and(|object| !object.finalizers().is_empty());
        let armed = status.claim.is_some() && object.spec.undo.is_some() && !is_closed(object);
        assert_eq!(held, armed, "I9: a finalizer is there exactly while an undo is owed: {object:#?}");
        let revoked = object.spec.undo_requested || object.metadata.deletion_timestamp.is_some();
        let expires = object.spec.undo.as_ref().is_some_and(|undo| undo.after_seconds.is_some());
        let due = revoked || expires || status.state == State::Failed || self.says_not_held();
        assert!(!(armed && due), "I12: the undo has not run: {object:#?}");
        if due {
            self.check_undone();
        }
        self.check_held();
        for process in &self.processes {
            let memory = &process.memory;
            assert!(memory.run.is_idle() && memory.undo.is_idle(), "something is remembered for ever: {memory:#?}");
        }
    }

    /// When faults have stopped and the object was deleted.
    pub(crate) fn check_gone(&self) {
        assert!(self.server.current().is_none(), "I9: it is still there: {:#?}", self.server.current());
        self.check_held();
        self.check_undone();
    }

    /// I1: whatever was done has been taken back.
    fn check_undone(&self) {
        let object = self.server.last_seen();
        let given_up =
            reasons(&status(object)).any(|reason| reason == reason::ABANDONED || reason == reason::THAW_UNCONFIRMED);
        if object.spec.undo.is_none() || given_up || self.abandoned {
            return;
        }
        for handler in self.pods.handlers.iter().filter(|handler| self.pods.runs(&handler.pod)) {
            let taken_back = self.pods.undos.iter().any(|undo| {
                let same = (&undo.pod, &undo.container) == (&handler.pod, &handler.container);
                same && undo.succeeded && undo.started > handler.ended.unwrap_or(handler.started)
            });
            assert!(taken_back, "I1: not taken back: {handler:#?}, undos {:#?}", self.pods.undos);
        }
    }
}

fn status(object: &PodNotification) -> PodNotificationStatus {
    object.status.clone().unwrap_or_default()
}

/// When its undo runs by itself, by the claim.
pub(crate) fn expiry(object: &PodNotification) -> Option<Timestamp> {
    let after = object.spec.undo.as_ref()?.after_seconds?;
    Some(status(object).claim?.time.0 + SignedDuration::from_secs(after.into()))
}

fn reasons(status: &PodNotificationStatus) -> impl Iterator<Item = &str> {
    let undone_or_complete = |kind: &str| kind == condition::UNDONE || kind == condition::COMPLETE;
    status.conditions.iter().filter(move |one| undone_or_complete(&one.type_)).map(|one| one.reason.as_str())
}
