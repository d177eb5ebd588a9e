use boathook_api::{
    application_snapshot::{ApplicationSnapshotStatus, OtherPods, Phase, SnapshotFailure},
    words::{EXECUTION_HOOK_INFOS, EXECUTION_HOOK_TEMPLATE_LABEL, OTHER_PODS, condition},
};
use kube::{
    api::{ListParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use super::*;
use crate::webhooks::test_asks::{ask_about, client_with_kinds};

const DEADLINE: Duration = Duration::from_secs(60);

struct World {
    client: Client,
    door: Arc<Door>,
}

impl World {
    /// With the template `mysql` and the default class `fast`.
    async fn new() -> Self {
        let client = client_with_kinds().await;
        let spec = json!({"preAction": {"exec": {"command": ["sync"]}, "actionTimeoutSeconds": 1}});
        let template = ExecutionHookTemplate::new("mysql", serde_json::from_value(spec).unwrap());
        Api::namespaced(client.clone(), "default").create(&PostParams::default(), &template).await.unwrap();
        create_class(&client).await;
        let access = Arc::new(Access::new(client.clone()).await.unwrap());
        Self { door: Arc::new(Door::new(client.clone(), access)), client }
    }

    fn snapshots(&self) -> Api<ApplicationSnapshot> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn names(&self) -> Vec<String> {
        self.snapshots().list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    }

    async fn answer(&self, ask: &Ask) -> AdmissionResponse {
        self.door.review(ask, Instant::now() + DEADLINE).await
    }

    /// Waits until this is so of the intent.
    async fn intent(&self, ask: &Ask, what: impl Fn(Option<&ApplicationSnapshot>) -> bool) {
        let name = intent_name(&written(ask).unwrap().name_any(), "u-1");
        let waited = tokio::time::timeout(DEADLINE, await_condition(self.snapshots(), &name, what)).await;
        waited.expect("waited in vain for the intent").unwrap();
    }

    /// What a controller would write, once the intent is there.
    async fn controller_says(&self, ask: &Ask, status: Value) {
        self.intent(ask, |intent| intent.is_some()).await;
        let name = intent_name(&written(ask).unwrap().name_any(), "u-1");
        let mut intent = self.snapshots().get(&name).await.unwrap();
        intent.status = Some(serde_json::from_value::<ApplicationSnapshotStatus>(status).unwrap());
        self.snapshots().replace_status(&name, &PostParams::default(), &intent).await.unwrap();
    }
}

async fn create_class(client: &Client) {
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass");
    let resource = ApiResource::from_gvk_with_plural(&kind, "volumesnapshotclasses");
    let annotations = json!({"snapshot.storage.kubernetes.io/is-default-class": "true"});
    let class = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "driver": "d",
        "metadata": {"name": "fast", "annotations": annotations}, "deletionPolicy": "Delete"});
    let classes: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
}

fn marked(name: &str, metadata: Value) -> Ask {
    let mut object = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": metadata, "spec": {"source": {"persistentVolumeClaimName": "data"}}});
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!("u-1");
    let mut ask = ask_about("volumesnapshots", object);
    ask.user_info.username = Some("admin".to_owned());
    ask.user_info.groups = Some(vec!["system:masters".to_owned()]);
    ask
}

fn labelled(name: &str) -> Ask {
    marked(name, json!({"labels": {EXECUTION_HOOK_TEMPLATE_LABEL: "mysql"}}))
}

fn frozen() -> Value {
    json!({"phase": Phase::Cutting, "conditions": [{"type": condition::FROZEN, "status": "True", "reason": "Frozen",
        "message": "", "lastTransitionTime": "2026-11-01T00:00:00Z"}]})
}

#[tokio::test]
async fn it_is_let_in_when_its_application_is_frozen() {
    let world = World::new().await;
    let infos = "[{executionHookTemplateName: mysql, podSelector: {matchLabels: {app: db}}}]";
    let annotations = json!({EXECUTION_HOOK_INFOS: infos, OTHER_PODS: "Vouched"});
    let ask = marked("nightly", json!({"annotations": annotations}));
    let (answer, ()) = tokio::join!(world.answer(&ask), world.controller_says(&ask, frozen()));
    assert!(answer.allowed, "{:?}", answer.result);
    let intent = world.snapshots().get(&world.names().await[0]).await.unwrap();
    let ApplicationSnapshotSpec { source, execution_hook_infos, freeze_timeout_seconds, other_pods, .. } = intent.spec;
    assert_eq!(other_pods, OtherPods::Vouched);
    let of = (source.volume_snapshot_name, source.volume_snapshot_uid, source.persistent_volume_claim_name);
    assert_eq!(of, (Some("nightly".to_owned()), Some("u-1".to_owned()), Some("data".to_owned())));
    assert!(execution_hook_infos[0].pod_selector.is_some());
    assert!((30..=59).contains(&freeze_timeout_seconds.unwrap()), "{freeze_timeout_seconds:?} of {DEADLINE:?}");
}

