//! A rollout that is held at pre, look by look, in an API server of its own: pods there are only what is written.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use boathook_api::{
    deployment_lifecycle::{Rollout, RolloutPhase, Stage, StageRecord, StageState},
    words::{GATE, LIFECYCLE, LIFECYCLE_MANAGED},
};
use boathook_decide::deployment_lifecycle::{Annotate, DEFAULT_CONTAINER, Effect, gate::Mark};
use http::{Method, Request};
use jiff::SignedDuration;
use k8s_openapi::{
    api::{
        admissionregistration::v1::MutatingWebhookConfiguration,
        apps::v1::{Deployment, ReplicaSet},
        core::v1::{Pod, ServiceAccount},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::runtime::reflector;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower::service_fn;

use super::*;
use crate::{
    test_world::{World, answer, clock, world, world_losing_lease},
    webhooks::test_asks::webhooks_answered,
};

pub(super) struct Held {
    pub(super) controller: Controller,
    pub(super) lifecycles: Api<DeploymentLifecycle>,
    pods: Api<Pod>,
    /// The seconds of the controller's own clock.
    seconds: Arc<AtomicU64>,
}

fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// Revision 2 of the Deployment `web` is held; pre has not begun. Whoever writes something of `refused` is refused.
pub(super) async fn held(refused: &'static str) -> Held {
    held_in(world(refused).await).await
}

async fn held_in(World { client, lease, reporter }: World) -> Held {
    let new = PostParams::default();
    webhooks_answered(&client).await;
    let gates: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    gates.create(&new, &read(json!({"metadata": {"name": "boathook"}}))).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.create(&new, &read(json!({"metadata": {"name": "default"}}))).await.unwrap();
    let labels = json!({"app": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:2"}]}});
    let spec = json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": template});
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let metadata = json!({"name": "web", "annotations": {LIFECYCLE: LIFECYCLE_MANAGED}});
    let deployment = deployments.create(&new, &read(json!({"metadata": metadata, "spec": spec}))).await.unwrap();
    let seen = Patch::Merge(json!({"status": {"observedGeneration": deployment.metadata.generation}}));
    deployments.patch_status("web", &PatchParams::default(), &seen).await.unwrap();
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": deployment.uid(),
        "controller": true});
    let annotations = json!({LIFECYCLE: LIFECYCLE_MANAGED, REVISION: "2"});
    let metadata = json!({"name": "web-2", "labels": labels, "annotations": annotations, "ownerReferences": [owner]});
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), "default");
    sets.create(&new, &read(json!({"metadata": metadata, "spec": spec}))).await.unwrap();
    let lifecycles: Api<DeploymentLifecycle> = Api::namespaced(client.clone(), "default");
    let hook = json!({"execNewPod": {"containerName": "web", "command": ["migrate"]}});
    lifecycles.create(&new, &DeploymentLifecycle::new("web", read(json!({"pre": hook})))).await.unwrap();
    let pods = Api::namespaced(client.clone(), "default");
    let (clock, seconds) = clock();
    let stages = Elapsed::new(clock);
    Held {
        controller: Controller {
            client,
            lease,
            reporter,
            refusals: Refusals::default(),
            stages,
            orphans: unread_wakes(),
        },
        lifecycles,
        pods,
        seconds,
    }
}

/// Nothing reads what these send.
fn unread_wakes() -> Wakes {
    Wakes {
        deployments: mpsc::unbounded_channel().0,
        replica_sets: mpsc::unbounded_channel().0,
        marked: reflector::store().0,
    }
}

impl Held {
    async fn look(&self) -> Option<Duration> {
        let object = self.lifecycles.get("web").await.unwrap();
        self.controller.reconcile(Arc::new(object)).await.unwrap()
    }

    async fn rollout(&self) -> Rollout {
        self.lifecycles.get("web").await.unwrap().status.unwrap().rollout.unwrap()
    }

    async fn pre(&self) -> StageRecord {
        self.rollout().await.stage(Stage::Pre).unwrap().clone()
    }

    async fn names_of_pods(&self) -> Vec<String> {
        self.pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    }
}

/// The command of this pod has ended with 0.
async fn succeeds(pods: &Api<Pod>, name: &str) {
    let ended = json!({"name": "web", "image": "web:2", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0}}});
    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded", "containerStatuses": [ended]}}));
    pods.patch_status(name, &PatchParams::default(), &ended).await.unwrap();
}

