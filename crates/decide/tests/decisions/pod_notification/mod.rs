//! PodNotification, decision by decision.

mod acceptance;
mod execution;
mod held;
mod overdue;
mod undoing;

use std::collections::BTreeMap;

use boathook_api::{
    ApplicationSnapshot, Declarations, PodNotification,
    outcome::{Ended, Failure, Outcome},
    pod_notification::{ErrorType, Executor, PodNotificationStatus},
    words::{ABANDON_UNDO, UNDO_FINALIZER, condition},
};
use boathook_decide::{
    Leadership,
    pod_notification::{Decision, Effect, Me, Observed, Pod, Progress, Role, SeenPod, Sessions, decide},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

const ME: &str = "me";

const THAW_ONLY: Role = Role::Controller { leadership: Leadership::ThawOnly, executor: Executor::Api, enabled: true };

/// One look: the object and everything that is seen with it.
struct Look {
    object: PodNotification,
    role: Role,
    pod: SeenPod,
    run: Progress,
    undo: Progress,
    sessions: Sessions,
    room: bool,
    author_checked: bool,
    undecided: Vec<ApplicationSnapshot>,
    /// Recorded seconds, and where this process reckons them.
    moved: BTreeMap<i64, i64>,
    /// Since which second this process has seen the agent's undo due.
    agent_due_since: Option<i64>,
    /// Seconds since the object was created.
    now: i64,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000 + seconds)
}

fn controller(executor: Executor) -> Role {
    Role::Controller { leadership: Leadership::Leader, executor, enabled: true }
}

/// Front and back declare `freeze` and `thaw`, quiet declares nothing.
fn pod() -> Pod {
    let text =
        "[{name: freeze, handler: {exec: {command: [freeze]}}}, {name: thaw, handler: {exec: {command: [thaw]}}}]";
    declaring(&[("front", text), ("back", text)])
}

fn declaring(declarations: &[(&str, &str)]) -> Pod {
    let containers: Vec<_> = ["front", "back", "quiet"].map(str::to_owned).into();
    let key = |container: &str| format!("notifiers.boathook.dev/{container}");
    let annotations = declarations.iter().map(|(container, text)| (key(container), (*text).to_owned())).collect();
    let declared = Declarations::parse(&annotations, &containers).map_err(Failure::from);
    Pod { uid: "pod-uid".to_owned(), node: Some("node".to_owned()), over: false, ending: false, containers, declared }
}

impl Look {
    /// A leader that executes through the API server looks at a new object with this spec, in its first second.
    fn at_new(spec: serde_json::Value) -> Self {
        let mut object = PodNotification::new("n", serde_json::from_value(spec).expect("it is a spec"));
        object.metadata.creation_timestamp = Some(Time(at(0)));
        let (role, pod) = (controller(Executor::Api), SeenPod::There(pod()));
        Self {
            object,
            role,
            pod,
            run: Progress::Idle,
            undo: Progress::Idle,
            sessions: Sessions::default(),
            room: true,
            author_checked: true,
            undecided: vec![],
            moved: BTreeMap::new(),
            agent_due_since: None,
            now: 1,
        }
    }

    /// Freezes, and thaws by itself after 30 s.
    fn at_freeze() -> Self {
        let undo = json!({"notifier": "thaw", "afterSeconds": 30});
        Self::at_new(json!({"podName": "db", "notifier": "freeze", "undo": undo}))
    }

    /// The same, accepted while there was no room.
    fn at_accepted(executor: Executor) -> Self {
        let mut look = Self::at_freeze();
        (look.role, look.room) = (controller(executor), false);
        let mut look = look.written();
        look.room = true;
        look
    }

    /// The same, claimed by this process in the first second, and held.
    fn at_claimed(executor: Executor) -> Self {
        let mut look = Self::at_accepted(executor);
        if executor == Executor::Agent {
            look.role = Role::Agent;
        }
        let mut look = look.written();
        look.object.finalizers_mut().push(UNDO_FINALIZER.to_owned());
        assert_eq!(look.status().claim.expect("it is claimed").holder, ME);
        look
    }

    /// The same, with handlers that have ended like this.
    fn at_ended(executor: Executor, ends: [Outcome; 2]) -> Self {
        let mut look = Self::at_claimed(executor);
        (look.now, look.run) = (3, ended([1, 2], ends));
        look
    }

    /// The same, which succeeded, and that is written down.
    fn at_held(executor: Executor) -> Self {
        let mut look = Self::at_ended(executor, [Outcome::Succeeded, Outcome::Succeeded]).written();
        look.run = Progress::Idle;
        look
    }

