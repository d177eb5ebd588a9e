//! `delete` and `deletecollection`: an object goes at once, or when its finalizers are done and its time is up.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::Call;
use crate::admission::Operation;
use crate::answer::{self, Body};
use crate::definitions::{CLEANUP, DEFINITIONS};
use crate::object;
use crate::status::{GroupResource, Result, Status};
use crate::store::{CommitError, Expect, Key, Stored, Write};

/// As for any write without a version: see `write`.
const TRIES: u32 = 64;

/// What a client may say about a deletion.
struct Options {
    grace: Option<i64>,
    /// What becomes of dependents: a finalizer that the garbage collector acts upon, or none for "later".
    propagation: Option<&'static str>,
    uid: String,
    version: String,
    /// As webhooks are told.
    sent: Value,
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a deletion comes to.
enum Fate {
    Gone(Stored),
    Told(Stored),
}

impl Call {
    pub(super) async fn delete(&mut self) -> Result<Response<Body>> {
        let options = self.delete_options()?;
        match self.remove(&self.key(&self.target.name), &options).await? {
            Fate::Told(stored) => Ok(self.shown(StatusCode::OK, &stored.object)),
            Fate::Gone(stored) => {
                let uid = object::uid(&stored.object);
                let mut details = json!({"name": self.target.name, "kind": self.resource.plural, "uid": uid});
                if !self.resource.group.is_empty() {
                    details["group"] = self.resource.group.clone().into();
                }
                let body = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                });
                // Pods and the like are shown as they were; what has no grace is a plain success.
                match self.resource.behaviour.graceful {
                    true => Ok(self.shown(StatusCode::OK, &stored.object)),
                    false => Ok(answer::json(StatusCode::OK, &body)),
                }
            }
        }
    }

    pub(super) async fn delete_collection(&mut self) -> Result<Response<Body>> {
        let options = self.delete_options()?;
        let selector = self.selector()?;
        let view = self.api.store.view();
        let mut items = Vec::new();
        for (key, stored) in view.list(&self.prefix(), None, None) {
            let shown = self.resource.shown_shared(&stored.object);
            if !selector.matches(&shown) {
                continue;
            }
            match self.remove(key, &options).await {
                // Shown as they were.
                Ok(_) => items.push(shown),
                // Somebody else was faster: it is gone, which is what was asked for.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        let metadata = json!({"resourceVersion": self.api.store.view().revision().to_string()});
        Ok(answer::json(StatusCode::OK, &self.shown_list(&items, metadata)))
    }

    fn delete_options(&mut self) -> Result<Options> {
        let sent = self.read_delete_options()?;
        self.dry_run = sent.dry_run.as_ref().is_some_and(|dry_run| !dry_run.is_empty());
        let propagation = match sent.propagation_policy.as_deref() {
            Some("Orphan") => Some(ORPHAN),
            None if sent.orphan_dependents == Some(true) => Some(ORPHAN),
            Some("Foreground") => Some(FOREGROUND),
            Some(_) | None => None,
        };
        let mut told = json!(sent);
        let standard = self.options("DeleteOptions");
        object::map_mut(&mut told).remove("dryRun");
        object::map_mut(&mut told)
            .extend(object::fields(&standard, "").map(|(key, value)| (key.clone(), value.clone())));
        let conditions = sent.preconditions.unwrap_or_default();
        Ok(Options {
            sent: told,
            // Less than nothing is as good as nothing, as far as Kubernetes goes: a second.
            grace: sent.grace_period_seconds.map(|grace| if grace < 0 { 1 } else { grace }),
            propagation,
            uid: conditions.uid.unwrap_or_default(),
            version: conditions.resource_version.unwrap_or_default(),
        })
    }

    async fn remove(&self, key: &Key, options: &Options) -> Result<Fate> {
        let gone = || Status::not_found(self.resource.group_resource(), &key.name);
        for _ in 0..TRIES {
            let current = self.current(key).ok_or_else(gone)?;
            self.check_preconditions(&current.object, options)?;
            self.ask(Operation::Delete, None, Some(&current.object), &options.sent).await?;
            let told = self.told_to_go(&current.object, options);
            let goes = super::write::is_finished(&told);
            if told == *current.object && !goes {
                return Ok(Fate::Told(current));
            }
            let shown = Stored { revision: current.revision, object: Arc::new(told) };
            if self.dry_run {
                return Ok(if goes { Fate::Gone(shown) } else { Fate::Told(shown) });
            }
            let put = (!goes).then(|| self.resource.to_store(Value::clone(&shown.object)));
            let write = Write { key: key.clone(), expect: Expect::Revision(current.revision), put };
            match self.api.commit(write).await {
                Ok(stored) if goes => {
                    let mut last = Value::clone(&shown.object);
                    let version = object::resource_version(&stored.object).to_owned();
                    object::metadata_mut(&mut last).insert("resourceVersion".to_owned(), version.into());
                    return Ok(Fate::Gone(Stored { revision: stored.revision, object: Arc::new(last) }));
                }
                Ok(stored) => return Ok(Fate::Told(self.presented(&stored))),
                Err(CommitError::Changed { current: None }) => return Err(gone()),
                Err(CommitError::Changed { .. }) => {}
                Err(error) => return Err(Status::internal(error)),
            }
        }
        Err(Status::modified_meanwhile(self.resource.group_resource(), &key.name))
    }

    fn check_preconditions(&self, current: &Value, options: &Options) -> Result<()> {
        let checks = [
            ("UID", &options.uid, object::uid(current), "deleted and then recreated"),
            ("ResourceVersion", &options.version, object::resource_version(current), "modified"),
        ];
        for (what, wanted, found, happened) in checks {
            if !wanted.is_empty() && wanted != found {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
                     The object might have been {happened}"
                );
                // Named by its kind here, and only here.
                let of = GroupResource { group: &self.resource.group, resource: &self.resource.kind };
                return Err(Status::conflict(of, object::name(current), &why));
            }
        }
        Ok(())
    }

    /// The object with the marks of its deletion.
    fn told_to_go(&self, current: &Value, options: &Options) -> Value {
        let mut told = current.clone();
        let grace = self.grace(current, options);
        let metadata = object::metadata_mut(&mut told);
        if !object::is_being_deleted(current) {
            metadata.insert("deletionTimestamp".to_owned(), self.api.time_after(grace).into());
            if !self.is_of("namespaces") {
                metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
            }
            if self.resource.behaviour.generation {
                let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
                metadata.insert("generation".to_owned(), (generation + 1).into());
            }
        } else if metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) > grace {
            // Told again with less time: only ever sooner.
            metadata.insert("deletionTimestamp".to_owned(), self.api.time_after(grace).into());
            metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        }
        let finalizers = self.finalizers_after(current, options);
        match finalizers.is_empty() {
            true => drop(metadata.remove("finalizers")),
            false => drop(metadata.insert("finalizers".to_owned(), finalizers.into())),
        }
        if self.is_of("namespaces") {
            told["status"]["phase"] = "Terminating".into();
        }
        told
    }

    /// Only what has a keeper that ends it gets time; a pod that no node runs, or that has ended, needs none.
    fn grace(&self, current: &Value, options: &Options) -> i64 {
        let ended = matches!(object::text(current, "/status/phase"), "Succeeded" | "Failed");
        let unplaced = object::text(current, "/spec/nodeName").is_empty();
        if !self.resource.behaviour.graceful || ended || unplaced {
            return 0;
        }
        let own = current.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
        options.grace.unwrap_or(own)
    }

    fn finalizers_after(&self, current: &Value, options: &Options) -> Vec<String> {
        let mut finalizers: Vec<String> = object::finalizers(current).map(str::to_owned).collect();
        if object::is_being_deleted(current) {
            return finalizers;
        }
        finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
        if self.resource.stored_as() == DEFINITIONS && !finalizers.iter().any(|held| held == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        finalizers.extend(options.propagation.map(str::to_owned));
        finalizers
    }
}