#[tokio::test]
async fn why_it_cannot_be_frozen_is_told_at_once_and_stays_to_be_read() {
    let world = World::new().await;
    let ask = labelled("nightly");
    let failure = SnapshotFailure { reason: "HookFailed".to_owned(), message: "no disk".to_owned() };
    let status = json!({"phase": Phase::Thawing, "failure": failure});
    let (answer, ()) = tokio::join!(world.answer(&ask), world.controller_says(&ask, status));
    assert_eq!((answer.allowed, answer.result.code, answer.result.reason.as_str()), (false, 403, "Forbidden"));
    let name = &world.names().await[0];
    let message = answer.result.message;
    assert!(message.contains("no disk") && message.contains(&format!("applicationsnapshot {name}")), "{message}");
}

#[tokio::test]
async fn what_takes_too_long_or_is_waited_for_by_nobody_is_withdrawn() {
    let world = World::new().await;
    let ask = labelled("late");
    // Three seconds more than the template may take: that is looked at before the freeze begins.
    let answer = world.door.review(&ask, Instant::now() + MARGIN + Duration::from_millis(4100)).await;
    assert_eq!((answer.allowed, answer.result.code), (false, 403));
    assert!(
        answer.result.message.contains("did not freeze the application within the time limit"),
        "{}",
        answer.result.message
    );
    world.intent(&ask, |intent| intent.is_none()).await;

    let (ask, door) = (labelled("gone"), Arc::clone(&world.door));
    let asked = ask.clone();
    let request = tokio::spawn(async move { door.review(&asked, Instant::now() + DEADLINE).await });
    world.intent(&ask, |intent| intent.is_some()).await;
    request.abort();
    world.intent(&ask, |intent| intent.is_none()).await;
}

#[tokio::test]
async fn what_will_not_be_stored_freezes_nothing() {
    let world = World::new().await;
    let mut dry = labelled("nightly");
    dry.dry_run = true;
    assert!(world.answer(&dry).await.allowed);

    let there: VolumeSnapshot = written(&labelled("there")).unwrap();
    Api::namespaced(world.client.clone(), "default").create(&PostParams::default(), &there).await.unwrap();
    assert!(world.answer(&labelled("there")).await.allowed, "the API server says AlreadyExists");

    let mut jane = labelled("nightly");
    jane.user_info.username = Some("jane".to_owned());
    jane.user_info.groups = None;
    let refused = world.answer(&jane).await;
    assert_eq!(refused.result.code, 403);
    assert!(refused.result.message.contains("`create executionhooks`"), "{}", refused.result.message);

    let malformed = marked("nightly", json!({"annotations": {EXECUTION_HOOK_INFOS: "[{templateName: mysql}]"}}));
    let refused = world.answer(&malformed).await;
    assert_eq!(refused.result.code, 422);
    assert!(refused.result.message.contains("entry 0: unknown field `templateName`"), "{}", refused.result.message);

    let absent = marked("nightly", json!({"labels": {EXECUTION_HOOK_TEMPLATE_LABEL: "absent"}}));
    let refused = world.answer(&absent).await;
    assert!(refused.result.message.contains("ExecutionHookTemplate `absent` not found"), "{}", refused.result.message);

    let mut typo = labelled("nightly");
    typo.object.as_mut().unwrap().data["spec"]["volumeSnapshotClassName"] = json!("fats");
    let refused = world.answer(&typo).await;
    assert_eq!(refused.result.code, 403);
    let words = "VolumeSnapshotClass `fats` not found; the cluster has `fast`";
    assert!(refused.result.message.contains(words), "{}", refused.result.message);

    let too_short = world.door.review(&labelled("nightly"), Instant::now() + MARGIN).await;
    assert!(too_short.result.message.contains("may take 1 s"), "{}", too_short.result.message);
    assert_eq!(world.names().await, [""; 0]);
}

#[tokio::test]
async fn so_many_are_held_and_no_more() {
    let world = World::new().await;
    let mut held = tokio::task::JoinSet::new();
    for number in 0..MOST_HOLDS {
        let (door, ask) = (Arc::clone(&world.door), labelled(&format!("held-{number}")));
        held.spawn(async move { door.review(&ask, Instant::now() + DEADLINE).await });
        world.intent(&labelled(&format!("held-{number}")), |intent| intent.is_some()).await;
    }
    let refused = world.answer(&labelled("one-too-many")).await;
    assert_eq!((refused.allowed, refused.result.code), (false, 429));
    held.shutdown().await;
    let ask = labelled("again");
    let (answer, ()) = tokio::join!(world.answer(&ask), world.controller_says(&ask, frozen()));
    assert!(answer.allowed, "{:?}", answer.result);
}
