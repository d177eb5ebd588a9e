//! DeploymentLifecycle, decision by decision.

mod adopting;
mod failing;
mod gate;
mod hook_pod;
mod orphan;
mod refusing;
mod removing;
mod requests;
mod rolling;
mod stages;
mod starting;

use std::collections::BTreeMap;

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{DeploymentLifecycleStatus, Rollout, RolloutPhase, Stage, StageRecord},
    words::LIFECYCLE_FINALIZER,
};
use boathook_decide::{
    Leadership,
    deployment_lifecycle::{
        Decision, Deployment, Effect, End, HookPod, Observed, Release, ReplicaSet, Strategy, decide,
    },
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use serde_json::{Value, json};

/// Its Deployment has 3 replicas of the template `old`, and 100 s for each stage.
const DEADLINE: i64 = 100;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a moment")
}

/// One look at a lifecycle, and the world around it.
#[derive(Clone)]
struct Look {
    object: DeploymentLifecycle,
    leadership: Leadership,
    author_checked: bool,
    gate_is_there: bool,
    deployment: Option<Deployment>,
    sets: Vec<ReplicaSet>,
    live_pods: Vec<String>,
    hook_pods: Vec<HookPod>,
    refused: Option<String>,
    /// Recorded seconds, and where this process reckons them.
    starts: BTreeMap<i64, i64>,
    now: i64,
}

fn hook(policy: &str) -> Value {
    json!({"failurePolicy": policy, "execNewPod": {"containerName": "web", "command": ["rake"]}})
}

fn template(name: &str) -> PodTemplateSpec {
    serde_json::from_value(json!({"spec": {"containers": [{"name": "web", "image": name}]}})).expect("it is a template")
}

fn deployment(strategy: Strategy) -> Deployment {
    Deployment {
        name: "web".to_owned(),
        uid: "web-uid".to_owned(),
        resource_version: "7".to_owned(),
        generation: 1,
        observed_generation: 1,
        deleted: false,
        lifecycle: Some("managed".to_owned()),
        paused: false,
        strategy,
        progress_deadline_seconds: i32::try_from(DEADLINE).expect("it is short"),
        template: "old".to_owned(),
        pod_template: template("old"),
        replicas: 3,
        status_replicas: 3,
        updated_replicas: 3,
        available_replicas: 3,
        progressing: None,
        ours: None,
    }
}

fn set(template: &str, revision: i64, replicas: i32, gate: Option<&str>) -> ReplicaSet {
    ReplicaSet {
        name: format!("web-{template}"),
        uid: format!("{template}-uid"),
        resource_version: format!("{template}-7"),
        created: at(revision),
        template: template.to_owned(),
        pod_template_hash: format!("hash{template}"),
        revision: Some(revision.to_string()),
        managed: true,
        gate: gate.map(str::to_owned),
        replicas,
        status_replicas: replicas,
        available_replicas: replicas,
        observed: true,
    }
}

impl Look {
    /// Revision 1 of the template `old` is rolled out, and done.
    fn idle(strategy: Strategy, spec: Value) -> Self {
        let mut object = DeploymentLifecycle::new("web", serde_json::from_value(spec).expect("it is a spec"));
        object.metadata.namespace = Some("shop".to_owned());
        object.metadata.finalizers = Some(vec![LIFECYCLE_FINALIZER.to_owned()]);
        let start = MicroTime(at(10));
        let rollout =
            json!({"target": "old", "revision": "1", "replicaSet": "web-old", "phase": "Post", "startTime": start});
        object.status = Some(DeploymentLifecycleStatus {
            deployment_uid: Some("web-uid".to_owned()),
            rollout: Some(serde_json::from_value(rollout).expect("it is a record")),
            ..DeploymentLifecycleStatus::default()
        });
        let mut look = Self {
            object,
            leadership: Leadership::Leader,
            author_checked: true,
            gate_is_there: true,
            deployment: Some(deployment(strategy)),
            sets: vec![set("old", 1, 3, Some("done.1"))],
            live_pods: [1, 2, 3].map(|number| format!("web-old-{number}")).to_vec(),
            hook_pods: vec![],
            refused: None,
            starts: BTreeMap::new(),
            now: 10,
        };
        look.done();
        look
    }

