//! PodNotifications in scenarios: written as their spec, waited for by what their status says.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, PodNotificationStatus, State},
    words::{condition, reason},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::conditions;
use crate::{Ctx, DEADLINE, watch::Watchable};

/// A PodNotification of this spec.
pub fn pod_notification(name: &str, spec: Value) -> Result<PodNotification> {
    let object = json!({
        "apiVersion": "boathook.dev/v1alpha1",
        "kind": "PodNotification",
        "metadata": {"name": name},
        "spec": spec,
    });
    serde_json::from_value(object).with_context(|| format!("PodNotification `{name}` has no such spec"))
}

/// Its status, empty if nobody has written one.
pub fn status(object: &PodNotification) -> PodNotificationStatus {
    object.status.clone().unwrap_or_default()
}

pub fn state(object: &PodNotification) -> State {
    status(object).state
}

/// An error that shows it, if it did not succeed.
pub fn succeeded(object: &PodNotification) -> Result<()> {
    let status = status(object);
    ensure!(status.state == State::Succeeded, "it is {:?}: {}", status.state, shown(&status));
    Ok(())
}

/// Why it failed; an error if it has not.
pub fn error_of(object: &PodNotification) -> Result<(ErrorType, String)> {
    let status = status(object);
    ensure!(status.state == State::Failed, "it is {:?}: {}", status.state, shown(&status));
    let error = status.error.as_ref().with_context(|| format!("it failed without an error: {}", shown(&status)))?;
    Ok((error.kind, error.message.clone()))
}

/// The condition of this type, as status and reason.
pub fn condition_of(object: &PodNotification, kind: &str) -> Option<(String, String)> {
    conditions::said(&status(object).conditions, kind)
}

/// The reason of its condition `Undone`.
pub fn undone(object: &PodNotification) -> Option<String> {
    condition_of(object, condition::UNDONE).map(|(_, reason)| reason)
}

fn shown(status: &PodNotificationStatus) -> String {
    serde_json::to_string(status).unwrap_or_else(|error| error.to_string())
}

impl Ctx {
    /// Tells the pod to run this notifier, and waits until that has ended.
    pub async fn tell(&self, pod: &str, notifier: &str) -> Result<PodNotification> {
        self.notify(notifier, json!({"podName": pod, "notifier": notifier})).await
    }

    /// Creates a PodNotification of this spec, named by this stem, and waits until its handlers have ended.
    pub async fn notify(&self, stem: &str, spec: Value) -> Result<PodNotification> {
        let name = self.begin(stem, spec).await?;
        self.ended(&name).await
    }

    /// Creates a PodNotification of this spec, and returns its name.
    pub async fn begin(&self, stem: &str, spec: Value) -> Result<String> {
        let mut object = pod_notification("", spec)?;
        object.metadata.name = None;
        object.metadata.generate_name = Some(format!("{}-", stem.to_lowercase()));
        self.create(&object).await?.metadata.name.context("the API server gave no name")
    }

    /// Waits until its handlers have ended, well or not.
    pub async fn ended(&self, name: &str) -> Result<PodNotification> {
        let ended = |object: &PodNotification| state(object).is_terminal();
        self.watch_until(DEADLINE, name, "has ended", ended).await
    }

    /// Asks for its undo, or revokes it.
    pub async fn request_undo(&self, name: &str) -> Result<()> {
        let asked = self.patch_spec(name, &json!({"undoRequested": true})).await;
        asked.with_context(|| format!("failed to ask for the undo of `{name}`"))
    }

    /// Merges these fields into its spec.
    pub async fn patch_spec(&self, name: &str, fields: &Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": fields}));
        self.api::<PodNotification>().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes an object, and waits until it is gone.
    pub async fn delete_and_see_gone<K>(&self, name: &str) -> Result<()>
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("failed to delete {} `{name}`", K::kind(&())))?;
        self.gone::<K>(name).await
    }

    /// Waits until the object of this name is gone.
    pub async fn gone<K>(&self, name: &str) -> Result<()>
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        let what = format!("{} `{name}` is gone", K::kind(&()));
        let mut watch = self.watch::<K>("").await?;
        watch.until(DEADLINE, &what, |seen| !seen.now.contains_key(name)).await.map(drop)
    }

    /// Waits until its condition `Undone` has this reason and, if nothing is owed by that, nothing holds it any more; but
    /// what may have outlived its undo is held until it is undone once more.
    pub async fn undone(&self, name: &str, reason: &str) -> Result<PodNotification> {
        let owed = reason == reason::UNDO_FAILED;
        let what = format!("has the condition Undone with reason {reason}, and is held only if it should be");
        let holds = |object: &PodNotification| {
            undone(object).as_deref() == Some(reason)
                && (object.finalizers().is_empty() != owed || may_be_undone_once_more(object))
        };
        self.watch_until(DEADLINE, name, &what, holds).await
    }
}

/// Whether a process of its handler may have gone on when it was undone.
pub fn may_be_undone_once_more(object: &PodNotification) -> bool {
    status(object).containers.iter().any(|record| record.process_may_remain == Some(true))
}