#[tokio::test]
async fn a_pod_that_is_not_ours_is_neither_believed_nor_deleted_and_a_person_is_told_that_it_is_in_the_way() {
    let held = held("nothing").await;
    held.look().await;
    held.look().await;
    let name = held.pre().await.pod.unwrap();
    let made = held.pods.get(&name).await.unwrap();
    held.pods.delete(&name, &DeleteParams::default().grace_period(0)).await.unwrap();
    // The same under its name, and one under another name, both as if they had succeeded; nobody owns them.
    for copied in [name.as_str(), "web-copied"] {
        let mut copy = made.clone();
        copy.metadata.name = Some(copied.to_owned());
        (copy.metadata.owner_references, copy.metadata.resource_version, copy.metadata.uid) = (None, None, None);
        held.pods.create(&PostParams::default(), &copy).await.unwrap();
        succeeds(&held.pods, copied).await;
    }

    assert_eq!(held.look().await, Some(Duration::ZERO), "it is looked at again at once");
    held.look().await;
    assert_eq!(held.rollout().await.phase, RolloutPhase::Pre, "it has not passed");
    let message = held.pre().await.message.unwrap();
    assert!(message.contains(&format!("`kubectl delete pod {name} -n default`")), "{message}");
    let mut all = held.names_of_pods().await;
    all.sort();
    assert_eq!(all, ["web-copied", name.as_str()]);

    held.pods.delete(&name, &DeleteParams::default().grace_period(0)).await.unwrap();
    held.look().await;
    held.look().await;
    let record = held.pre().await;
    assert_eq!((record.pod_uid, record.message), (held.pods.get(&name).await.unwrap().uid(), None));
}

/// A user who may patch pods names the injected container, which has succeeded.
#[tokio::test]
async fn annotation_of_a_hook_pod_does_not_choose_the_judged_container() {
    let held = held("nothing").await;
    held.look().await;
    held.look().await;
    let name = held.pre().await.pod.unwrap();
    let annotations = json!({"metadata": {"annotations": {DEFAULT_CONTAINER: "injected"}}});
    held.pods.patch(&name, &PatchParams::default(), &Patch::Merge(annotations)).await.unwrap();
    let container = |name: &str, state: Value| json!({"name": name, "image": "web:2", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    let ended = container("injected", json!({"terminated": {"exitCode": 0}}));
    let status =
        |state: Value| json!({"status": {"phase": "Running", "containerStatuses": [ended, container("web", state)]}});
    for (state, expected) in
        [(json!({"running": {}}), StageState::Running), (json!({"terminated": {"exitCode": 0}}), StageState::Succeeded)]
    {
        held.pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status(state))).await.unwrap();
        held.look().await;
        assert_eq!(held.pre().await.state, expected);
    }
}

#[tokio::test]
async fn that_a_quota_is_in_the_way_is_said_where_people_look() {
    let held = held("pods").await;
    held.look().await;
    assert_eq!(held.look().await, Some(Duration::ZERO), "it is looked at again at once");
    let again = held.look().await.unwrap();
    assert!(again > Duration::ZERO && again <= Duration::from_secs(30), "{again:?}");
    let message = held.pre().await.message.unwrap();
    assert!(message.starts_with("failed to create the hook pod: ") && message.contains("exceeded quota"), "{message}");
    assert!(!message.contains("Status {"), "in words that a person reads: {message}");
}

#[tokio::test]
async fn that_somebodys_admission_does_not_answer_is_said_where_people_look() {
    let mut held = held("nothing").await;
    held.look().await;
    let real = held.controller.client.clone();
    let asked = move |request: Request<Body>| {
        let real = real.clone();
        let makes_a_pod = request.method() == Method::POST && request.uri().path().ends_with("/pods");
        let failed = "failed calling webhook \"inject.sea\": connection refused";
        async move { if makes_a_pod { Ok(answer(500, "InternalError", failed)) } else { real.send(request).await } }
    };
    held.controller.client = Client::new(service_fn(asked), "default");
    assert_eq!(held.look().await, Some(Duration::ZERO), "it is looked at again at once");
    held.look().await;
    let message = held.pre().await.message.unwrap();
    assert!(message.starts_with("failed to create the hook pod: ") && message.contains("inject.sea"), "{message}");
}

