//! The agent with a node and an API server in this process: what it runs, and what it owes meanwhile.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use boathook_actions::{Place, place::cri::Runtime};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, PodNotificationStatus, State},
    words::condition,
};
use boathook_runtime::{
    Classified, Clock, Deadlines, ErrorClass, Metrics, Reconcile, Reporter,
    execution::{Latest, Limits, Rooms, Runs},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::reflector::ObjectRef,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver},
    time::timeout,
};

use crate::{
    Agent, Options,
    act::ActError,
    declared::Digests,
    keeper::Keeper,
    ledger::{Ledger, Record},
    readiness::check_rights,
    reconcile::{Desk, Error},
    test_node::{Node, POD, client, client_without_rights, files, unreachable},
};

const DEADLINE: Duration = Duration::from_secs(600);

/// The agent of the node without its loops: looks are the test's to make.
struct Stage {
    node: Node,
    desk: Desk,
    api: Api<PodNotification>,
    again: UnboundedReceiver<ObjectRef<PodNotification>>,
}

/// A notification `one` of the pod, accepted for the agent of `node`, with an undo.
async fn accepted(client: &Client, node: &Node) -> Api<PodNotification> {
    let api: Api<PodNotification> = Api::namespaced(client.clone(), "default");
    let undo = json!({"action": node.action("thaw"), "afterSeconds": 3600});
    let spec = json!({"podName": "db-0", "action": node.action("freeze"), "undo": undo});
    let one = PodNotification::new("one", serde_json::from_value(spec).unwrap());
    api.create(&PostParams::default(), &one).await.unwrap();
    pin(&api).await;
    api
}

async fn pin(api: &Api<PodNotification>) {
    let status = json!({"podUID": POD, "nodeName": "node", "executor": "agent", "containers": [{"name": "main"}]});
    patch_status(api, status).await;
}

async fn patch_status(api: &Api<PodNotification>, status: Value) {
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status("one", &PatchParams::default(), &patch).await.unwrap();
}

impl Stage {
    async fn new(name: &str) -> Self {
        let (node, client) = (Node::start(name).await, client().await);
        let api = accepted(&client, &node).await;
        let (look_again, again) = mpsc::unbounded_channel();
        let runtime = Runtime::new(&node.socket(), Default::default());
        let rooms = Rooms::new(Limits { per_node: 9, per_namespace: 9 }, look_again.clone());
        let runs = Runs::new(Place::Cri(runtime.clone()), Arc::default(), rooms.clone(), look_again.clone());
        let ledger = Arc::new(Ledger::open(&node.dir.join("ledger"), "boot").unwrap());
        let clock = Clock::of_the_machine();
        let keeper = Arc::new(Keeper {
            ledger: Arc::clone(&ledger),
            runs: runs.clone(),
            clock: clock.clone(),
            retiring: Default::default(),
            broken: Default::default(),
        });
        let (reporter, telling) = Reporter::new(client.clone(), "test", "me", Arc::new(Metrics::default()));
        tokio::spawn(telling);
        let desk = Desk {
            client,
            identity: "me".to_owned(),
            node: "node".to_owned(),
            runtime,
            runs,
            rooms,
            latest: Latest::default(),
            look_again,
            ledger,
            keeper,
            digests: Digests::open(&node.dir.join("declared")).unwrap(),
            deadlines: Deadlines::new(clock.clone()),
            clock,
            reporter,
        };
        Self { node, desk, api, again }
    }

    async fn object(&self) -> PodNotification {
        self.api.get("one").await.unwrap()
    }

    async fn status(&self) -> PodNotificationStatus {
        self.object().await.status.unwrap()
    }

    async fn look(&self) -> Result<Option<Duration>, Error> {
        self.desk.reconcile(Arc::new(self.object().await)).await
    }

    /// Waits until the agent wants to look again.
    async fn ended(&mut self) {
        timeout(DEADLINE, self.again.recv()).await.expect("something ends").unwrap();
    }

    fn kept(&self) -> usize {
        let kept = files(&self.node.dir.join("ledger"), "json").len();
        assert_eq!(self.desk.ledger.all().len(), kept, "on disk and in memory");
        kept
    }

