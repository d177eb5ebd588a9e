//! `delete` and `deletecollection`: an object goes at once, or when its finalizers are done and its time is up.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{Call, options};
use crate::admission::Operation;
use crate::answer::{self, Body};
use crate::body;
use crate::object;
use crate::status::{FieldError, GroupResource, Result, Status};
use crate::store::{CommitError, Expect, Key, Stored, Write};

/// As for any write without a version: see `write`.
const TRIES: u32 = 64;

/// What a client may say about a deletion.
struct Options {
    grace: Option<i64>,
    /// What becomes of dependents: a finalizer that the garbage collector acts upon, or none for "later".
    propagation: Propagation,
    uid: String,
    version: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

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
            if !selector.matches(&stored.object) {
                continue;
            }
            match self.remove(key, &options).await {
                // Shown as they were.
                Ok(_) => items.push(stored.object.clone()),
                // Somebody else was faster: it is gone, which is what was asked for.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        let metadata = json!({"resourceVersion": self.api.store.view().revision().to_string()});
        Ok(answer::json(StatusCode::OK, &self.shown_list(&items, metadata)))
    }

    fn delete_options(&mut self) -> Result<Options> {
        // A body stands for all of the query.
        let sent = match self.body.is_empty() {
            true => json!({
                "gracePeriodSeconds": self.query.number::<i64>("gracePeriodSeconds")?,
                "propagationPolicy": self.query.get("propagationPolicy"),
                "dryRun": self.query.all("dryRun"),
            }),
            false => body::object(&self.content_type, &self.body)?,
        };
        let kind = object::kind(&sent);
        if !matches!(kind, "" | "DeleteOptions") {
            let version = object::api_version(&sent);
            return Err(Status::bad_request(format!("no kind {kind:?} is registered for version {version:?}")));
        }
        let mut errors = Vec::new();
        options::dry_run(&sent["dryRun"], &mut errors);
        let (named, orphans) = (object::text(&sent, "/propagationPolicy"), sent["orphanDependents"].as_bool());
        if !named.is_empty() && orphans.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", &json!(named), why));
        }
        let propagation = match named {
            "Orphan" => Propagation::Orphan,
            "" if orphans == Some(true) => Propagation::Orphan,
            "Foreground" => Propagation::Foreground,
            "" | "Background" => Propagation::Background,
            other => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", &json!(other), &known));
                Propagation::Background
            }
        };
        options::refused("DeleteOptions", &errors)?;
        self.dry_run = !object::list(&sent, "/dryRun").is_empty();
        Ok(Options {
            // Less than nothing is one second.
            grace: sent["gracePeriodSeconds"].as_i64().map(|grace| if grace < 0 { 1 } else { grace }),
            propagation,
            uid: object::text(&sent, "/preconditions/uid").to_owned(),
            version: object::text(&sent, "/preconditions/resourceVersion").to_owned(),
        })
    }

    async fn remove(&self, key: &Key, options: &Options) -> Result<Fate> {
        let gone = || Status::not_found(self.resource.group_resource(), &key.name);
        for _ in 0..TRIES {
            let current = self.api.store.view().get(key).ok_or_else(gone)?;
            self.check_preconditions(&current.object, options)?;
            self.admit(Operation::Delete, None, Some(&current.object)).await?;
            let told = self.told_to_go(&current.object, options);
            let goes = super::write::is_finished(&told);
            if told == *current.object && !goes {
                return Ok(Fate::Told(current));
            }
            let shown = Stored { revision: current.revision, object: Arc::new(told) };
            if self.dry_run {
                return Ok(if goes { Fate::Gone(shown) } else { Fate::Told(shown) });
            }
            let put = (!goes).then(|| Value::clone(&shown.object));
            let write = Write { key: key.clone(), expect: Expect::Revision(current.revision), put };
            match self.api.commit(write).await {
                Ok(stored) if goes => {
                    let mut last = Value::clone(&shown.object);
                    let version = object::resource_version(&stored.object).to_owned();
                    object::metadata_mut(&mut last).insert("resourceVersion".to_owned(), version.into());
                    return Ok(Fate::Gone(Stored { revision: stored.revision, object: Arc::new(last) }));
                }
                Ok(stored) => return Ok(Fate::Told(stored)),
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
        let metadata = object::metadata_mut(&mut told);
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
        let (orphan, foreground) = ("orphan", "foregroundDeletion");
        let mut finalizers: Vec<String> = object::finalizers(current).map(str::to_owned).collect();
        if object::is_being_deleted(current) {
            return finalizers;
        }
        finalizers.retain(|finalizer| finalizer != orphan && finalizer != foreground);
        match options.propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(foreground.to_owned()),
            Propagation::Orphan => finalizers.push(orphan.to_owned()),
        }
        finalizers
    }
}
