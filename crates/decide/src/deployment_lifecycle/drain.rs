//! The pods of other versions: they are let go for one target, and waited for.

use jiff::SignedDuration;

use boathook_api::words::reason;

use super::{
    Deployment, Look, ReplicaSet,
    gate::{DrainFor, Mark},
};

/// After so long it is said which pods have not ended.
pub(super) const LONG: SignedDuration = SignedDuration::from_secs(60);

/// So many are named.
const NAMED: usize = 3;

impl Look<'_> {
    /// Lets the pods of other versions go, for this target.
    pub(super) fn drain(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        let by_template = DrainFor::Template { digest: deployment.template.clone() };
        let by_set = target.and_then(|target| {
            let (revision, pod_template_hash) = (target.revision.clone()?, target.pod_template_hash.clone());
            Some(DrainFor::ReplicaSet { revision, pod_template_hash })
        });
        let wanted = Mark::Draining(by_set.unwrap_or_else(|| by_template.clone()));
        let until_made = Mark::Draining(by_template).to_string();
        for other in self.others(target).filter(|other| other.has_pods()) {
            if other.gate.as_deref() != Some(&until_made) {
                self.mark(other, Some(wanted.clone()));
            }
        }
    }

    /// Takes the marks from those that have no pods any more.
    pub(super) fn clear(&mut self, target: &ReplicaSet) {
        for other in self.others(Some(target)).filter(|other| !other.has_pods() && other.gate.is_some()) {
            self.mark(other, None);
        }
    }

    /// Whether no pod of any version is left, and none is being made.
    pub(super) fn is_drained(&self) -> bool {
        let sets = &self.observed.replica_sets;
        self.observed.live_pods.is_empty() && sets.iter().all(|set| set.observed && !set.has_pods())
    }

    /// What is waited for; after a while also which pods: their node may be gone.
    pub(super) fn still_ending(&mut self, deployment: &Deployment, message: &str) -> String {
        let draining = deployment.ours.as_ref().filter(|ours| ours.reason == reason::DRAINING);
        let Some(long) = draining.map(|ours| ours.last_transition + LONG) else { return message.to_owned() };
        let live = &self.observed.live_pods;
        if self.now < long {
            self.again(long);
            return message.to_owned();
        }
        let named = live.iter().take(NAMED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match live.len() {
            0 => message.to_owned(),
            1..=NAMED => format!("{message}; pods that still run: {named}"),
            count => format!("{message}; pods that still run: {named} and {} others", count - NAMED),
        }
    }
}