    async fn nothing_was_begun(&self) {
        let uid = self.object().await.uid().unwrap();
        assert_eq!(self.desk.runs.progress(&uid), Default::default());
        self.node.container.asked(&[]).await;
    }
}

#[tokio::test]
async fn undo_is_kept_from_the_start_of_the_handler_until_it_is_done() {
    let mut stage = Stage::new("kept").await;
    stage.look().await.unwrap();
    stage.node.container.asked(&["freeze"]).await;
    assert_eq!(stage.kept(), 1);
    stage.node.container.end_freeze();
    stage.ended().await;
    stage.look().await.unwrap();
    assert_eq!((stage.status().await.state, stage.kept()), (State::Succeeded, 1));

    let asked = Patch::Merge(json!({"spec": {"undoRequested": true}}));
    stage.api.patch("one", &PatchParams::default(), &asked).await.unwrap();
    stage.look().await.unwrap();
    stage.ended().await;
    assert_eq!(stage.kept(), 1, "until it is written that it is undone");
    stage.look().await.unwrap();
    stage.node.container.asked(&["freeze", "thaw"]).await;
    let conditions = stage.status().await.conditions;
    assert!(conditions.iter().any(|one| one.type_ == condition::UNDONE && one.status == "True"), "{conditions:?}");
    assert_eq!(stage.kept(), 0);
}

#[tokio::test]
async fn handler_whose_undo_cannot_be_kept_does_not_start() {
    let stage = Stage::new("full").await;
    std::fs::remove_dir_all(stage.node.dir.join("ledger")).unwrap();
    let error = stage.look().await.unwrap_err();
    assert!(matches!(error, Error::Act { source: ActError::Ledger { .. } }), "{error:?}");
    stage.nothing_was_begun().await;
}

#[tokio::test]
async fn agent_that_loses_the_claim_runs_nothing_and_owes_nothing() {
    let stage = Stage::new("conflict").await;
    let seen = stage.object().await;
    patch_status(&stage.api, json!({"claim": {"holder": "another", "time": MicroTime(Timestamp::now())}})).await;
    let error = stage.desk.reconcile(Arc::new(seen)).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Conflict);
    assert_eq!(stage.kept(), 0);
    stage.nothing_was_begun().await;
}

#[tokio::test]
async fn revoked_notification_is_not_claimed() {
    let stage = Stage::new("revoked").await;
    let revoked = Patch::Merge(json!({"spec": {"undoRequested": true}}));
    stage.api.patch("one", &PatchParams::default(), &revoked).await.unwrap();
    stage.look().await.unwrap();
    assert_eq!(stage.status().await.claim, None);
    stage.nothing_was_begun().await;
}

#[tokio::test]
async fn handler_of_a_dead_agent_is_undone_and_not_repeated() {
    let mut stage = Stage::new("dead").await;
    let claim = json!({"holder": "dead", "time": MicroTime(Timestamp::now())});
    let undo = json!({"action": stage.node.action("thaw")});
    patch_status(&stage.api, json!({"claim": claim, "containers": [{"name": "main", "undo": undo}]})).await;
    stage.look().await.unwrap();
    assert_eq!(stage.status().await.error.unwrap().kind, ErrorType::OutcomeUnknown);
    stage.ended().await;
    stage.node.container.asked(&["thaw"]).await;
}

#[tokio::test]
async fn last_round_is_kept_for_soon_though_the_wall_clock_was_stepped_back() {
    let stage = Stage::new("stepped").await;
    let ahead = MicroTime(Timestamp::now() + SignedDuration::from_hours(1));
    let undo =
        json!({"action": stage.node.action("thaw"), "startTime": MicroTime(Timestamp::now()), "succeeded": true});
    let undone = json!({"type": "Undone", "status": "True", "reason": "UndoSucceeded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"state": "Failed", "claim": {"holder": "dead", "time": ahead}, "completeTime": ahead,
        "conditions": [undone], "containers": [{"name": "main", "processMayRemain": true, "undo": undo}]});
    patch_status(&stage.api, status).await;
    let ledger = &stage.desk.ledger;
    ledger.arm(Record::of(&stage.object().await, "boot", stage.desk.clock.now()).unwrap()).unwrap();
    stage.look().await.unwrap();
    let record = ledger.get(&stage.object().await.uid().unwrap()).expect("it is armed");
    let remaining = record.remaining("boot", stage.desk.clock.now()).expect("it has a time");
    assert!(record.last_round && remaining <= Duration::from_secs(3600), "{remaining:?}");
}

