//! DeploymentLifecycle: a rollout is held at its stages, and let on when their hooks have passed.
//!
//! What may happen to a ReplicaSet stands on the ReplicaSet itself (see [`gate`]), how far the rollout is in the status.
//! The status is written first, and a label that it does not confirm (see [`record`]) is taken away. So after a crash the
//! status says where to go on, if it is about the same rollout.

mod adopt;
mod drain;
mod ending;
mod failing;
pub mod gate;
mod hook_pod;
mod nudge;
mod orphan;
mod phases;
mod quantity;
pub mod record;
mod refused_pod;
mod release;
mod remove;
mod requests;
mod saying;
mod stage;
mod start;
mod surroundings;
pub mod template;

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{DeploymentLifecycleStatus, FailurePolicy, RolloutPhase, Stage},
    words::{LIFECYCLE_FINALIZER, LIFECYCLE_MANAGED, reason},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::{Leadership, Report, succeeded};
pub use hook_pod::{
    DEFAULT_CONTAINER, Making, build as hook_pod, is_ours, label_of, mistake as hook_mistake, stage_of,
};
pub use orphan::{LiveHook, Orphan, Unclaimed, decide_orphan, waits_for_a_lifecycle};
pub use release::Release;
pub use stage::{Starts, running_since, time_is_over, time_of_a_stage};
pub use surroundings::{Deployment, DeploymentCondition, End, HookPod, ReplicaSet, Strategy};

use gate::Mark;

/// Whoever keeps the gate's configuration writes it again at once; nothing tells us then.
const GATE_COMES: SignedDuration = SignedDuration::from_secs(2);

/// What one look found.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    pub object: &'a DeploymentLifecycle,
    pub leadership: Leadership,
    /// Whether the rights of whoever wrote its hooks were checked when they were written.
    pub author_checked: bool,
    /// Whether the API server is to ask the gate at all: its configuration is there.
    pub gate_is_there: bool,
    /// The Deployment of its name, as the API server has it.
    pub deployment: Option<Deployment>,
    /// Those that the Deployment owns; or, if it is gone, those of its name that nobody owns.
    pub replica_sets: Vec<ReplicaSet>,
    /// The pods of the Deployment, of whichever version, that have not ended.
    pub live_pods: Vec<String>,
    /// The pods of its hooks, of this rollout and of others.
    pub hook_pods: Vec<HookPod>,
    /// Why the pod of a hook could not be made, if it was tried just before.
    pub refused: Option<String>,
    /// When the running stages began, by this process' own clock.
    pub starts: Starts,
}

/// What to do, in this order; whether this process still leads is asked again before each.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    AddFinalizer,
    RemoveFinalizer,
    /// Replaces the status of the version that was looked at, or fails.
    WriteStatus(Box<DeploymentLifecycleStatus>),
    /// Writes the annotation and the label of exactly this ReplicaSet.
    MarkReplicaSet {
        name: String,
        uid: String,
        annotate: Annotate,
        mark: Option<Mark>,
    },
    /// Annotates the Deployment as managed, in the version that was looked at, or fails.
    AnnotateDeployment {
        resource_version: String,
    },
    Release(Release),
    /// Writes a condition of the Deployment; the others stay.
    SetCondition(DeploymentCondition),
    /// That it cannot be made is observed by the next look.
    CreatePod(Box<Pod>),
    DeletePod {
        name: String,
        uid: String,
    },
    /// Makes the ReplicaSet of the target the owner of a hook's pod.
    OwnPod {
        name: String,
        uid: String,
        replica_set: (String, String),
    },
    /// Said right after what it is about was written down: whatever fails later, nobody would say it again.
    Tell(Report),
}

/// What becomes of the annotation of a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Annotate {
    Keep,
    /// As the Deployment has it, or will have.
    Write(String),
}

pub type Decision = crate::Decision<Effect>;

