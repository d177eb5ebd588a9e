//! ApplicationSnapshot, decision by decision.

mod acceptance;
mod cutting;
mod door_two;
mod freezing;
mod hooks;
mod other_notifications;
mod sharing;
mod thawing;
mod verdict;

use std::collections::BTreeMap;

use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, Consistency, Phase},
    hook_action::HookPolicy,
    words::THAW_FINALIZER,
};
use boathook_decide::{
    Leadership,
    application_snapshot::{
        AtTheCut, Claim, Decision, Effect, Observed, Present, SeenSnapshot, Surroundings, User, decide,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::execution_hook::{ME, at};

/// More than this, and it comes to no end.
const MOST_LOOKS: usize = 20;

/// One look at a snapshot, and the world around it.
struct Look {
    object: ApplicationSnapshot,
    identity: &'static str,
    leadership: Leadership,
    claims: Vec<Claim>,
    missing_templates: Vec<String>,
    missing_class: Option<String>,
    author_checked: bool,
    before: Option<String>,
    snapshots: Vec<SeenSnapshot>,
    refused: Option<String>,
    hooks: Vec<ExecutionHook>,
    others: Vec<ApplicationSnapshot>,
    /// The PodNotifications of the hooks.
    notifications: Vec<PodNotification>,
    /// Others, of the same pods.
    beside: Vec<PodNotification>,
    /// There are more than were looked at.
    and_more: bool,
    /// Those that are there when the freeze begins.
    present: Present,
    /// The containers that run: UID of the pod, name, ID.
    containers: Vec<(String, String, String)>,
    /// How long the hooks hold at the longest.
    expiration: Option<i32>,
    /// Whether the hooks run in all of the pods.
    policy: HookPolicy,
    /// The pods beside `db-0` that hooks can find.
    more_pods: i64,
    /// Seconds since the snapshot was created.
    now: i64,
}

/// A claim that the pod `db-0` mounts, in its container `main`.
fn claim(name: &str) -> Claim {
    Claim { name: name.to_owned(), labels: BTreeMap::new(), attached: true, pods: vec![user(0)], ended: vec![] }
}

fn user(number: u32) -> User {
    let (name, uid) = (format!("db-{number}"), format!("uid-{number}"));
    let created = Some(at(-100));
    User { name, uid, labels: BTreeMap::new(), created, running: true, containers: vec!["main".to_owned()] }
}

/// One that this object made, or was to.
fn snapshot(name: &str) -> SeenSnapshot {
    let (name, uid) = (name.to_owned(), format!("{name}-uid"));
    SeenSnapshot { name, uid, ours: true, deleted: false, cut: false, error: None, last_error: None, consistency: None }
}

impl Look {
    /// A leader looks at a new snapshot of `data` with two hooks, and these fields, in its first second.
    fn with(fields: Value) -> Self {
        let mut spec = json!({
            "source": {"persistentVolumeClaimName": "data"},
            "executionHookInfos": [{"executionHookTemplateName": "app"}, {"executionHookTemplateName": "fs"}],
        });
        for (name, value) in fields.as_object().expect("fields are an object") {
            spec[name] = value.clone();
        }
        let mut object = ApplicationSnapshot::new("snap", serde_json::from_value(spec).expect("it is a spec"));
        object.metadata.uid = Some("snap-uid".to_owned());
        object.metadata.creation_timestamp = Some(Time(at(0)));
        Self {
            object,
            identity: ME,
            leadership: Leadership::Leader,
            claims: vec![claim("data")],
            missing_templates: vec![],
            missing_class: None,
            author_checked: true,
            before: None,
            snapshots: vec![],
            refused: None,
            hooks: vec![],
            others: vec![],
            notifications: vec![],
            beside: vec![],
            and_more: false,
            present: Present::default(),
            containers: vec![("uid-0".to_owned(), "main".to_owned(), "containerd://main".to_owned())],
            expiration: Some(30),
            policy: HookPolicy::default(),
            more_pods: 0,
            now: 1,
        }
    }

    /// Accepted in the first second, and its first hook made.
    fn at_freezing(fields: Value) -> Self {
        Self::with(fields).done()
    }

    /// Everything is frozen at second 6, and the snapshots are made.
    fn at_cutting(fields: Value) -> Self {
        let look = Self::at_freezing(fields).until(Phase::Cutting, |look| {
            look.now += 1;
            look.freeze_last();
        });
        assert_eq!(look.phase(), Phase::Cutting);
        look
    }

    /// The cut is seen at second 8.
    fn at_cut(fields: Value) -> Self {
        let mut look = Self::at_cutting(fields);
        look.now = 8;
        look.snapshots.iter_mut().for_each(|snapshot| snapshot.cut = true);
        look
    }

    /// The same, and the thaw begins.
    fn at_thawing(fields: Value) -> Self {
        let look = Self::at_cut(fields).done();
        assert_eq!(look.phase(), Phase::Thawing);
        look
    }

    /// The same, thawed and said.
    fn at_end(fields: Value) -> Self {
        Self::at_thawing(fields).until(Phase::Complete, |look| {
            look.now += 1;
            look.thaw_asked();
        })
    }

    /// Thawed hook after hook, until it is over.
    fn thawed(self) -> Self {
        self.until(Phase::Complete, Self::thaw_asked)
    }

    /// The first look at it in this phase or a later one, after this happens before each.
    fn until(mut self, phase: Phase, mut happens: impl FnMut(&mut Self)) -> Self {
        for _ in 0..MOST_LOOKS {
            if self.phase() >= phase {
                return self;
            }
            happens(&mut self);
            self = self.done();
        }
        panic!("it does not come to {phase:?}: {:#?}", self.object);
    }

    fn decide(&self) -> Decision {
        let status = self.status();
        let surroundings = (status.phase == Phase::Pending).then(|| Surroundings {
            claims: self.claims.clone(),
            missing_templates: self.missing_templates.clone(),
            missing_class: self.missing_class.clone(),
            author_checked: self.author_checked,
            before: self.before.clone(),
        });
        // Whether it is the one that is meant, is for the decision to say.
        let cut = |name: &String| self.snapshots.iter().any(|one| one.name == *name && one.cut);
        let all_cut = status.snapshots.iter().all(|record| cut(&record.volume_snapshot_name));
        let is_to_be_judged = status.phase == Phase::Cutting && all_cut && status.consistency.is_none();
        let at_the_cut = is_to_be_judged.then(|| AtTheCut {
            notifications: self.notifications.iter().chain(&self.beside).cloned().collect(),
            and_more: self.and_more,
            containers: self.containers.clone(),
            claims: self.claims.clone(),
        });
        let begins = status.phase == Phase::Freezing && self.hooks.is_empty() && status.shares_freeze_of.is_none();
        let present = begins.then(|| self.present.clone());
        let observed = Observed {
            object: &self.object,
            identity: self.identity,
            leadership: self.leadership,
            surroundings,
            snapshots: self.snapshots.clone(),
            refused: self.refused.clone(),
            hooks: self.hooks.clone(),
            others: self.others.clone(),
            present,
            at_the_cut,
        };
        decide(&observed, at(self.now))
    }

    /// The next look, after everything that is decided here was done; and the first hook is made if it was just accepted.
    fn done(self) -> Self {
        let was_pending = self.phase() == Phase::Pending;
        let look = self.done_once();
        let begins = look.phase() == Phase::Freezing && look.status().shares_freeze_of.is_none();
        if was_pending && begins { look.done_once() } else { look }
    }

    /// The next look, after everything that is decided here was done.
    fn done_once(mut self) -> Self {
        for effect in self.decide().effects {
            match effect {
                Effect::AddFinalizer => self.object.finalizers_mut().push(THAW_FINALIZER.to_owned()),
                Effect::RemoveFinalizer => self.object.finalizers_mut().clear(),
                Effect::WriteStatus(status) => (self.object.status, self.refused) = (Some(*status), None),
                Effect::Follow(first) => self.others = vec![*first],
                Effect::CreateHook(hook) => self.made(*hook),
                Effect::ThawHook(name) => self.hook_mut(&name).spec.thaw_requested = true,
                Effect::DeleteHook { name, .. } => self.hooks.retain(|hook| hook.name_any() != name),
                Effect::CreateSnapshot(made) => self.snapshots.push(snapshot(&made.name_any())),
                Effect::DeleteSnapshot { name, .. } => self.snapshots.retain(|one| one.name != name),
                Effect::SetOwner(owner) => self.object.owner_references_mut().push(*owner),
                Effect::MarkSnapshot { name, consistency, .. } => {
                    let marked = self.snapshots.iter_mut().find(|one| one.name == name).expect("it is there");
                    marked.consistency = Some(consistency.as_str().to_owned());
                }
                Effect::Delete => self.object.metadata.deletion_timestamp = Some(Time(at(self.now))),
            }
        }
        self
    }

    fn status(&self) -> ApplicationSnapshotStatus {
        self.object.status.clone().unwrap_or_default()
    }

    fn phase(&self) -> Phase {
        self.status().phase
    }

    fn deleted(mut self) -> Self {
        self.object.metadata.deletion_timestamp = Some(Time(at(self.now)));
        self
    }

    /// How it ended: the phase, the consistency, and why.
    fn outcome(&self) -> (Phase, Option<Consistency>, String) {
        let status = self.status();
        (status.phase, status.consistency, status.failure.map(|failure| failure.reason).unwrap_or_default())
    }
}

/// What a decision does, in order.
fn deeds(decision: &Decision) -> Vec<String> {
    let deed = |effect: &Effect| match effect {
        Effect::AddFinalizer => "hold".to_owned(),
        Effect::RemoveFinalizer => "let go".to_owned(),
        Effect::WriteStatus(status) => format!("write {:?}", status.phase),
        Effect::Follow(first) => format!("follow {}", first.name_any()),
        Effect::CreateHook(hook) => {
            format!("freeze {}", hook.spec.execution_hook_template_name.clone().unwrap_or_default())
        }
        Effect::ThawHook(_) => "thaw".to_owned(),
        Effect::DeleteHook { .. } => "delete hook".to_owned(),
        Effect::CreateSnapshot(snapshot) => format!("cut {}", snapshot.name_any()),
        Effect::DeleteSnapshot { name, .. } => format!("delete {name}"),
        Effect::SetOwner(owner) => format!("belong to {}", owner.name),
        Effect::MarkSnapshot { name, consistency, .. } => format!("mark {name} {consistency:?}"),
        Effect::Delete => "delete".to_owned(),
    };
    decision.effects.iter().map(deed).collect()
}

/// Whether a condition is true, and why.
fn said(status: &ApplicationSnapshotStatus, kind: &str) -> String {
    let found = status.conditions.iter().find(|one| one.type_ == kind);
    found.map_or_else(|| "nothing".to_owned(), |one| format!("{} {}", one.status, one.reason))
}