#[tokio::test]
async fn handler_is_ended_and_undone_when_its_object_was_removed() {
    let stage = Stage::new("removed").await;
    stage.look().await.unwrap();
    stage.node.container.asked(&["freeze"]).await;
    stage.api.delete("one", &DeleteParams::default()).await.unwrap();
    let mut changes = stage.desk.ledger.changes();
    changes.mark_unchanged();
    stage.desk.gone(&ObjectRef::new("one").within("default"));
    stage.node.container.asked(&["freeze", "thaw"]).await;
    timeout(DEADLINE, changes.changed()).await.unwrap().unwrap();
    assert_eq!(stage.kept(), 0);
}

/// Nothing in the ledger tells of its run.
#[tokio::test]
async fn handler_without_undo_is_ended_and_forgotten_when_its_object_was_removed() {
    for replaced in [false, true] {
        let mut stage = Stage::new(&format!("without-undo-{replaced}")).await;
        let spec = json!({"podName": "db-0", "action": stage.node.action("freeze")});
        let one = PodNotification::new("one", serde_json::from_value(spec).unwrap());
        stage.api.delete("one", &DeleteParams::default()).await.unwrap();
        stage.api.create(&PostParams::default(), &one).await.unwrap();
        pin(&stage.api).await;
        stage.look().await.unwrap();
        stage.node.container.asked(&["freeze"]).await;
        let under_way = stage.desk.runs.under_way();
        assert_eq!((*under_way.borrow(), stage.kept()), (1, 0));
        stage.api.delete("one", &DeleteParams::default()).await.unwrap();
        if replaced {
            stage.api.create(&PostParams::default(), &one).await.unwrap();
        }
        let gone = async |stage: &Stage| match replaced {
            true => drop(stage.look().await.unwrap()),
            false => stage.desk.gone(&ObjectRef::new("one").within("default")),
        };
        gone(&stage).await;
        timeout(DEADLINE, stage.again.recv()).await.expect("the handler is ended").unwrap();
        gone(&stage).await;
        assert_eq!(*under_way.borrow(), 0);
        stage.node.container.asked(&["freeze"]).await;
    }
}

fn options(node: &Node) -> Options {
    Options {
        node: "node".to_owned(),
        cri_socket: node.socket(),
        state_dir: node.dir.join("state"),
        allow_signals: BTreeSet::new(),
        limit: 9,
    }
}

fn armed(node: &Node, boot: &str) {
    let record = json!({"uid": "u", "namespace": "default", "name": "gone", "pod": "db-0", "podUID": POD,
        "undo": {"main": node.action("thaw")}, "boot": boot, "expires": null});
    let ledger = Ledger::open(&node.dir.join("state/ledger"), boot).unwrap();
    ledger.arm(serde_json::from_value::<Record>(record).unwrap()).unwrap();
}

fn this_boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

#[tokio::test]
async fn overdue_undo_runs_while_the_api_server_is_down() {
    let node = Node::start("overdue").await;
    armed(&node, "earlier");
    let agent = Agent::start(unreachable(), options(&node), Arc::default()).await.unwrap();
    node.container.asked(&["thaw"]).await;
    agent.stop().await;
    assert_eq!(files(&node.dir.join("state/ledger"), "json"), ["u.json"], "its undo is not confirmed");
}

#[tokio::test]
async fn undo_of_an_object_that_was_removed_meanwhile_runs_and_is_dropped() {
    let node = Node::start("meanwhile").await;
    armed(&node, &this_boot());
    let agent = Agent::start(client().await, options(&node), Arc::default()).await.unwrap();
    node.container.asked(&["thaw"]).await;
    agent.stop().await;
    assert_eq!(files(&node.dir.join("state/ledger"), "json"), [""; 0]);
}