/// Looks at one object at one moment.
pub fn decide(observed: &Observed<'_>, now: Timestamp) -> Decision {
    let mut decision = look(observed, now);
    // What no status stands for is told last.
    decision.effects.extend(decision.reports.drain(..).map(Effect::Tell));
    decision
}

fn look(observed: &Observed<'_>, now: Timestamp) -> Decision {
    if observed.leadership != Leadership::Leader {
        // What is held stays held; whoever leads goes on.
        return Decision::default();
    }
    if observed.object.metadata.deletion_timestamp.is_some() {
        return remove::decide(observed, now);
    }
    let mut look = Look::new(observed, now);
    if observed.author_checked {
        look.status.checked_generation = Some(generation(observed.object));
    }
    let Some(deployment) = look.live_deployment() else { return look.without_a_deployment() };
    if !has_finalizer(observed.object) {
        look.decision.effects.push(Effect::AddFinalizer);
    }
    if look.status.deployment_uid.as_deref() != Some(&deployment.uid) {
        // Another one of its name: nothing that was recorded is about it, but which hook may still run.
        if !look.end_hooks(None) {
            let message = "hooks wait until the hook pod of the earlier Deployment has ended";
            look.wait_for_a_hook(deployment, reason::PRE, message);
            look.write_status();
            return look.decision;
        }
        look.status = DeploymentLifecycleStatus {
            deployment_uid: Some(deployment.uid.clone()),
            checked_generation: look.status.checked_generation,
            ..Default::default()
        };
    }
    if !observed.gate_is_there {
        look.again(now + GATE_COMES);
    }
    match (look.refusal(deployment), &deployment.lifecycle) {
        // The next version is held rather than rolled out without the hooks that its author wanted.
        (Some((reason @ (reason::STRATEGY | reason::INVALID), message)), None) => {
            look.adopt(deployment, Some((reason, &message)))
        }
        (Some((reason, message)), None) => look.refused(reason, &message),
        (Some((reason, message)), Some(_)) => {
            look.set_accepted(Some((reason, &message)));
            look.roll_out(deployment, Some((reason, &message)))
        }
        (None, None) => look.adopt(deployment, None),
        (None, Some(_)) => {
            look.set_accepted(None);
            look.roll_out(deployment, None)
        }
    }
}

fn generation(object: &DeploymentLifecycle) -> i64 {
    object.metadata.generation.unwrap_or_default()
}

/// What is wrong with hooks for this strategy.
pub fn strategy_mistake(
    spec: &boathook_api::deployment_lifecycle::DeploymentLifecycleSpec,
    strategy: Strategy,
) -> Option<String> {
    let aborts = |stage| spec.hook(stage).is_some_and(|hook| hook.failure_policy == FailurePolicy::Abort);
    match strategy {
        Strategy::Recreate => None,
        Strategy::RollingUpdate if spec.mid.is_some() => Some(
            "mid needs the strategy `Recreate`, because pods always run during a RollingUpdate: set the Deployment's \
             `strategy.type: Recreate`, or remove mid"
                .to_owned(),
        ),
        Strategy::RollingUpdate if aborts(Stage::Post) => Some(
            "post with `failurePolicy: Abort` needs the strategy `Recreate`, because a RollingUpdate has ended when \
             post runs: write Retry or Ignore, or set the Deployment's `strategy.type: Recreate`"
                .to_owned(),
        ),
        Strategy::RollingUpdate => None,
    }
}

/// One look, and what comes of it.
struct Look<'a> {
    observed: &'a Observed<'a>,
    now: Timestamp,
    /// As it will be written, if it differs.
    status: DeploymentLifecycleStatus,
    decision: Decision,
}

impl<'a> Look<'a> {
    fn new(observed: &'a Observed<'a>, now: Timestamp) -> Self {
        let status = observed.object.status.clone().unwrap_or_default();
        Self { observed, now, status, decision: Decision::default() }
    }

