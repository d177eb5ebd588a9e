use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, PodReadinessGate,
};

use super::*;

fn waiting(name: &str) -> ContainerStatus {
    let state = ContainerState { waiting: Some(ContainerStateWaiting::default()), ..Default::default() };
    ContainerStatus { name: name.to_owned(), state: Some(state), ..Default::default() }
}

fn running(name: &str) -> ContainerStatus {
    let state = ContainerState { running: Some(ContainerStateRunning::default()), ..Default::default() };
    let (ready, started) = (true, Some(true));
    ContainerStatus { name: name.to_owned(), state: Some(state), ready, started, ..Default::default() }
}

fn ended(name: &str, exit_code: i32) -> ContainerStatus {
    let terminated = Some(ContainerStateTerminated { exit_code, ..Default::default() });
    let state = ContainerState { terminated, ..Default::default() };
    ContainerStatus { name: name.to_owned(), state: Some(state), ..Default::default() }
}

fn backing_off(name: &str) -> ContainerStatus {
    ContainerStatus { last_state: ended(name, 1).state, ..waiting(name) }
}

fn spec(policy: &str, init: &[(&str, bool)]) -> PodSpec {
    let init = init.iter().map(|(name, sidecar)| Container {
        name: (*name).to_owned(),
        restart_policy: sidecar.then(|| "Always".to_owned()),
        ..Default::default()
    });
    let (restart_policy, init_containers) = (Some(policy.to_owned()), Some(init.collect()));
    PodSpec { restart_policy, init_containers, ..Default::default() }
}

fn phase(policy: &str, containers: &[ContainerStatus]) -> &'static str {
    Statuses { spec: &spec(policy, &[]), init: &[], containers }.phase(false)
}

#[test]
fn a_phase_follows_containers_and_restart_policy() {
    assert_eq!(phase("Always", &[waiting("a"), running("b")]), "Pending");
    assert_eq!(phase("Always", &[backing_off("a"), running("b")]), "Running");
    assert_eq!(phase("Always", &[ended("a", 0)]), "Running");
    assert_eq!(phase("OnFailure", &[ended("a", 1), ended("b", 0)]), "Running");
    assert_eq!(phase("OnFailure", &[ended("a", 0)]), "Succeeded");
    assert_eq!(phase("Never", &[ended("a", 0), running("b")]), "Running");
    assert_eq!(phase("Never", &[ended("a", 0), ended("b", 4)]), "Failed");
    let deleted = [ended("a", 0), ended("b", 0)];
    assert_eq!(Statuses { spec: &spec("Always", &[]), init: &[], containers: &deleted }.phase(true), "Succeeded");
}

#[test]
fn init_containers_hold_a_pod_pending_or_fail_it() {
    let (containers, init) = ([waiting("a")], [ended("i", 9)]);
    assert_eq!(
        Statuses { spec: &spec("Never", &[("i", false)]), init: &init, containers: &containers }.phase(false),
        "Failed"
    );
    assert_eq!(
        Statuses { spec: &spec("Always", &[("i", false)]), init: &init, containers: &containers }.phase(false),
        "Pending"
    );
}

type Said = (&'static str, &'static str, &'static str, &'static str);

fn said(conditions: &[PodCondition]) -> Vec<Said> {
    let text = |text: &str| -> &'static str { text.to_owned().leak() };
    let optional = |optional: &Option<String>| text(optional.as_deref().unwrap_or_default());
    conditions.iter().map(|c| (text(&c.type_), text(&c.status), optional(&c.reason), optional(&c.message))).collect()
}

#[test]
fn conditions_name_the_containers_that_are_waited_for() {
    let spec = spec("Always", &[("i", false), ("s", true)]);
    let (init, containers) = ([running("i"), waiting("s")], [waiting("a")]);
    let statuses = Statuses { spec: &spec, init: &init, containers: &containers };
    let unready = "containers with unready status: [s a]";
    assert_eq!(
        said(&statuses.conditions(statuses.phase(false), true, &[])),
        [
            ("PodReadyToStartContainers", "True", "", ""),
            ("Initialized", "False", "ContainersNotInitialized", "containers with incomplete status: [i s]"),
            ("Ready", "False", "ContainersNotReady", unready),
            ("ContainersReady", "False", "ContainersNotReady", unready),
            ("PodScheduled", "True", "", ""),
        ]
    );
}

#[test]
fn an_ended_pod_says_so_in_its_conditions() {
    let spec = spec("Never", &[]);
    let of = |containers: &[ContainerStatus]| {
        let statuses = Statuses { spec: &spec, init: &[], containers };
        said(&statuses.conditions(statuses.phase(false), false, &[]))[1..4].to_vec()
    };
    let completed = of(&[ended("a", 0)]);
    assert_eq!(completed[0], ("Initialized", "True", "PodCompleted", ""));
    assert_eq!(completed[1], ("Ready", "False", "PodCompleted", ""));
    let failed = of(&[ended("a", 1)]);
    assert_eq!(failed[0], ("Initialized", "True", "", ""));
    assert_eq!(failed[2], ("ContainersReady", "False", "PodFailed", ""));
}

#[test]
fn a_readiness_gate_holds_back_ready_only() {
    let mut spec = spec("Always", &[]);
    spec.readiness_gates = Some(vec![PodReadinessGate { condition_type: "gate".to_owned() }]);
    let containers = [running("a")];
    let statuses = Statuses { spec: &spec, init: &[], containers: &containers };
    let conditions = statuses.conditions("Running", true, &[]);
    let missing = "corresponding condition of pod readiness gate \"gate\" does not exist.";
    assert_eq!(said(&conditions)[2], ("Ready", "False", "ReadinessGatesNotReady", missing));
    assert_eq!(said(&conditions)[3].1, "True");
    let gate = PodCondition { type_: "gate".to_owned(), status: "True".to_owned(), ..Default::default() };
    assert_eq!(said(&statuses.conditions("Running", true, &[gate]))[2].1, "True");
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let condition = |type_: &str, status: &str| PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        ..PodCondition::default()
    };
    let first = timed(&[condition("other", "True")], vec![condition("Ready", "False")], Some(1), at(5));
    let same = timed(&first, vec![condition("Ready", "False")], Some(1), at(9));
    assert_eq!(same[0].last_transition_time, Some(Time(at(5))));
    let changed = timed(&same, vec![condition("Ready", "True")], Some(1), at(9));
    assert_eq!(changed[0].last_transition_time, Some(Time(at(9))));
    assert_eq!(changed.len(), 1, "another's condition is not ours to write");
}