    fn decide(&self) -> Decision {
        let me = Me { identity: ME, role: self.role };
        let (pod, run, undo) = (self.pod.clone(), self.run.clone(), self.undo.clone());
        let observed = Observed {
            object: &self.object,
            me,
            pod,
            run,
            undo,
            sessions: self.sessions.clone(),
            expires: None,
            moved: self.moved.iter().map(|(recorded, here)| (at(*recorded), at(*here))).collect(),
            agent_due_since: self.agent_due_since.map(at),
            room: self.room,
            author_checked: self.author_checked,
            undecided: self.undecided.clone(),
        };
        decide(&observed, at(self.now))
    }

    /// The next look, after the write of the status that is decided here.
    fn written(mut self) -> Self {
        let status = status(&self.decide()).expect("a status is written");
        self.object.status = Some(status);
        self
    }

    fn status(&self) -> PodNotificationStatus {
        self.object.status.clone().unwrap_or_default()
    }

    fn requested(mut self) -> Self {
        self.object.spec.undo_requested = true;
        self
    }

    fn deleted(mut self) -> Self {
        self.object.metadata.deletion_timestamp = Some(Time(at(self.now)));
        self
    }

    fn abandoned(mut self) -> Self {
        self.object.annotations_mut().insert(ABANDON_UNDO.to_owned(), "true".to_owned());
        self
    }

    fn claimed_by(mut self, holder: &str) -> Self {
        let claim = self.object.status.as_mut().and_then(|status| status.claim.as_mut());
        claim.expect("it is claimed").holder = holder.to_owned();
        self
    }
}

/// A first round in both containers, from one second to another.
fn ended([from, to]: [i64; 2], ends: [Outcome; 2]) -> Progress {
    let results = ["back", "front"].into_iter().zip(ends).map(|(container, outcome)| {
        let ended = Ended {
            outcome,
            exit_code: Some(0),
            output: "said".to_owned(),
            container_id: Some("containerd://1".to_owned()),
            attempts: 1,
            started: at(from),
            completed: at(to),
            process_may_remain: false,
        };
        (container.to_owned(), ended)
    });
    Progress::Ended { results: results.collect(), round: 1 }
}

fn failed(kind: ErrorType) -> Outcome {
    Outcome::Failed(Failure::new(kind, "it went wrong"))
}

fn status(decision: &Decision) -> Option<PodNotificationStatus> {
    decision.effects.iter().find_map(|effect| match effect {
        Effect::WriteStatus(status) => Some((**status).clone()),
        Effect::RecordOn(_)
        | Effect::AddFinalizer
        | Effect::RemoveFinalizer
        | Effect::RequestUndo
        | Effect::Start(_)
        | Effect::Cancel
        | Effect::BeginNoMore
        | Effect::StartUndo(_)
        | Effect::ForgetRun
        | Effect::ForgetUndo
        | Effect::Delete => None,
    })
}

/// What a decision does, in order, and where.
fn deeds(decision: &Decision) -> Vec<String> {
    let deed = |effect: &Effect| match effect {
        Effect::RecordOn(snapshot) => format!("record on {}", snapshot.name_any()),
        Effect::AddFinalizer => "hold".to_owned(),
        Effect::RemoveFinalizer => "let go".to_owned(),
        Effect::RequestUndo => "ask for undo".to_owned(),
        Effect::WriteStatus(_) => "write".to_owned(),
        Effect::Start(work) => work.iter().fold("start".to_owned(), |deed, (container, _)| deed + " " + container),
        Effect::Cancel => "cancel".to_owned(),
        Effect::BeginNoMore => "begin no more".to_owned(),
        Effect::StartUndo(work) => work.iter().fold("undo".to_owned(), |deed, (container, _)| deed + " " + container),
        Effect::ForgetRun => "forget run".to_owned(),
        Effect::ForgetUndo => "forget undo".to_owned(),
        Effect::Delete => "delete".to_owned(),
    };
    decision.effects.iter().map(deed).collect()
}

/// The reason of a condition, and whether it is true.
fn reason(status: &PodNotificationStatus, kind: &str) -> (String, String) {
    let found = status.conditions.iter().find(|one| one.type_ == kind);
    let found = found.unwrap_or_else(|| panic!("there is no condition {kind}: {:?}", status.conditions));
    (found.reason.clone(), found.status.clone())
}

/// Why the undo is as it is.
fn undone(status: &PodNotificationStatus) -> String {
    reason(status, condition::UNDONE).0
}

/// It ends Failed with this error, and nothing is run.
#[track_caller]
fn assert_refused(look: &Look, kind: ErrorType) -> PodNotificationStatus {
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write"]);
    let status = status(&decision).expect("a status is written");
    assert_eq!(status.error.as_ref().map(|error| error.kind), Some(kind));
    assert_eq!(reason(&status, condition::COMPLETE), ("Failed".to_owned(), "True".to_owned()));
    assert!(status.claim.is_none() && status.complete_time.is_some());
    status
}
