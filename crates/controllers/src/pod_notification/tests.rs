//! A PodNotification, look by look, with a container in this process: which commands run there, and which never do.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use boathook_api::{
    ApplicationSnapshot,
    pod_notification::{Claim, ErrorType, PodNotificationStatus, State},
    words::condition,
};
use boathook_decide::{execution_hook::child_name, pod_notification::Effect};
use boathook_runtime::lenient::Lenient;
use futures::StreamExt;
use http::{Method, Request};
use jiff::SignedDuration;
use k8s_openapi::{
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    client::Body,
    runtime::{reflector, watcher},
};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::service_fn;

use super::*;
use crate::{
    test_container::{Container, FREEZE, cluster_with_pod},
    test_world::{World, answer, clock, world_losing_lease_of, world_of},
};

const DEADLINE: Duration = Duration::from_secs(600);

/// A PodNotification `one` for the pod `db-0`, whose author declared `freeze` and `thaw`.
struct Stage {
    container: Arc<Container>,
    controller: Controller,
    api: Api<PodNotification>,
    /// Objects that the controller wants to look at again.
    again: mpsc::UnboundedReceiver<ObjectRef<PodNotification>>,
    /// ExecutionHooks that the controller wakes.
    hooks: mpsc::UnboundedReceiver<ObjectRef<ExecutionHook>>,
    /// The seconds of the controller's own clock.
    seconds: Arc<AtomicU64>,
}

fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// With an undo after this many seconds, if any.
fn freeze(undo_after: Option<i32>) -> Value {
    let mut spec = json!({"podName": "db-0", "notifier": "freeze"});
    if let Some(seconds) = undo_after {
        spec["undo"] = json!({"notifier": "thaw", "afterSeconds": seconds});
    }
    spec
}

impl Stage {
    async fn new(spec: Value) -> Self {
        let (client, container) = cluster_with_pod().await;
        Self::of(world_of(client.clone(), client.clone()).await, client, container, spec).await
    }

    async fn of(world: World, client: Client, container: Arc<Container>, spec: Value) -> Self {
        let api: Api<PodNotification> = Api::namespaced(client, "default");
        api.create(&PostParams::default(), &PodNotification::new("one", read(spec))).await.unwrap();
        let (look_again, again) = mpsc::unbounded_channel();
        let (tell, hooks) = mpsc::unbounded_channel();
        let (clock, seconds) = clock();
        let World { client, lease, reporter } = world;
        let surroundings = Surroundings {
            client,
            identity: "me".to_owned(),
            lease,
            reporter,
            metrics: Arc::default(),
            look_again,
            parents: mpsc::unbounded_channel().0,
            hooks: tell,
            clock,
        };
        let limits = Limits { per_node: 9, per_namespace: 9 };
        let options = Options { executor: Executor::Api, enabled: true, limits };
        Self { container, controller: Controller::new(options, surroundings), api, again, hooks, seconds }
    }

    async fn object(&self) -> PodNotification {
        self.api.get("one").await.unwrap()
    }

    async fn status(&self) -> PodNotificationStatus {
        self.object().await.status.unwrap_or_default()
    }

    async fn look(&self) -> Result<Option<Duration>, Error> {
        self.controller.reconcile(Arc::new(self.object().await)).await
    }

    /// Waits until the controller wants to look again.
    async fn ended(&mut self) {
        timeout(DEADLINE, self.again.recv()).await.expect("something ends").unwrap();
    }

    async fn begun(&self, commands: &[&str]) {
        timeout(DEADLINE, self.container.begun(commands.len())).await.expect("the command begins");
        assert_eq!(self.container.commands(), commands);
    }

    async fn is_undone(&self) -> bool {
        let conditions = self.status().await.conditions;
        conditions.iter().any(|one| one.type_ == condition::UNDONE && one.status == "True")
    }

    /// What was created before this counts as unchecked.
    async fn remove_webhooks(&self) {
        let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(self.api.clone().into_client());
        webhooks.delete("boathook", &DeleteParams::default()).await.unwrap();
    }