#[tokio::test]
async fn notes_of_an_earlier_agent_are_closed_at_the_start() {
    let node = Node::start("notes").await;
    let running = node.dir.join("state/running");
    std::fs::create_dir_all(&running).unwrap();
    std::fs::write(running.join("a"), "earlier 1 1\n").unwrap();
    let agent = Agent::start(unreachable(), options(&node), Arc::default()).await.unwrap();
    assert_eq!(std::fs::read_dir(&running).unwrap().count(), 0);
    agent.stop().await;
}

#[tokio::test]
async fn stop_waits_for_a_running_handler_and_keeps_its_undo() {
    let (node, client) = (Node::start("stop").await, client().await);
    let api = accepted(&client, &node).await;
    let agent = Agent::start(client, options(&node), Arc::default()).await.unwrap();
    node.container.asked(&["freeze"]).await;
    let stopping = tokio::spawn(agent.stop());
    // As long as this takes, a stop that does not wait has ended.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished());
    node.container.end_freeze();
    timeout(DEADLINE, stopping).await.unwrap().unwrap();
    assert_eq!(api.get("one").await.unwrap().status.unwrap().state, State::Succeeded);
    assert_eq!(files(&node.dir.join("state/ledger"), "json").len(), 1);
}

#[tokio::test]
async fn agent_whose_loop_died_stops() {
    let node = Node::start("dead-loop").await;
    let mut agent = Agent::start(unreachable(), options(&node), Arc::default()).await.unwrap();
    agent.run_loop.abort_all();
    let ending = async {
        agent.died().await;
        agent.stop().await;
    };
    timeout(Duration::from_secs(60), ending).await.expect("the stop waits for a loop that is gone");
}

#[tokio::test]
async fn agent_is_ready_with_runtime_rights_and_first_list() {
    let node = Node::start("ready").await;
    let agent = Agent::start(client().await, options(&node), Arc::default()).await.unwrap();
    readiness(&agent, |ready| ready.is_ok()).await;
    agent.stop().await;
}

/// Waits until the agent's readiness is as wanted.
async fn readiness(agent: &Agent, wanted: impl Fn(&Result<(), String>) -> bool) {
    let is_ready = agent.is_ready();
    let becomes = async {
        while !wanted(&is_ready()) {
            tokio::task::yield_now().await;
        }
    };
    if timeout(Duration::from_secs(60), becomes).await.is_err() {
        panic!("it stays {:?}", is_ready());
    }
}

#[tokio::test]
async fn agent_whose_runtime_dies_or_hangs_is_soon_not_ready() {
    for (name, missing) in [("dies", "did not return its version:"), ("hangs", "did not return its version within")] {
        let node = Node::start(name).await;
        let runtime = node.second_runtime();
        let options = Options { cri_socket: runtime.socket.clone(), ..options(&node) };
        let agent = Agent::start(client().await, options, Arc::default()).await.unwrap();
        readiness(&agent, |ready| ready.is_ok()).await;
        match name {
            "dies" => runtime.die(),
            _ => runtime.hang(),
        }
        let begun = Instant::now();
        readiness(&agent, |ready| ready.as_ref().is_err_and(|why| why.contains(missing))).await;
        assert!(begun.elapsed() < Duration::from_secs(15), "{name}: it lags by {:?}", begun.elapsed());
        agent.stop().await;
    }
}

#[tokio::test]
async fn agent_without_its_runtime_or_a_list_is_not_ready() {
    let node = Node::start("not-ready").await;
    let nowhere = Options { cri_socket: node.dir.join("nowhere"), ..options(&node) };
    for (client, options, missing) in
        [(client().await, nowhere, "the container runtime at"), (unreachable(), options(&node), "the agent's rights")]
    {
        let agent = Agent::start(client, options, Arc::default()).await.unwrap();
        readiness(&agent, |ready| ready.as_ref().is_err_and(|why| why.contains(missing))).await;
        agent.stop().await;
    }
}

#[tokio::test]
async fn account_without_rights_is_not_ready() {
    let missing = check_rights(&client_without_rights().await).await.unwrap_err();
    assert!(missing.contains("get podnotifications.boathook.dev and 1 more is missing"), "{missing}");
}
