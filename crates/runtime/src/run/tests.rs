use std::collections::HashSet;

use boathook_api::{PodNotification, pod_notification::PodNotificationSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use snafu::Snafu;
use tokio::sync::{Notify, mpsc, watch};

use super::*;
use crate::test_cluster::{self, client_with_kinds, disturbed};

const DEADLINE: Duration = Duration::from_secs(600);

#[derive(Debug, Snafu)]
#[snafu(display("{class:?}"))]
struct Trouble {
    class: ErrorClass,
}

impl Classified for Trouble {
    fn class(&self) -> ErrorClass {
        self.class
    }
}

/// What the loop was seen to do.
#[derive(Debug, PartialEq)]
enum Told {
    /// Name, and the label `step`.
    Looked(String, String),
    Gone(String),
}

/// Does what the label `do` of an object says, and tells what it saw.
struct Script {
    told: mpsc::UnboundedSender<Told>,
    hold: Arc<Notify>,
    tries: Mutex<u32>,
    client: Client,
    /// The objects that are urgent without a change of their own, by name.
    urgent: Arc<Mutex<HashSet<String>>>,
    /// How often the loop has asked whether an object is urgent, by name.
    asked: watch::Sender<HashMap<String, usize>>,
}

impl Reconcile<PodNotification> for Script {
    type Error = Trouble;

    async fn reconcile(&self, object: Arc<PodNotification>) -> Result<Option<Duration>, Trouble> {
        let label = |key: &str| object.labels().get(key).cloned().unwrap_or_default();
        let name = object.name_any();
        let first = {
            let mut tries = self.tries.lock().unwrap();
            *tries += 1;
            *tries == 1
        };
        self.told.send(Told::Looked(name.clone(), label("step"))).unwrap();
        match label("do").as_str() {
            "conflict-once" if first => {
                // The object changes under our eyes; whether the watch has seen it yet does not matter.
                let patch = Patch::Merge(serde_json::json!({"metadata": {"labels": {"step": "two"}}}));
                let api = Api::<PodNotification>::namespaced(self.client.clone(), "default");
                api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
                Err(Trouble { class: ErrorClass::Conflict })
            }
            "fail-twice" if *self.tries.lock().unwrap() <= 2 => Err(Trouble { class: ErrorClass::Transient }),
            "panic" => panic!("as the label says"),
            "again" if first => Ok(Some(Duration::from_millis(10))),
            "hold" => {
                self.hold.notified().await;
                self.told.send(Told::Looked(name, "finished".to_owned())).unwrap();
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn urgent_at(&self, object: &PodNotification) -> Option<Timestamp> {
        self.asked.send_modify(|asked| *asked.entry(object.name_any()).or_default() += 1);
        let is_named = self.urgent.lock().unwrap().contains(&object.name_any());
        (is_named || object.labels().contains_key("urgent")).then_some(Timestamp::MIN)
    }

    fn gone(&self, object: &ObjectRef<PodNotification>) {
        self.told.send(Told::Gone(object.name.clone())).unwrap();
    }
}

struct Stage {
    client: Client,
    api: Api<PodNotification>,
    told: mpsc::UnboundedReceiver<Told>,
    trigger: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    hold: Arc<Notify>,
    urgent: Arc<Mutex<HashSet<String>>>,
    asked: watch::Sender<HashMap<String, usize>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    running: tokio::task::JoinHandle<()>,
}

impl Stage {
    async fn set(client: Client) -> Self {
        Self::with_places(client, CONCURRENCY).await
    }

    async fn with_places(client: Client, places: usize) -> Self {
        let run = RunLoop::new(client.clone(), watcher::Config::default()).concurrency(places);
        Self::of(client, run)
    }

    fn of(client: Client, mut run: RunLoop<PodNotification>) -> Self {
        let (sender, told) = mpsc::unbounded_channel();
        let hold = Arc::<Notify>::default();
        let (urgent, asked) = (Arc::<Mutex<HashSet<String>>>::default(), watch::Sender::default());
        let script = Script {
            told: sender,
            hold: Arc::clone(&hold),
            tries: Mutex::default(),
            client: client.clone(),
            urgent: Arc::clone(&urgent),
            asked: asked.clone(),
        };
        let trigger = run.channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(run.run(Arc::new(script), stopped.map(drop)));
        let api = Api::namespaced(client.clone(), "default");
        Self { client, api, told, trigger, hold, urgent, asked, stop: Some(stop), running }
    }

    async fn create(&self, name: &str, deed: &str) {
        self.api.create(&PostParams::default(), &notification(name, deed)).await.unwrap();
    }

    async fn next(&mut self) -> Told {
        tokio::time::timeout(DEADLINE, self.told.recv()).await.expect("the loop does nothing").unwrap()
    }

    async fn expect(&mut self, name: &str, step: &str) {
        assert_eq!(self.next().await, Told::Looked(name.to_owned(), step.to_owned()));
    }

    /// Expects it next, but for further looks at an object that changed.
    async fn expect_beside(&mut self, changed: &str, name: &str, step: &str) {
        loop {
            match self.next().await {
                Told::Looked(looked_at, _) if looked_at == changed => {}
                told => return assert_eq!(told, Told::Looked(name.to_owned(), step.to_owned())),
            }
        }
    }
}

fn notification(name: &str, deed: &str) -> PodNotification {
    let spec: PodNotificationSpec =
        serde_json::from_value(serde_json::json!({"podName": "db-0", "notifier": "reload"})).unwrap();
    let mut object = PodNotification::new(name, spec);
    object.labels_mut().extend([("do".to_owned(), deed.to_owned()), ("step".to_owned(), "one".to_owned())]);
    object
}

#[tokio::test]
async fn who_met_a_conflict_gets_the_object_as_it_is_now() {
    let client = client_with_kinds().await;
    let api = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &notification("a", "conflict-once")).await.unwrap();
    // The watch never tells of the change: only the API server itself does.
    let blind = disturbed(client, Arc::new(test_cluster::Trouble { blind: true, ..Default::default() }));
    let mut stage = Stage::set(blind).await;
    stage.expect("a", "one").await;
    stage.expect("a", "two").await;
}

#[tokio::test]
async fn what_fails_is_tried_again_and_what_asks_is_looked_at_again() {
    let mut stage = Stage::set(client_with_kinds().await).await;
    let begun = std::time::Instant::now();
    stage.create("a", "fail-twice").await;
    for _ in 0..3 {
        stage.expect("a", "one").await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(300), "100 and 200 ms of back-off");
    let mut stage = Stage::set(client_with_kinds().await).await;
    stage.create("b", "again").await;
    stage.expect("b", "one").await;
    stage.expect("b", "one").await;
}

#[tokio::test]
async fn every_waiter_learns_that_the_store_is_complete() {
    let client = client_with_kinds().await;
    let (told, _looks) = mpsc::unbounded_channel();
    let (hold, tries, urgent, asked) = (Arc::default(), Mutex::default(), Arc::default(), watch::Sender::default());
    let script = Script { told, hold, tries, client: client.clone(), urgent, asked };
    let run = RunLoop::<PodNotification>::new(client, watcher::Config::default());
    let waiters = [run.listed(), run.listed()].map(tokio::spawn);
    let _running = tokio::spawn(run.run(Arc::new(script), future::pending()));
    for waiter in waiters {
        tokio::time::timeout(DEADLINE, waiter).await.expect("there is nothing to list").unwrap();
    }
}

#[tokio::test]
async fn a_trigger_is_a_reason_to_look_and_who_is_gone_is_told() {
    let mut stage = Stage::set(client_with_kinds().await).await;
    stage.create("a", "").await;
    stage.expect("a", "one").await;
    stage.trigger.send(ObjectRef::new("a").within("default")).unwrap();
    stage.expect("a", "one").await;
    stage.api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(stage.next().await, Told::Gone("a".to_owned()));
}

#[tokio::test]
async fn an_object_that_cannot_be_read_and_one_that_panics_harm_only_themselves() {
    let client = client_with_kinds().await;
    // Stored under an older definition, as it were: the schema no longer holds it.
    let anything = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let loosen = serde_json::json!([
        {"op": "remove", "path": "/spec/versions/0/selectableFields"},
        {"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": anything},
    ]);
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let patch = Patch::<()>::Json(serde_json::from_value(loosen).unwrap());
    crds.patch("podnotifications.boathook.dev", &PatchParams::default(), &patch).await.unwrap();
    let resource = kube::api::ApiResource::erase::<PodNotification>(&());
    let unreadable = kube::api::DynamicObject::new("unreadable", &resource)
        .data(serde_json::json!({"spec": {"podName": ["no", "name"], "retry": 7}}));
    let dynamic: Api<kube::api::DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    dynamic.create(&PostParams::default(), &unreadable).await.unwrap();

    let mut stage = Stage::set(client).await;
    stage.create("panics", "panic").await;
    stage.expect("panics", "one").await;
    stage.create("well", "").await;
    stage.expect("well", "one").await;
    // One that becomes unreadable later is not looked at as it was before.
    let spoil = Patch::Merge(serde_json::json!({"spec": {"podName": {"a": "b"}}}));
    dynamic.patch("well", &PatchParams::default(), &spoil).await.unwrap();
    stage.create("last", "").await;
    stage.expect("last", "one").await;
    stage.trigger.send(ObjectRef::new("well").within("default")).unwrap();
    stage.trigger.send(ObjectRef::new("last").within("default")).unwrap();
    stage.expect("last", "one").await;
}

#[tokio::test]
async fn unselected_object_is_gone_and_never_looked_at() {
    let client = client_with_kinds().await;
    let run = RunLoop::new(client.clone(), watcher::Config::default());
    let selects = |object: &PodNotification| object.labels().get("do").is_none_or(|deed| deed != "unselected");
    let mut stage = Stage::of(client, run.only(selects));
    let write = async |api: &Api<PodNotification>, deed: &str| {
        let patch = Patch::Merge(serde_json::json!({"metadata": {"labels": {"do": deed}}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    };
    stage.create("a", "unselected").await;
    stage.create("b", "").await;
    stage.expect("b", "one").await;
    write(&stage.api, "").await;
    stage.expect("a", "one").await;
    write(&stage.api, "unselected").await;
    assert_eq!(stage.next().await, Told::Gone("a".to_owned()));
    stage.api.delete("a", &DeleteParams::default()).await.unwrap();
    stage.create("c", "").await;
    stage.expect("c", "one").await;
}

#[tokio::test]
async fn object_that_becomes_urgent_passes_those_that_wait() {
    let mut stage = Stage::with_places(client_with_kinds().await, 1).await;
    stage.create("held", "hold").await;
    stage.expect("held", "one").await;
    for name in ["first", "second"] {
        stage.create(name, "").await;
    }
    let urgent = Patch::Merge(serde_json::json!({"metadata": {"labels": {"urgent": ""}}}));
    stage.api.patch("second", &PatchParams::default(), &urgent).await.unwrap();
    stage.expect("second", "one").await;
    stage.hold.notify_one();
    // The change that made `second` urgent is also a reason to look at it once more.
    stage.expect_beside("second", "held", "finished").await;
    stage.expect_beside("second", "first", "one").await;
}

#[tokio::test]
async fn object_that_a_trigger_names_as_urgent_passes_those_that_wait() {
    let mut stage = Stage::with_places(client_with_kinds().await, 1).await;
    stage.create("held", "hold").await;
    stage.expect("held", "one").await;
    for name in ["first", "second"] {
        stage.create(name, "").await;
    }
    // Once when the store has it, and again when it begins to wait.
    let mut asked = stage.asked.subscribe();
    let waits = asked.wait_for(|asked| asked.get("second").is_some_and(|times| *times >= 2));
    tokio::time::timeout(DEADLINE, waits).await.expect("it does not wait").unwrap();
    stage.urgent.lock().unwrap().insert("second".to_owned());
    stage.trigger.send(ObjectRef::new("second").within("default")).unwrap();
    // Shorter than the time that `cargo xtask mutants` gives a test program.
    tokio::time::timeout(Duration::from_secs(60), stage.expect("second", "one")).await.expect("it waits for a place");
    stage.hold.notify_one();
    stage.expect_beside("second", "held", "finished").await;
}

#[test]
fn pause_after_a_failure_ends_when_the_object_is_urgent() {
    let (now, pause) = (Timestamp::UNIX_EPOCH, Duration::from_secs(60));
    let pause_before = |seconds: i64| no_later(pause, Some(now + jiff::SignedDuration::from_secs(seconds)), now);
    assert_eq!(pause_before(7), Duration::from_secs(7));
    assert_eq!([no_later(pause, None, now), pause_before(99), pause_before(0), pause_before(-5)], [pause; 4]);
}

#[tokio::test]
async fn a_stop_lets_what_runs_finish_and_begins_nothing_more() {
    let mut stage = Stage::set(client_with_kinds().await).await;
    stage.create("held", "hold").await;
    stage.expect("held", "one").await;
    stage.stop.take().unwrap().send(()).unwrap();
    stage.create("late", "").await;
    assert!(!stage.running.is_finished());
    stage.hold.notify_one();
    stage.expect("held", "finished").await;
    tokio::time::timeout(DEADLINE, &mut stage.running).await.unwrap().unwrap();
    assert!(stage.told.recv().await.is_none(), "nothing was begun after the stop");
    drop(stage.client);
}
