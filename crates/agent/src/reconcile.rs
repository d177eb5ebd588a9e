//! One look at a PodNotification of this node: observe, decide, act, report.

use std::{sync::Arc, time::Duration};

use boathook_actions::place::cri::Runtime;
use boathook_api::PodNotification;
use boathook_decide::pod_notification::{Me, Observed, Role, decide, is_closed, is_unconfirmed};
use boathook_runtime::{
    Classified, Clock, ErrorClass, Reconcile, Reporter,
    execution::{Latest, Rooms, Runs},
};
use jiff::Timestamp;
use kube::{Client, ResourceExt, runtime::reflector::ObjectRef};
use snafu::Snafu;

use crate::{
    act::{self, ActError},
    declared::Digests,
    keeper::Keeper,
    ledger::Ledger,
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
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) digests: Digests,
    pub(crate) clock: Clock,
    pub(crate) reporter: Reporter,
}

#[derive(Debug, Snafu)]
pub(crate) enum Error {
    #[snafu(transparent)]
    Observe { source: ObserveError },
    #[snafu(transparent)]
    Act { source: ActError },
}

impl Classified for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Observe { source } => source.class(),
            Self::Act { source } => source.class(),
        }
    }
}

impl Reconcile<PodNotification> for Desk {
    type Error = Error;

    async fn reconcile(&self, seen: Arc<PodNotification>) -> Result<Option<Duration>, Error> {
        // Who had this name before it was taken away with force.
        let uid = seen.uid();
        self.keeper.retire_namesakes(&seen.namespace().unwrap_or_default(), &seen.name_any(), uid.as_deref());
        let me = Me { identity: &self.identity, role: Role::Agent };
        let mut seen = observe::observe(self, me, self.latest.of(&seen)).await?;
        let now = Timestamp::now();
        let decision = decide(
            &Observed {
                object: &seen.object,
                me,
                pod: seen.pod,
                run: seen.run,
                undo: seen.undo,
                sessions: seen.sessions,
                expires: seen.expires,
                room: seen.room.is_some(),
                // What is accepted was checked.
                author_checked: true,
            },
            now,
        );
        act::act(self, &mut seen.object, decision.effects, &mut seen.room).await?;
        self.reporter.report(&seen.object, decision.reports);
        close(&self.ledger, &seen.object);
        Ok(decision.again.map(|again| Duration::try_from(again.duration_since(now)).unwrap_or_default()))
    }

    /// Whoever took an object away with force did not take away what it did: it is undone all the same.
    fn gone(&self, object: &ObjectRef<PodNotification>) {
        self.keeper.retire_namesakes(object.namespace.as_deref().unwrap_or_default(), &object.name, None);
    }
}

/// Another may have closed the question of the undo, for a pod that is gone: the record goes too. But who closed it
/// because nobody heard of this node has not seen what is here: it is undone now.
fn close(ledger: &Ledger, object: &PodNotification) {
    let uid = object.uid().unwrap_or_default();
    if is_unconfirmed(object) {
        ledger.expire(&uid);
    } else if is_closed(object) {
        ledger.disarm(&uid);
    }
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
        close(&ledger, &closed("Armed"));
        assert_eq!(remaining(), Some(None));
        close(&ledger, &closed("ThawUnconfirmed"));
        assert_eq!(remaining(), Some(Some(Duration::ZERO)));
        close(&ledger, &closed("PodGone"));
        assert_eq!(remaining(), None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
