//! One look at a PodNotification of this node: observe, decide, act, report.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use boathook_actions::place::cri::Runtime;
use boathook_api::PodNotification;
use boathook_decide::pod_notification::{
    Me, Observed, Role, SeenPod, decide, decide_gone, is_closed, is_unconfirmed, last_round_at, recorded_moments,
    undo_due_at,
};
use boathook_runtime::{
    Classified, Clock, Deadlines, ErrorClass, Reconcile, Reporter,
    execution::{Latest, Rooms, Runs, apply_here},
};
use jiff::{SignedDuration, Timestamp};
use kube::{Client, ResourceExt, runtime::reflector::ObjectRef};
use snafu::{ResultExt, Snafu};
use tokio::sync::mpsc;

use crate::{
    act::{self, ActError},
    declared::Digests,
    keeper::Keeper,
    ledger::{Ledger, LedgerError},
    observe::{self, ObserveError},
};

/// Where the node's objects come to be looked at.
pub(crate) struct Desk {
    pub(crate) client: Client,
    pub(crate) identity: String,
    pub(crate) node: String,
    pub(crate) runtime: Runtime,
    pub(crate) runs: Runs,
    pub(crate) rooms: Rooms,
    pub(crate) latest: Latest,
    /// Takes objects that are to be looked at again.
    pub(crate) look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) digests: Digests,
    pub(crate) clock: Clock,
    pub(crate) deadlines: Deadlines<PodNotification>,
    pub(crate) reporter: Reporter,
}

#[derive(Debug, Snafu)]
pub(crate) enum Error {
    #[snafu(transparent)]
    Observe { source: ObserveError },
    #[snafu(transparent)]
    Act { source: ActError },
    #[snafu(display("failed to store the repetition of an undo"))]
    Ledger { source: LedgerError },
}

impl Classified for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Observe { source } => source.class(),
            Self::Act { source } => source.class(),
            Self::Ledger { .. } => ErrorClass::Transient,
        }
    }
}

impl Desk {
    /// Moments that the object records, where deadlines count from them by this process' own clock.
    fn moved(&self, object: &PodNotification, wall: Timestamp) -> BTreeMap<Timestamp, Timestamp> {
        self.deadlines.moved(&ObjectRef::from_obj(object), &recorded_moments(object), wall)
    }
}

impl Reconcile<PodNotification> for Desk {
    type Error = Error;

    async fn reconcile(&self, seen: Arc<PodNotification>) -> Result<Option<Duration>, Error> {
        // Who had this name before it was taken away with force.
        let uid = seen.uid();
        self.end_gone(&ObjectRef::from_obj(&*seen), uid.as_deref());
        self.moved(&seen, Timestamp::now());
        let me = Me { identity: &self.identity, role: Role::Agent };
        let mut seen = observe::observe(self, me, self.latest.of(&seen)).await?;
        let now = Timestamp::now();
        let moved = self.moved(&seen.object, now);
        let decision = decide(
            &Observed {
                object: &seen.object,
                me,
                pod: seen.pod,
                run: seen.run,
                undo: seen.undo,
                sessions: seen.sessions,
                expires: seen.expires,
                moved,
                agent_due_since: None,
                room: seen.room.is_some(),
                // What is accepted was checked.
                author_checked: true,
                undecided: vec![],
            },
            now,
        );
        act::act(self, &mut seen.object, decision.effects, &mut seen.room).await?;
        self.reporter.report(&seen.object, decision.reports);
        let wall = Timestamp::now();
        let once_more = last_round_at(&seen.object, &self.moved(&seen.object, wall)).map(|due| time_until(due, wall));
        close(&self.ledger, &seen.object, once_more, self.clock.now()).context(LedgerSnafu)?;
        Ok(decision.again.map(|again| Duration::try_from(again.duration_since(now)).unwrap_or_default()))
    }

    fn urgent_at(&self, object: &PodNotification) -> Option<Timestamp> {
        undo_due_at(object)
    }

    /// Whoever took an object away with force did not take away what it did: it is undone all the same.
    fn gone(&self, object: &ObjectRef<PodNotification>) {
        self.rooms.leave(object);
        self.deadlines.forget(object);
        self.latest.forget(object);
        self.end_gone(object, None);
    }
}

impl Desk {
    /// Ends and undoes what runs for objects of this name but the one with this UID: they are gone.
    fn end_gone(&self, object: &ObjectRef<PodNotification>, except: Option<&str>) {
        self.keeper.retire_namesakes(object.namespace.as_deref().unwrap_or_default(), &object.name, except);
        for object in self.runs.begun_for(object) {
            let uid = object.uid().unwrap_or_default();
            // The keeper ends and forgets what is in the ledger.
            if except == Some(&uid) || self.ledger.get(&uid).is_some() {
                continue;
            }
            let (run, undo) = self.runs.progress(&uid);
            let observed = Observed {
                object: &object,
                me: Me { identity: &self.identity, role: Role::Agent },
                pod: SeenPod::Unknown,
                run,
                undo,
                sessions: self.runs.sessions(&uid),
                expires: None,
                moved: BTreeMap::new(),
                agent_due_since: None,
                room: false,
                author_checked: true,
                undecided: vec![],
            };
            let now = Timestamp::now();
            let decision = decide_gone(&observed, now);
            for effect in decision.effects {
                apply_here(&self.runs, &object, effect);
            }
            // No watch reports this object again.
            if let Some(again) = decision.again {
                let (look_again, reference) = (self.look_again.clone(), ObjectRef::from_obj(&object));
                let pause = Duration::try_from(again.duration_since(now)).unwrap_or_default();
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    let _ = look_again.send(reference);
                });
            }
        }
    }
}