    async fn patch(&self, patch: Value) {
        self.api.patch("one", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

/// A client that writes this patch of `one` just before its status is replaced.
fn overtaken(real: Client, of_status: bool, patch: Value) -> Client {
    let asked = move |request: Request<Body>| {
        let (real, patch) = (real.clone(), patch.clone());
        async move {
            if request.method() == Method::PUT && request.uri().path().ends_with("/one/status") {
                let api: Api<PodNotification> = Api::namespaced(real.clone(), "default");
                let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
                match of_status {
                    true => api.patch_status("one", &params, &patch).await.unwrap(),
                    false => api.patch("one", &params, &patch).await.unwrap(),
                };
            }
            real.send(request).await
        }
    };
    Client::new(service_fn(asked), "default")
}

#[tokio::test]
async fn handler_runs_once_and_is_undone_when_asked() {
    let mut stage = Stage::new(freeze(Some(3600))).await;
    stage.look().await.unwrap();
    stage.begun(&[FREEZE]).await;
    let claim = stage.status().await.claim.expect("the claim is written before the start");
    assert_eq!(claim.holder, "me");
    stage.look().await.unwrap();
    stage.container.end_freeze();
    stage.ended().await;
    stage.look().await.unwrap();
    assert_eq!(stage.status().await.state, State::Succeeded);
    stage.begun(&[FREEZE]).await;
    assert!(!stage.is_undone().await);

    stage.patch(json!({"spec": {"undoRequested": true}})).await;
    stage.look().await.unwrap();
    stage.ended().await;
    stage.look().await.unwrap();
    stage.begun(&[FREEZE, "thaw"]).await;
    assert!(stage.is_undone().await);
}

#[tokio::test]
async fn process_that_loses_the_claim_runs_nothing() {
    let (client, container) = cluster_with_pod().await;
    let theirs = Claim { holder: "another".to_owned(), time: MicroTime("2026-01-01T00:00:00Z".parse().unwrap()) };
    let overtaken = overtaken(client.clone(), true, json!({"status": {"claim": theirs}}));
    let world = world_of(client.clone(), overtaken).await;
    let stage = Stage::of(world, client, container, freeze(None)).await;
    let error = stage.look().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Conflict);
    assert_eq!(stage.status().await.claim, Some(theirs));
    assert_eq!(stage.controller.runs.progress(&stage.object().await.uid().unwrap()), Default::default());
    assert_eq!(stage.container.commands(), [""; 0]);
}

#[tokio::test]
async fn revocation_before_the_claim_is_written_runs_nothing() {
    let (client, container) = cluster_with_pod().await;
    let overtaken = overtaken(client.clone(), false, json!({"spec": {"undoRequested": true}}));
    let world = world_of(client.clone(), overtaken).await;
    let stage = Stage::of(world, client, container, freeze(Some(3600))).await;
    assert_eq!(stage.look().await.unwrap_err().class(), ErrorClass::Conflict);
    stage.look().await.unwrap();
    let status = stage.status().await;
    assert_eq!((status.claim, status.error.unwrap().kind), (None, ErrorType::Revoked));
    assert_eq!(stage.container.commands(), [""; 0]);
}

#[tokio::test]
async fn lease_lost_with_the_claim_runs_nothing() {
    let (client, container) = cluster_with_pod().await;
    let world = world_losing_lease_of(client.clone(), "/one/status").await;
    let stage = Stage::of(world, client, container, freeze(None)).await;
    assert!(matches!(stage.look().await, Err(Error::LeaseLost)));
    let object = stage.object().await;
    assert!(object.status.unwrap().claim.is_some(), "it was lost after the write");
    assert_eq!(stage.controller.runs.progress(&object.metadata.uid.unwrap()), Default::default());
    assert_eq!(stage.container.commands(), [""; 0]);
}

#[tokio::test]
async fn claim_later_than_the_expiry_runs_nothing() {
    let stage = Stage::new(freeze(Some(60))).await;
    let mut object = stage.object().await;
    let claim = Claim { holder: "me".to_owned(), time: MicroTime(Timestamp::now() - SignedDuration::from_secs(61)) };
    let status = PodNotificationStatus { claim: Some(claim), ..PodNotificationStatus::default() };
    let effects = vec![Effect::WriteStatus(Box::new(status)), Effect::Start(vec![])];
    let late = act::act(&stage.controller, &mut object, effects, &mut None).await;
    assert!(matches!(late, Err(Error::TooLate)), "{late:?}");
    assert_eq!(stage.controller.runs.progress(&object.uid().unwrap()), Default::default());
}

#[tokio::test]
async fn expired_handler_is_undone_while_it_runs() {
    let stage = Stage::new(freeze(Some(60))).await;
    stage.look().await.unwrap();
    stage.begun(&[FREEZE]).await;
    let claim = Claim { holder: "me".to_owned(), time: MicroTime(Timestamp::now() - SignedDuration::from_secs(61)) };
    let patch = Patch::Merge(json!({"status": {"claim": claim}}));
    stage.api.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
    stage.look().await.unwrap();
    stage.begun(&[FREEZE, "thaw"]).await;
}

#[tokio::test]
async fn undo_expires_though_the_wall_clock_was_stepped_back() {
    const AN_HOUR: SignedDuration = SignedDuration::from_hours(1);
    let stage = Stage::new(freeze(Some(60))).await;
    stage.look().await.unwrap();
    stage.begun(&[FREEZE]).await;
    let claim = Claim { holder: "me".to_owned(), time: MicroTime(Timestamp::now() + AN_HOUR) };
    let patch = Patch::Merge(json!({"status": {"claim": claim}}));
    stage.api.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
    let again = stage.look().await.unwrap().expect("it looks again at the expiry");
    assert!(again <= Duration::from_secs(60), "{again:?}");
    let due = stage.controller.urgent_at(&stage.object().await).expect("it expires");
    assert!(due <= Timestamp::now() + SignedDuration::from_secs(60), "{due}");
    stage.seconds.store(61, Ordering::SeqCst);
    stage.look().await.unwrap();
    stage.begun(&[FREEZE, "thaw"]).await;
}

#[tokio::test]
async fn last_round_comes_though_the_wall_clock_was_stepped_back() {
    let mut stage = Stage::new(freeze(Some(60))).await;
    stage.container.end_freeze();
    stage.look().await.unwrap();
    stage.ended().await;
    stage.look().await.unwrap();
    // Recorded by a process whose clock was an hour ahead; its undo ran since.
    let ahead = MicroTime(Timestamp::now() + SignedDuration::from_hours(1));
    let mut status = serde_json::to_value(stage.status().await).unwrap();
    (status["completeTime"], status["containers"][0]["processMayRemain"]) = (json!(ahead), json!(true));
    stage.api.patch_status("one", &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await.unwrap();
    stage.patch(json!({"spec": {"undoRequested": true}})).await;
    stage.look().await.unwrap();
    stage.ended().await;
    stage.look().await.unwrap();
    assert!(stage.is_undone().await);
    let again = stage.look().await.unwrap().expect("it is undone once more");
    assert!(again <= Duration::from_secs(60), "{again:?}");
    stage.seconds.store(60, Ordering::SeqCst);
    stage.look().await.unwrap();
    stage.begun(&[FREEZE, "thaw", "thaw"]).await;
    stage.ended().await;
    stage.look().await.unwrap();
    stage.look().await.unwrap();
    assert_eq!(stage.object().await.finalizers(), [""; 0], "it is not owed again");
}

#[tokio::test]
async fn start_deadline_passes_though_the_wall_clock_stands_still() {
    let stage = Stage::new(freeze(Some(60))).await;
    stage.controller.deadline_now(&stage.object().await, Timestamp::now());
    stage.seconds.store(3600, Ordering::SeqCst);
    stage.look().await.unwrap();
    assert_eq!(stage.status().await.error.unwrap().kind, ErrorType::StartDeadlineExceeded);
    assert_eq!(stage.container.commands(), [""; 0]);
}

#[tokio::test]
async fn handler_of_a_dead_process_is_undone_and_not_repeated() {
    let mut stage = Stage::new(freeze(Some(3600))).await;
    let pods: Api<Pod> = Api::namespaced(stage.controller.client.clone(), "default");
    let thaw = json!({"action": {"exec": {"command": ["thaw"]}, "timeoutSeconds": 60}});
    let status = json!({"podUID": pods.get("db-0").await.unwrap().uid(), "nodeName": "node", "executor": "api",
        "claim": {"holder": "dead", "time": MicroTime(Timestamp::now())}, "containers": [{"name": "main", "undo": thaw}]});
    let patch = Patch::Merge(json!({"status": status}));
    stage.api.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
    stage.look().await.unwrap();
    assert_eq!(stage.status().await.error.unwrap().kind, ErrorType::OutcomeUnknown);
    stage.ended().await;
    stage.look().await.unwrap();
    assert!(stage.is_undone().await);
    stage.begun(&["thaw"]).await;
}

#[tokio::test]
async fn handler_that_returns_after_its_object_was_removed_is_undone() {
    let mut stage = Stage::new(freeze(Some(3600))).await;
    stage.look().await.unwrap();
    stage.begun(&[FREEZE]).await;
    stage.patch(json!({"metadata": {"finalizers": null}})).await;
    stage.api.delete("one", &DeleteParams::default()).await.unwrap();
    let removed = ObjectRef::new("one").within("default");
    stage.controller.gone(&removed);
    stage.container.end_freeze();
    stage.ended().await;
    stage.controller.gone(&removed);
    stage.begun(&[FREEZE, "thaw"]).await;
}

#[tokio::test]
async fn command_whose_author_was_not_checked_is_refused() {
    let action = json!({"exec": {"command": ["rm"]}});
    let stage = Stage::new(json!({"podName": "db-0", "action": action})).await;
    stage.remove_webhooks().await;
    stage.look().await.unwrap();
    let error = stage.status().await.error.unwrap();
    assert_eq!(error.kind, ErrorType::Forbidden, "{}", error.message);
    assert_eq!(stage.container.commands(), [""; 0]);
}

/// A user may write any text as the name of an owner.
#[tokio::test]
async fn owner_of_an_impossible_name_is_gone() {
    for name in ["a b", "a?watch=true", "../pods/db-0", ".", ".."] {
        let stage = Stage::new(freeze(None)).await;
        let owner = json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook", "controller": true,
            "name": name, "uid": "a"});
        stage.patch(json!({"metadata": {"ownerReferences": [owner]}})).await;
        stage.look().await.unwrap();
        assert_eq!(stage.status().await.error.unwrap().kind, ErrorType::Revoked, "{name}");
        assert_eq!(stage.container.commands(), [""; 0]);
    }
}

/// A user who may only patch pods could have added it before the webhooks refused that.
#[tokio::test]
async fn declaration_of_an_unchecked_pod_is_not_run() {
    let inline = json!({"exec": {"command": ["rm"]}});
    for spec in [freeze(None), json!({"podName": "db-0", "action": inline, "undo": {"notifier": "thaw"}})] {
        let stage = Stage::new(spec).await;
        stage.remove_webhooks().await;
        stage.look().await.unwrap();
        let error = stage.status().await.error.unwrap();
        assert_eq!(error.kind, ErrorType::Forbidden, "{}", error.message);
        assert_eq!(stage.container.commands(), [""; 0]);
    }
    let stage = Stage::new(freeze(None)).await;
    stage.remove_webhooks().await;
    stage.look().await.unwrap();
    let message = stage.status().await.error.unwrap().message;
    assert!(message.starts_with("pod `db-0` was created before Boathook's webhooks"), "{message}");
}

/// The agent sees the declaration of the pod's latest sandbox, which may have been made after it was added.
#[tokio::test]
async fn agent_is_given_no_declaration_of_an_unchecked_pod() {
    let mut stage = Stage::new(freeze(None)).await;
    stage.controller.options.executor = Executor::Agent;
    stage.remove_webhooks().await;
    stage.look().await.unwrap();
    let status = stage.status().await;
    assert_eq!((status.executor, status.error.unwrap().kind), (None, ErrorType::Forbidden));
}

#[tokio::test]
async fn agent_is_given_the_declaration_of_a_checked_pod() {
    let mut stage = Stage::new(freeze(None)).await;
    stage.controller.options.executor = Executor::Agent;
    stage.look().await.unwrap();
    stage.remove_webhooks().await;
    stage.look().await.unwrap();
    let status = stage.status().await;
    assert_eq!((status.executor, status.error), (Some(Executor::Agent), None));
}

#[tokio::test]
async fn closed_controller_starts_nothing() {
    let stage = Stage::new(freeze(None)).await;
    stage.controller.close();
    stage.look().await.unwrap();
    assert_eq!(stage.status().await.claim, None);
    assert_eq!(stage.container.commands(), [""; 0]);
}

/// With the feature gate off, what a hook makes runs, and nothing that only names a hook as its owner.
#[tokio::test]
async fn owner_reference_alone_does_not_pass_the_feature_gate() {
    for (enabled, own_action, runs) in [(false, true, true), (false, false, false), (true, false, true)] {
        let mut stage = Stage::new(freeze(None)).await;
        stage.controller.options.enabled = enabled;
        let client = stage.api.clone().into_client();
        let pod = Api::<Pod>::namespaced(client.clone(), "default").get("db-0").await.unwrap().uid().unwrap();
        let hooks: Api<ExecutionHook> = Api::namespaced(client.clone(), "default");
        let hook: ExecutionHook =
            read(json!({"metadata": {"name": "hook"}, "spec": {"executionHookTemplateName": "quiet"}}));
        hooks.create(&PostParams::default(), &hook).await.unwrap();
        let notifier = if own_action { "freeze" } else { "thaw" };
        let freezing = json!({"type": condition::FROZEN, "status": "Unknown", "reason": "Freezing", "message": "",
            "lastTransitionTime": "2026-11-01T00:00:00Z"});
        let container = json!({"podName": "db-0", "podUID": pod, "containerName": "main"});
        let recorded = json!({"policy": "ExecuteAll", "preAction": {"notifier": notifier}});
        let status = json!({"status": {"recorded": recorded, "conditions": [freezing],
            "containerExecutionHookStatuses": [container]}});
        let hook = hooks.patch_status("hook", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        // As the hook makes it, and every user can.
        let mut made: PodNotification = PodNotification::new(
            &child_name(&hook, &pod),
            read(json!({"podName": "db-0", "podUID": pod, "notifier": "freeze", "containers": ["main"],
                "retry": "UntilTimeout"})),
        );
        made.metadata.owner_references = hook.controller_owner_ref(&()).map(|owner| vec![owner]);
        let made = stage.api.create(&PostParams::default(), &made).await.unwrap();
        stage.controller.reconcile(Arc::new(made)).await.unwrap();
        let made = stage.api.get(&child_name(&hook, &pod)).await.unwrap();
        let error = made.status.unwrap().error.map(|error| error.kind);
        assert_eq!(error, (!runs).then_some(ErrorType::Revoked), "enabled: {enabled}, own action: {own_action}");
    }
}

#[tokio::test]
async fn child_of_a_removed_hook_wakes_it_and_runs_nothing() {
    let mut stage = Stage::new(freeze(Some(3600))).await;
    let owner = json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook", "name": "hook", "uid": "u",
        "controller": true});
    stage.patch(json!({"metadata": {"ownerReferences": [owner]}})).await;
    stage.look().await.unwrap();
    assert_eq!(stage.hooks.try_recv().ok(), Some(ObjectRef::new("hook").within("default")));
    assert_eq!(stage.status().await.error.unwrap().kind, ErrorType::Revoked);
    assert_eq!(stage.container.commands(), [""; 0]);
}