    /// A person writes the template `new`, and the Deployment controller has seen it.
    fn new_template(strategy: Strategy, spec: Value) -> Self {
        let mut look = Self::idle(strategy, spec);
        look.now = 20;
        look.write_template("new");
        if strategy == Strategy::RollingUpdate {
            look.sets.push(set("new", 2, 0, None));
        }
        look
    }

    /// Pre is recorded, at second 20, and nothing else is done.
    fn at_pre(strategy: Strategy, spec: Value) -> Self {
        let mut look = Self::new_template(strategy, spec);
        look.done();
        look.done();
        assert_eq!(look.phase(), Some(RolloutPhase::Pre));
        look
    }

    fn write_template(&mut self, name: &str) {
        let deployment = self.deployment();
        (deployment.template, deployment.pod_template) = (name.to_owned(), template(name));
        deployment.generation += 1;
        deployment.observed_generation += 1;
        deployment.updated_replicas = 0;
    }

    /// All its pods have.
    fn old_version_ends(&mut self) {
        (self.sets[0].replicas, self.sets[0].status_replicas) = (0, 0);
        self.live_pods.clear();
    }

    fn decide(&self) -> Decision {
        let observed = Observed {
            object: &self.object,
            leadership: self.leadership,
            author_checked: self.author_checked,
            gate_is_there: self.gate_is_there,
            deployment: self.deployment.clone(),
            replica_sets: self.sets.clone(),
            live_pods: self.live_pods.clone(),
            hook_pods: self.hook_pods.clone(),
            refused: self.refused.clone(),
            starts: self.starts.iter().map(|(recorded, here)| (at(*recorded), at(*here))).collect(),
        };
        decide(&observed, at(self.now))
    }

    /// Looks, and does what comes of it.
    fn done(&mut self) -> Decision {
        let decision = self.decide();
        decision.effects.iter().for_each(|effect| self.carry_out(effect));
        decision
    }

    fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::AddFinalizer => self.object.metadata.finalizers = Some(vec![LIFECYCLE_FINALIZER.to_owned()]),
            Effect::RemoveFinalizer => self.object.metadata.finalizers = None,
            Effect::WriteStatus(status) => self.object.status = Some((**status).clone()),
            Effect::MarkReplicaSet { uid, mark, .. } => {
                let set = self.sets.iter_mut().find(|set| set.uid == *uid).expect("only what is there is marked");
                set.gate = mark.as_ref().map(ToString::to_string);
                set.managed = true;
            }
            Effect::AnnotateDeployment { .. } => self.deployment().lifecycle = Some("managed".to_owned()),
            Effect::Release(Release::Deployment { .. }) => self.deployment().lifecycle = None,
            Effect::Release(Release::ReplicaSet { uid, .. }) => {
                let set =
                    self.sets.iter_mut().find(|set| set.uid == *uid).expect("only known ReplicaSets are released");
                (set.managed, set.gate) = (false, None);
            }
            Effect::Release(Release::Condition) => self.deployment().ours = None,
            Effect::SetCondition(condition) => match condition.kind {
                "Progressing" => self.deployment().progressing = Some(condition.clone()),
                _ => self.deployment().ours = Some(condition.clone()),
            },
            Effect::CreatePod(pod) => {
                let name = pod.metadata.name.clone().expect("hook pods are named");
                self.hook_pods.push(HookPod {
                    uid: format!("{name}-uid"),
                    name,
                    rollout: pod.metadata.labels.as_ref().expect("hook pods are labelled")["boathook.dev/rollout"]
                        .clone(),
                    live: true,
                    gone_by: None,
                    failures: 0,
                    last_failure: None,
                    runs: false,
                    waiting: None,
                    end: None,
                    log_tail: None,
                    owned_by_deployment: pod.metadata.owner_references.as_ref().expect("hook pods are owned")[0].kind
                        == "Deployment",
                });
            }
            Effect::DeletePod { uid, .. } => {
                self.hook_pods
                    .iter_mut()
                    .filter(|pod| pod.uid == *uid)
                    .for_each(|pod| pod.gone_by = Some(at(self.now + 30)));
            }
            Effect::OwnPod { uid, .. } => {
                self.hook_pods.iter_mut().filter(|pod| pod.uid == *uid).for_each(|pod| pod.owned_by_deployment = false);
            }
            Effect::Tell(_) => {}
        }
    }

    /// The last pod of a hook ends so.
    fn end(&mut self, end: End) {
        let pod = self.hook_pods.last_mut().expect("a hook runs");
        (pod.end, pod.live) = (Some(end), false);
    }

    fn fail(&mut self) {
        self.end(End::Failed("the hook ended with exit code 1".to_owned()));
    }

    fn deployment(&mut self) -> &mut Deployment {
        self.deployment.as_mut().expect("it has a Deployment")
    }

    fn rollout(&self) -> &Rollout {
        self.object.status.as_ref().and_then(|status| status.rollout.as_ref()).expect("a rollout is recorded")
    }

    fn phase(&self) -> Option<RolloutPhase> {
        Some(self.object.status.as_ref()?.rollout.as_ref()?.phase)
    }

    fn stage(&self, stage: Stage) -> &StageRecord {
        self.rollout().stage(stage).expect("the stage was begun")
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let conditions = &self.object.status.as_ref().expect("it was looked at").conditions;
        let found = conditions.iter().find(|condition| condition.type_ == kind).expect("it is said");
        (found.status.clone(), found.reason.clone())
    }

    fn message(&self, kind: &str) -> String {
        let conditions = &self.object.status.as_ref().expect("it was looked at").conditions;
        conditions.iter().find(|condition| condition.type_ == kind).expect("it is said").message.clone()
    }

    /// What stands on the Deployment.
    fn said(&self) -> (&'static str, String) {
        let ours = self.deployment.as_ref().and_then(|deployment| deployment.ours.clone()).expect("something is said");
        (ours.status, ours.reason)
    }

    fn gate(&self, template: &str) -> Option<&str> {
        self.sets.iter().find(|set| set.template == template).expect("it is there").gate.as_deref()
    }
}

/// What a decision does, in a word each.
fn words(decision: &Decision) -> Vec<String> {
    let word = |effect: &Effect| {
        Some(match effect {
            Effect::Tell(_) => return None,
            Effect::AddFinalizer => "hold".to_owned(),
            Effect::RemoveFinalizer => "let go".to_owned(),
            Effect::WriteStatus(_) => "status".to_owned(),
            Effect::MarkReplicaSet { name, mark, .. } => {
                format!("{name} {}", mark.as_ref().map_or("-".to_owned(), ToString::to_string))
            }
            Effect::AnnotateDeployment { .. } => "annotate true".to_owned(),
            Effect::Release(release) => released(release),
            Effect::SetCondition(condition) => format!("{}={}", condition.kind, condition.reason),
            Effect::CreatePod(_) => "create pod".to_owned(),
            Effect::DeletePod { .. } => "delete pod".to_owned(),
            Effect::OwnPod { replica_set, .. } => format!("own by {}", replica_set.0),
        })
    };
    decision.effects.iter().filter_map(word).collect()
}

fn released(release: &Release) -> String {
    match release {
        Release::Deployment { .. } => "annotate false".to_owned(),
        Release::ReplicaSet { name, .. } => format!("{name} -"),
        Release::Condition => "BoathookLifecycle -".to_owned(),
    }
}

/// The reasons of what is told.
fn told(decision: &Decision) -> Vec<&str> {
    assert!(decision.reports.is_empty(), "each is told in its place among the effects");
    let told = decision.effects.iter().filter_map(|effect| match effect {
        Effect::Tell(report) => Some(report.reason.as_str()),
        _ => None,
    });
    told.collect()
}

fn after(decision: &Decision, now: i64) -> Option<SignedDuration> {
    decision.again.map(|again| again.duration_since(at(now)))
}