/// Another may have closed the question of the undo, for a pod that is gone: the record goes too. But who closed it
/// because nobody heard of this node has not seen what is here: it is undone now. And what may have outlived its undo is
/// armed until it is undone once more, after this time if at all. `now` is a moment of this boot.
fn close(
    ledger: &Ledger,
    object: &PodNotification,
    once_more: Option<Duration>,
    now: Duration,
) -> Result<(), LedgerError> {
    let uid = object.uid().unwrap_or_default();
    if is_unconfirmed(object) {
        ledger.expire(&uid);
    } else if is_closed(object) {
        match once_more {
            Some(remaining) => ledger.postpone(&uid, now + remaining, &that_may_go_on(object))?,
            None => ledger.disarm(&uid),
        }
    }
    Ok(())
}

fn time_until(due: Timestamp, wall: Timestamp) -> Duration {
    Duration::try_from(due.duration_since(wall).max(SignedDuration::ZERO)).unwrap_or_default()
}

fn that_may_go_on(object: &PodNotification) -> Vec<&str> {
    let records = object.status.iter().flat_map(|status| &status.containers);
    let may_go_on = records.filter(|record| record.process_may_remain == Some(true));
    may_go_on.map(|record| record.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::ledger::Record;

    fn closed(why: &str) -> PodNotification {
        let time = "2026-01-01T00:00:00Z";
        let undone =
            json!({"type": "Undone", "status": "Unknown", "reason": why, "message": "", "lastTransitionTime": time});
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1",
            "kind": "PodNotification",
            "metadata": {"name": "one", "namespace": "default", "uid": "a"},
            "spec": {"podName": "db-0", "notifier": "freeze", "undo": {"notifier": "thaw"}},
            "status": {"state": "Succeeded", "conditions": [undone]},
        }))
        .unwrap()
    }

    #[test]
    fn what_was_closed_without_a_word_of_this_node_is_undone_now() {
        let dir = std::env::temp_dir().join(format!("boathook-closing-{}", std::process::id()));
        let ledger = Ledger::open(&dir, "first").unwrap();
        ledger.arm(Record::of(&closed("Armed"), "first", Duration::ZERO).unwrap()).unwrap();
        let remaining = || ledger.get("a").map(|record| record.remaining("first", Duration::ZERO));
        close(&ledger, &closed("Armed"), None, Duration::ZERO).unwrap();
        assert_eq!(remaining(), Some(None));
        close(&ledger, &closed("ThawUnconfirmed"), None, Duration::ZERO).unwrap();
        assert_eq!(remaining(), Some(Some(Duration::ZERO)));
        close(&ledger, &closed("PodGone"), None, Duration::ZERO).unwrap();
        assert_eq!(remaining(), None);
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// Undone at once, when its handler had not ended in time; it may go on, or not.
    fn undone(process_may_remain: Option<bool>) -> PodNotification {
        let (now, mut object) = (Timestamp::now(), closed("UndoSucceeded"));
        let undo = json!({"action": {"exec": {"command": ["thaw"]}}, "startTime": now, "succeeded": true});
        let record = json!({"name": "main", "processMayRemain": process_may_remain, "undo": undo});
        let mut status = serde_json::to_value(object.status.take()).unwrap();
        status["claim"] = json!({"holder": "me", "time": now});
        status["completeTime"] = json!(now);
        status["containers"] = json!([record]);
        object.status = serde_json::from_value(status).unwrap();
        object
    }

    #[test]
    fn what_may_have_outlived_its_undo_stays_armed_until_it_is_undone_once_more() {
        let dir = std::env::temp_dir().join(format!("boathook-last-round-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let ledger = Ledger::open(&dir, "first").unwrap();
        let now = Duration::from_secs(1_000);
        ledger.arm(Record::of(&undone(None), "first", now).unwrap()).unwrap();
        act::undo_is_over(&ledger, &undone(Some(true)));
        close(&ledger, &undone(Some(true)), Some(Duration::from_secs(30)), now).unwrap();
        let record = ledger.get("a").expect("it is armed");
        assert!(record.last_round);
        assert_eq!(record.remaining("first", now), Some(Duration::from_secs(30)));
        act::undo_is_over(&ledger, &undone(None));
        assert_eq!(ledger.get("a"), None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