#[tokio::test]
async fn ending_pod_wakes_its_notification_and_is_thawed() {
    let mut stage = Stage::new(freeze(Some(3600))).await;
    stage.container.end_freeze();
    stage.look().await.unwrap();
    stage.ended().await;
    stage.look().await.unwrap();
    assert_eq!(stage.status().await.state, State::Succeeded);

    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(stage.object().await))));
    let client = stage.api.clone().into_client();
    let mut woken = std::pin::pin!(triggers(client.clone(), store, &Default::default()));
    let pods: Api<Pod> = Api::namespaced(client, "default");
    pods.delete("db-0", &DeleteParams::default().grace_period(600)).await.unwrap();
    let next = timeout(DEADLINE, woken.next()).await.expect("the deletion wakes it");
    assert_eq!(next, Some(ObjectRef::new("one").within("default")));
    stage.look().await.unwrap();
    assert!(stage.object().await.spec.undo_requested);
    stage.look().await.unwrap();
    stage.ended().await;
    stage.look().await.unwrap();
    assert!(stage.is_undone().await);
    stage.begun(&[FREEZE, "thaw"]).await;
    assert!(pods.get("db-0").await.unwrap().metadata.deletion_timestamp.is_some(), "its grace period is not over");
}

#[tokio::test]
async fn notification_in_an_ending_pod_is_urgent_until_it_is_looked_at() {
    let mut stage = Stage::new(freeze(Some(3600))).await;
    stage.container.end_freeze();
    stage.look().await.unwrap();
    stage.ended().await;
    stage.look().await.unwrap();
    let (object, reference) = (stage.object().await, ObjectRef::new("one").within("default"));
    assert!(stage.controller.urgent_at(&object) > Some(Timestamp::now()), "at its expiry");
    stage.controller.pod_is_ending(&reference);
    assert!(stage.controller.urgent_at(&object) < Some(Timestamp::now()));
    stage.look().await.unwrap();
    assert!(stage.controller.urgent_at(&object) > Some(Timestamp::now()));
}

