//! People: they delete, ask for thaws, edit templates; and somebody's tool makes VolumeSnapshots of its own.

use boathook_api::{
    ExecutionHookTemplate,
    application_snapshot::Phase,
    pod_notification::State,
    words::{ABANDON_UNDO, UNDO_NOW, condition},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::ObjectMeta;
use serde_json::json;

use super::{
    Wish, World,
    objects::{Key, Kind, Object, Volume},
};
use crate::world::is_closed;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Person {
    Deletes(Kind, usize),
    /// Of a hook, or of one of its PodNotifications.
    AsksForThaw(Kind, usize),
    Abandons(usize),
    /// An undo that waits goes at once.
    CannotWait(usize),
    EditsTemplates,
    /// The VolumeSnapshot that was admitted is stored: late.
    IsStored,
    /// One of the name that was meant, and not it.
    MakesAnother,
    /// Whether what is admitted is stored at once.
    IsPrompt(bool),
    /// A held session ends, and its executor says so.
    LosesSession(usize),
}

pub(crate) struct Templates {
    hooks: Vec<(Option<i32>, bool)>,
    edits: usize,
    /// Somebody's VolumeSnapshot: whether it was admitted, and is stored at once.
    admitted: bool,
    prompt: bool,
}

impl Templates {
    pub(crate) fn new(hooks: &[(Option<i32>, bool)]) -> Self {
        Self { hooks: hooks.to_vec(), edits: 0, admitted: false, prompt: true }
    }

    /// As it is now.
    pub(crate) fn get(&self, name: &str) -> ExecutionHookTemplate {
        let place: usize = name.trim_start_matches("hook-").parse().expect("templates are numbered");
        let (expiration, post_action) = self.hooks[place];
        let command = |what: &str| json!({"exec": {"command": [what, self.edits.to_string()]}});
        let mut spec = json!({"preAction": command("freeze")});
        if post_action {
            spec["postAction"] = command("thaw");
        }
        if let Some(seconds) = expiration {
            spec["expirationSeconds"] = seconds.into();
        }
        ExecutionHookTemplate::new(name, serde_json::from_value(spec).expect("it is a spec"))
    }
}

impl World {
    pub(crate) fn person(&mut self, person: Person) {
        let now = self.now;
        match person {
            Person::Deletes(kind, which) => {
                let key = self.pick(kind, which);
                key.iter().for_each(|key| self.server.person_deletes(key, now));
            }
            Person::AsksForThaw(kind, which) => {
                let key = self.pick(kind, which);
                key.iter().for_each(|key| self.server.person_changes(key, Object::request_thaw));
            }
            Person::Abandons(which) => self.annotate(which, ABANDON_UNDO, "true"),
            Person::CannotWait(which) => {
                self.impatience += 1;
                self.annotate(which, UNDO_NOW, &now.to_string());
            }
            Person::EditsTemplates => self.templates.edits += 1,
            Person::IsStored if self.templates.admitted => self.make_theirs("theirs-uid"),
            Person::IsStored => {}
            Person::MakesAnother => self.make_theirs("another-uid"),
            Person::IsPrompt(prompt) => self.templates.prompt = prompt,
            Person::LosesSession(which) => self.lose_session(which),
        }
    }

    fn pick(&self, kind: Kind, which: usize) -> Option<Key> {
        let mut keys = self.server.keys(kind);
        (!keys.is_empty()).then(|| keys.remove(which % keys.len()))
    }

    fn annotate(&mut self, which: usize, key: &str, value: &str) {
        if let Some(hook) = self.pick(Kind::Hook, which) {
            self.server.person_changes(&hook, |object| object.annotate(key, value));
        }
    }

    /// Admission lets it through when it is said to be frozen; whether it is stored now.
    pub(crate) fn door(&mut self) -> bool {
        let one = self.server.get(&(Kind::Snapshot, "one".to_owned()));
        let Some(Object::Snapshot(one)) = one.as_deref() else { return false };
        let status = one.status.clone().unwrap_or_default();
        let frozen = status.conditions.iter().any(|said| said.type_ == condition::FROZEN && said.status == "True");
        let waits = self.plan.wish == Wish::DoorTwo && !self.templates.admitted;
        let lets_through =
            waits && frozen && status.phase == Phase::Cutting && one.metadata.deletion_timestamp.is_none();
        if lets_through {
            self.templates.admitted = true;
            if self.templates.prompt {
                self.make_theirs("theirs-uid");
            }
        }
        lets_through
    }

    fn make_theirs(&mut self, uid: &str) {
        if self.plan.wish == Wish::DoorTwo {
            let metadata =
                ObjectMeta { name: Some("theirs".to_owned()), uid: Some(uid.to_owned()), ..ObjectMeta::default() };
            self.server.person_creates(Object::Volume(Volume { metadata, ..Volume::default() }), self.now);
        }
    }

    fn lose_session(&mut self, which: usize) {
        let Some(key) = self.pick(Kind::Notification, which) else { return };
        let now = self.now;
        let mut ends = false;
        self.server.person_changes(&key, |object| {
            let Object::Notification(object) = object else { return };
            let open = object.spec.undo.is_some() && !is_closed(object);
            let Some(status) = object.status.as_mut().filter(|status| open && status.state == State::Succeeded) else {
                return;
            };
            ends = true;
            status.conditions.retain(|one| one.type_ != condition::HELD);
            status.conditions.push(Condition {
                type_: condition::HELD.to_owned(),
                status: "False".to_owned(),
                reason: "SessionLost".to_owned(),
                message: "the session ended".to_owned(),
                observed_generation: None,
                last_transition_time: Time(now),
            });
        });
        if ends {
            self.pods.session_ends(&key.1);
        }
    }
}
