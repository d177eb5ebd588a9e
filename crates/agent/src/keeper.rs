//! Keeps the ledger's promises: whatever is armed is undone when its time has come, with or without an API server.
//!
//! It is apart from the run loop on purpose: that one waits for writes, and this one must not. Both start undos
//! through the same [`Runs`], which starts none twice at once.

use std::{collections::HashSet, sync::Arc, time::Duration};

use boathook_api::outcome::{Outcome, Work};
use boathook_api::pod_notification::{ErrorType, Retry};
use boathook_decide::pod_notification::Progress;
use boathook_runtime::{Clock, execution::Runs};
use tokio::task::JoinSet;

use crate::ledger::{Ledger, Record};

/// Between two rounds of an undo that fails: from one second, doubling, up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(crate) struct Keeper {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) runs: Runs,
    pub(crate) clock: Clock,
}

impl Keeper {
    /// Watches over the ledger, for ever. What is overdue already runs first.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut changes = self.ledger.changes();
        let mut begun = HashSet::new();
        let mut undoing = JoinSet::new();
        loop {
            let records = self.ledger.all();
            begun.retain(|uid| records.iter().any(|record| &record.uid == uid));
            let now = self.clock.now();
            let open = records.into_iter().filter(|record| !begun.contains(&record.uid));
            let timed = open.filter_map(|record| Some((record.remaining(self.ledger.boot(), now)?, record)));
            let (due, later): (Vec<_>, Vec<_>) = timed.partition(|(remaining, _)| remaining.is_zero());
            for (_, record) in due {
                begun.insert(record.uid.clone());
                undoing.spawn(Arc::clone(&self).undo(record));
            }
            let next = later.into_iter().map(|(remaining, _)| remaining).min();
            let next = async {
                match next {
                    Some(remaining) => tokio::time::sleep(remaining).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                changed = changes.changed() => if changed.is_err() { return },
                Some(ended) = undoing.join_next() => if let Err(error) = ended {
                    tracing::error!(%error, "the keeper of an undo broke down");
                },
            }
        }
    }

    /// Ends the handler if it still runs, then undoes it, round after round until it succeeds or the record goes.
    pub(crate) async fn undo(self: Arc<Self>, record: Record) {
        let subject = record.subject();
        self.runs.cancel(&record.uid);
        self.runs.settled(&record.uid, |run, _| *run != Progress::Running).await;
        let mut pause = Duration::from_secs(1);
        while self.ledger.get(&record.uid).is_some() {
            self.runs.start_undo(&subject, work(&record));
            self.runs.settled(&record.uid, |_, undo| *undo != Progress::Running).await;
            let (_, undo) = self.runs.progress(&record.uid);
            if is_over(&undo) {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

/// It has succeeded, or the node knows no such pod any more: whether it is gone for good is the controller's to say.
fn is_over(undo: &Progress) -> bool {
    match undo {
        // It was written down meanwhile.
        Progress::Idle => true,
        Progress::Running => false,
        Progress::Ended { results, .. } => results.iter().all(|(_, ended)| match &ended.outcome {
            Outcome::Succeeded => true,
            Outcome::Failed(failure) | Outcome::Unknown(failure) => failure.kind == ErrorType::PodNotFound,
        }),
    }
}

fn work(record: &Record) -> Vec<(String, Work)> {
    let valid = record.undo.iter().filter_map(|(container, action)| Some((container.clone(), action.validate().ok()?)));
    valid.map(|(container, action)| (container, Work { action, probe: None, retry: Retry::UntilTimeout })).collect()
}