#[tokio::test]
async fn no_rollout_is_begun_while_the_gates_configuration_is_missing() {
    let held = held("nothing").await;
    let gates: Api<MutatingWebhookConfiguration> = Api::all(held.controller.client.clone());
    gates.delete("boathook", &DeleteParams::default()).await.unwrap();
    assert!(held.look().await.is_some_and(|again| again <= Duration::from_secs(2)), "nobody tells when it comes");
    let status = held.lifecycles.get("web").await.unwrap().status.unwrap();
    assert_eq!((status.rollout, status.conditions[0].reason.as_str()), (None, "GateMissing"));
    gates.create(&PostParams::default(), &read(json!({"metadata": {"name": "boathook"}}))).await.unwrap();
    held.look().await;
    assert_eq!(held.rollout().await.phase, RolloutPhase::Pre);
}

#[tokio::test]
async fn a_version_whose_hook_passes_after_another_one_was_wanted_is_not_let_in() {
    let mut held = held("nothing").await;
    held.look().await;
    held.look().await;
    let (real, name) = (held.controller.client.clone(), held.pre().await.pod.unwrap());
    let sets: Api<ReplicaSet> = Api::namespaced(real.clone(), "default");
    // Whoever asks for the hook's pods asks just after both.
    let answer = move |request: Request<Body>| {
        let (real, name) = (real.clone(), name.clone());
        async move {
            if request.uri().path().ends_with("/pods") {
                let deployments: Api<Deployment> = Api::namespaced(real.clone(), "default");
                let template = json!({"spec": {"template": {"metadata": {"annotations": {"version": "3"}}}}});
                deployments.patch("web", &PatchParams::default(), &Patch::Merge(template)).await.unwrap();
                succeeds(&Api::namespaced(real.clone(), "default"), &name).await;
            }
            real.send(request).await
        }
    };
    held.controller.client = Client::new(service_fn(answer), "default");
    held.look().await;
    assert_eq!(sets.get("web-2").await.unwrap().labels().get(GATE), None);
}

#[tokio::test]
async fn stage_has_its_whole_time_though_the_wall_clock_was_stepped() {
    for hours in [-1, 1] {
        let held = held("nothing").await;
        held.look().await;
        held.look().await;
        let mut status = serde_json::to_value(held.lifecycles.get("web").await.unwrap().status).unwrap();
        let start = MicroTime(Timestamp::now() + SignedDuration::from_hours(hours));
        status["rollout"]["stages"][0]["startTime"] = json!(start);
        let patch = Patch::Merge(json!({"status": status}));
        held.lifecycles.patch_status("web", &PatchParams::default(), &patch).await.unwrap();
        let again = held.look().await.expect("it looks again at the deadline");
        assert!(again <= Duration::from_secs(600), "{hours}: {again:?}");
        assert_eq!(held.rollout().await.phase, RolloutPhase::Pre, "{hours}");
        held.seconds.store(599, Ordering::SeqCst);
        held.look().await;
        assert_eq!(held.rollout().await.phase, RolloutPhase::Pre, "{hours}");
        held.seconds.store(600, Ordering::SeqCst);
        held.look().await;
        assert_eq!(held.rollout().await.phase, RolloutPhase::Aborted, "{hours}");
    }
}

#[tokio::test]
async fn lease_lost_at_one_effect_stops_the_next() {
    let held = held_in(world_losing_lease("/deploymentlifecycles/web").await).await;
    let sets: Api<ReplicaSet> = Api::namespaced(held.controller.client.clone(), "default");
    let uid = sets.get("web-2").await.unwrap().uid().unwrap();
    let mark = Some(Mark::Open { revision: "2".to_owned() });
    let open = Effect::MarkReplicaSet { name: "web-2".to_owned(), uid, annotate: Annotate::Keep, mark };
    let object = held.lifecycles.get("web").await.unwrap();
    let lost = act::act(&held.controller, &object, vec![Effect::AddFinalizer, open]).await;
    assert!(matches!(lost, Err(Error::LeaseLost)), "{lost:?}");
    assert_eq!(sets.get("web-2").await.unwrap().labels().get(GATE), None, "the new version is held");
}