    /// Why its hooks cannot be run for this Deployment.
    fn refusal(&self, deployment: &Deployment) -> Option<(&'static str, String)> {
        let object = self.observed.object;
        if !self.observed.gate_is_there {
            let message = "the MutatingWebhookConfiguration `boathook` is missing. Without it Boathook cannot hold a \
                           version, so it starts no rollout. Boathook creates the configuration again: if it stays \
                           missing, check the controller's log";
            return Some((reason::GATE_MISSING, message.to_owned()));
        }
        if self.status.checked_generation != Some(generation(object)) {
            let message = "Boathook could not check whether the author of this DeploymentLifecycle may `create pods`, \
                           because its webhooks did not answer: create the DeploymentLifecycle again (`kubectl replace \
                           --force -f FILE`). That releases a held version: roll the Deployment back first if that \
                           version must not run";
            return Some((reason::REFUSED, message.to_owned()));
        }
        if let Err(wrong) = object.spec.validate() {
            return Some((reason::INVALID, wrong));
        }
        strategy_mistake(&object.spec, deployment.strategy).map(|message| (reason::STRATEGY, message))
    }

    fn live_deployment(&self) -> Option<&'a Deployment> {
        self.observed.deployment.as_ref().filter(|deployment| !deployment.deleted)
    }

    /// The ReplicaSet whose template is the Deployment's: the oldest, if there are several, as Kubernetes has it.
    fn target(&self, deployment: &Deployment) -> Option<&'a ReplicaSet> {
        let same = self.observed.replica_sets.iter().filter(|set| set.template == deployment.template);
        same.min_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)))
    }

    fn others(&self, target: Option<&ReplicaSet>) -> impl Iterator<Item = &'a ReplicaSet> + use<'a> {
        let target = target.map(|target| target.uid.clone());
        self.observed.replica_sets.iter().filter(move |set| Some(&set.uid) != target.as_ref())
    }

    /// Writes the label of a ReplicaSet, if it says something else; and its annotation, if it has none.
    fn mark(&mut self, set: &ReplicaSet, mark: Option<Mark>) {
        let label = mark.as_ref().map(ToString::to_string);
        if set.gate == label && set.managed {
            return;
        }
        let annotate = match set.managed {
            true => Annotate::Keep,
            false => {
                let given = self.observed.deployment.as_ref().and_then(|deployment| deployment.lifecycle.clone());
                Annotate::Write(given.unwrap_or_else(|| LIFECYCLE_MANAGED.to_owned()))
            }
        };
        let (name, uid) = (set.name.clone(), set.uid.clone());
        self.decision.effects.push(Effect::MarkReplicaSet { name, uid, annotate, mark });
    }

    /// Writes the status now, if it differs from what is stored, and tells what has happened until now.
    fn write_status(&mut self) {
        // What is said holds for the hooks as they are written now, also if they count from the next rollout on only: whoever
        // waits for it asks for that.
        let generation = self.observed.object.metadata.generation;
        let word = succeeded::of_deployment_lifecycle(&self.status.conditions);
        succeeded::set(&mut self.status.conditions, word, generation, self.now);
        self.status.conditions.iter_mut().for_each(|one| one.observed_generation = generation);
        let stored = self.observed.object.status.as_ref();
        let written = self.decision.effects.iter().rev().find_map(|effect| match effect {
            Effect::WriteStatus(status) => Some(&**status),
            _ => None,
        });
        if written.or(stored) != Some(&self.status) {
            self.decision.effects.push(Effect::WriteStatus(Box::new(self.status.clone())));
            self.decision.effects.extend(self.decision.reports.drain(..).map(Effect::Tell));
        }
    }

    /// To be looked at again then, or earlier.
    fn again(&mut self, then: Timestamp) {
        self.decision.again = Some(self.decision.again.map_or(then, |again| again.min(then)));
    }

    fn phase(&self) -> Option<RolloutPhase> {
        self.status.rollout.as_ref().map(|rollout| rollout.phase)
    }
}

fn has_finalizer(object: &DeploymentLifecycle) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == LIFECYCLE_FINALIZER)
}
