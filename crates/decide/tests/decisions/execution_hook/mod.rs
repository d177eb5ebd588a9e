//! ExecutionHook, decision by decision.

mod acceptance;
pub(crate) mod children;
mod freezing;
mod targets;
mod thawing;

use std::collections::BTreeMap;

use boathook_api::{
    Declarations, ExecutionHook, ExecutionHookTemplate, PodNotification,
    execution_hook::ExecutionHookStatus,
    words::{ABANDON_UNDO, THAW_FINALIZER, UNDO_NOW},
};
use boathook_decide::{
    Leadership,
    execution_hook::{Decision, Effect, Observed, Pod, Surroundings, decide, is_accepted},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

pub(crate) const ME: &str = "me";

/// One look at a hook, and the world around it.
pub(crate) struct Look {
    pub(crate) object: ExecutionHook,
    pub(crate) leadership: Leadership,
    pub(crate) template: Option<ExecutionHookTemplate>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) author_checked: bool,
    pub(crate) children: Vec<PodNotification>,
    pub(crate) refused: Option<String>,
    pub(crate) is_awaited: bool,
    /// Where this process saw the PreAction begin: UID of the pod, and when.
    pub(crate) begun: BTreeMap<String, Timestamp>,
    /// Seconds since the hook was created.
    pub(crate) now: i64,
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000 + seconds)
}

/// A pod `db-0`, `db-1`... with the containers `main` and `side`; `main` declares `quiesce` and `unquiesce`.
pub(crate) fn pod(number: i64) -> Pod {
    let text = "[{name: quiesce, handler: {exec: {command: [q]}}}, {name: unquiesce, handler: {exec: {command: [u]}}}]";
    let annotations = [("notifiers.boathook.dev/main".to_owned(), text.to_owned())].into();
    let containers: Vec<_> = ["main", "side"].map(str::to_owned).into();
    let declared = Declarations::parse(&annotations, &containers).map_err(|mistake| mistake.to_string());
    Pod {
        name: format!("db-{number}"),
        uid: format!("uid-{number}"),
        created: at(-100 + number),
        running: true,
        ready: true,
        containers,
        declared,
    }
}

pub(crate) fn template(spec: Value) -> ExecutionHookTemplate {
    ExecutionHookTemplate::new("mysql", serde_json::from_value(spec).expect("it is a spec"))
}

impl Look {
    /// A leader looks at a new hook with this spec, in its first second; there are three pods.
    fn at_new(spec: Value) -> Self {
        let mut object = ExecutionHook::new("hook", serde_json::from_value(spec).expect("it is a spec"));
        object.metadata.uid = Some("hook-uid".to_owned());
        object.metadata.creation_timestamp = Some(Time(at(0)));
        Self {
            object,
            leadership: Leadership::Leader,
            template: None,
            pods: vec![pod(0), pod(1), pod(2)],
            author_checked: true,
            children: vec![],
            refused: None,
            is_awaited: false,
            begun: BTreeMap::new(),
            now: 1,
        }
    }

    /// One that freezes `main` of two pods, for 30 s at the longest, with these fields instead.
    fn with(fields: Value) -> Self {
        let mut spec = json!({
            "preAction": {"exec": {"command": ["freeze"]}},
            "postAction": {"exec": {"command": ["thaw"]}},
            "expirationSeconds": 30,
            "podSelector": {},
            "containerSelector": {"containerName": "main"},
        });
        for (name, value) in fields.as_object().expect("fields are an object") {
            spec[name] = value.clone();
        }
        let mut look = Self::at_new(spec);
        look.pods.truncate(2);
        look
    }

    /// That one, accepted in the first second, with its children made.
    fn at_freezing() -> Self {
        Self::with(json!({})).done()
    }

    /// That one, with both PreActions done at seconds 3 and 4, and that is written.
    fn at_frozen() -> Self {
        let mut look = Self::at_freezing();
        look.succeed(0, [2, 3]);
        look.succeed(1, [2, 4]);
        look.now = 4;
        look.done()
    }

    /// That one, asked to thaw at second 10, and its children with it.
    fn at_thawing() -> Self {
        let mut look = Self::at_frozen().requested();
        look.now = 10;
        look.done()
    }

    fn decide(&self) -> Decision {
        let surroundings = (!is_accepted(&self.object)).then(|| Surroundings {
            template: self.template.clone(),
            pods: self.pods.clone(),
            author_checked: self.author_checked,
        });
        let (children, refused) = (self.children.clone(), self.refused.clone());
        let (object, leadership) = (&self.object, self.leadership);
        let (is_awaited, begun) = (self.is_awaited, self.begun.clone());
        let observed =
            Observed { object, identity: ME, leadership, surroundings, children, refused, is_awaited, begun };
        decide(&observed, at(self.now))
    }

    /// The next look, after everything that is decided here was done.
    pub(crate) fn done(mut self) -> Self {
        for effect in self.decide().effects {
            match effect {
                Effect::AddFinalizer => self.object.finalizers_mut().push(THAW_FINALIZER.to_owned()),
                Effect::RemoveFinalizer => self.object.finalizers_mut().clear(),
                Effect::WriteStatus(status) => self.object.status = Some(*status),
                Effect::CreateChild(child) => self.children.push(*child),
                Effect::TakeBack(asked) => {
                    let child = self.children.iter_mut().find(|child| child.name_any() == asked.child);
                    child.expect("it is there").spec.undo_requested = true;
                }
            }
        }
        self
    }

    fn status(&self) -> ExecutionHookStatus {
        self.object.status.clone().unwrap_or_default()
    }

    fn requested(mut self) -> Self {
        self.object.spec.thaw_requested = true;
        self
    }

    fn deleted(mut self) -> Self {
        self.object.metadata.deletion_timestamp = Some(Time(at(self.now)));
        self
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        assert!([ABANDON_UNDO, UNDO_NOW].contains(&key));
        self.object.annotations_mut().insert(key.to_owned(), value.to_owned());
        self
    }
}

/// What a decision does, in order.
fn deeds(decision: &Decision) -> Vec<String> {
    let deed = |effect: &Effect| match effect {
        Effect::AddFinalizer => "hold".to_owned(),
        Effect::RemoveFinalizer => "let go".to_owned(),
        Effect::WriteStatus(_) => "write".to_owned(),
        Effect::CreateChild(child) => format!("freeze {}", child.spec.pod_name),
        Effect::TakeBack(asked) if asked.abandon => "give up".to_owned(),
        Effect::TakeBack(asked) if asked.undo_now.is_some() => "thaw now".to_owned(),
        Effect::TakeBack(_) => "thaw".to_owned(),
    };
    decision.effects.iter().map(deed).collect()
}

fn written(decision: &Decision) -> ExecutionHookStatus {
    let status = decision.effects.iter().find_map(|effect| match effect {
        Effect::WriteStatus(status) => Some((**status).clone()),
        Effect::AddFinalizer | Effect::RemoveFinalizer | Effect::CreateChild(_) | Effect::TakeBack(_) => None,
    });
    status.unwrap_or_else(|| panic!("no status is written: {decision:#?}"))
}

/// Whether a condition is true, and why.
fn said(status: &ExecutionHookStatus, kind: &str) -> String {
    let found = status.conditions.iter().find(|one| one.type_ == kind);
    found.map_or_else(|| "nothing".to_owned(), |one| format!("{} {}", one.status, one.reason))
}

fn message(status: &ExecutionHookStatus, kind: &str) -> String {
    let found = status.conditions.iter().find(|one| one.type_ == kind);
    found.map(|one| one.message.clone()).unwrap_or_default()
}