/// A snapshot in this phase whose one hook names this pod.
async fn snapshot(client: &Client, name: &str, phase: &str, pod: &str) {
    let api: Api<ApplicationSnapshot> = Api::namespaced(client.clone(), "default");
    let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": []});
    api.create(&PostParams::default(), &ApplicationSnapshot::new(name, read(spec))).await.unwrap();
    let named = json!([{"podName": pod, "containerNames": ["main"]}]);
    let hook = json!({"name": "hook", "executionHookTemplateName": "app", "podContainerNamesList": named});
    let status = Patch::Merge(json!({"status": {"phase": phase, "hooks": [hook], "executionHookNames": ["hook"]}}));
    api.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

#[tokio::test]
async fn handler_is_recorded_on_undecided_snapshots_of_its_pod() {
    let stage = Stage::new(json!({"podName": "db-0", "notifier": "thaw"})).await;
    let client = stage.api.clone().into_client();
    let snapshots = [("freezes", "Freezing", "db-0"), ("over", "Complete", "db-0"), ("elsewhere", "Cutting", "web-0")];
    for (name, phase, pod) in snapshots {
        snapshot(&client, name, phase, pod).await;
    }
    stage.look().await.unwrap();
    stage.begun(&["thaw"]).await;
    let api: Api<ApplicationSnapshot> = Api::namespaced(client, "default");
    for (name, expected) in [("freezes", &["one"][..]), ("over", &[]), ("elsewhere", &[])] {
        let status = api.get(name).await.unwrap().status.unwrap();
        let recorded: Vec<_> = status.other_notifications.iter().map(|other| other.name.as_str()).collect();
        assert_eq!(recorded, expected, "on `{name}`");
    }
}

#[tokio::test]
async fn handler_that_cannot_be_recorded_does_not_run() {
    let (client, container) = cluster_with_pod().await;
    snapshot(&client, "freezes", "Freezing", "db-0").await;
    let real = client.clone();
    let refusing = service_fn(move |request: Request<Body>| {
        let real = real.clone();
        let is_record = request.method() == Method::PUT && request.uri().path().ends_with("/freezes/status");
        async move { if is_record { Ok(answer(409, "Conflict", "it has changed")) } else { real.send(request).await } }
    });
    let world = world_of(client.clone(), Client::new(refusing, "default")).await;
    let spec = json!({"podName": "db-0", "notifier": "thaw"});
    let stage = Stage::of(world, client, container, spec).await;
    assert_eq!(stage.look().await.unwrap_err().class(), ErrorClass::Conflict);
    assert_eq!(stage.status().await, PodNotificationStatus::default());
    assert_eq!(stage.container.commands(), [""; 0]);
}
