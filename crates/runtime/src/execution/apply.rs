//! One effect of a decision about a PodNotification, carried out.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use boathook_api::{ApplicationSnapshot, PodNotification, words::UNDO_FINALIZER};
use boathook_decide::pod_notification::Effect;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::reflector::ObjectRef,
};
use serde_json::json;
use snafu::{ResultExt, Snafu};

use super::{Room, Runs, Subject};
use crate::{
    error_class::{Classified, ErrorClass},
    in_time::in_time,
};

#[derive(Debug, Snafu)]
pub enum ApplyError {
    #[snafu(display("failed to {what} PodNotification `{name}`"))]
    Call { what: &'static str, name: String, source: kube::Error },
    #[snafu(display("failed to record PodNotification `{name}` on ApplicationSnapshot `{snapshot}`"))]
    Record { name: String, snapshot: String, source: kube::Error },
}

impl Classified for ApplyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Call { source, .. } | Self::Record { source, .. } => source.class(),
        }
    }
}

/// The objects as this process last wrote them: a watch tells of them a moment later.
#[derive(Default)]
pub struct Latest(Mutex<HashMap<String, PodNotification>>);

impl Latest {
    /// The newer one of what was seen and what was written here.
    pub fn of(&self, seen: &PodNotification) -> PodNotification {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = seen.uid().unwrap_or_default();
        match latest.get(&uid) {
            Some(written) if version(written) > version(seen) => written.clone(),
            Some(_) => {
                latest.remove(&uid);
                seen.clone()
            }
            None => seen.clone(),
        }
    }

    fn wrote(&self, object: &PodNotification) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.insert(object.uid().unwrap_or_default(), object.clone());
    }

    fn forget_uid(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// The object of this name is gone.
    pub fn forget(&self, object: &ObjectRef<PodNotification>) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.retain(|_, written| ObjectRef::from_obj(written) != *object);
    }
}

/// Versions are numbers that grow; one that is none is older than all.
fn version(object: &PodNotification) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Carries one effect out. Writes are checked against the version of `object`, which is then the one written.
pub async fn apply(
    client: &Client,
    runs: &Runs,
    latest: &Latest,
    object: &mut PodNotification,
    effect: Effect,
    room: &mut Option<Room>,
) -> Result<(), ApplyError> {
    let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
    let api: Api<PodNotification> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    match effect {
        Effect::RecordOn(snapshot) => {
            let api: Api<ApplicationSnapshot> =
                Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
            let (parameters, snapshot_name) = (PostParams::default(), snapshot.name_any());
            let written = in_time(api.replace_status(&snapshot_name, &parameters, &snapshot)).await;
            written.context(RecordSnafu { name, snapshot: snapshot_name })?;
        }
        Effect::AddFinalizer => {
            let mut finalizers = object.finalizers().to_vec();
            finalizers.push(UNDO_FINALIZER.to_owned());
            *object = write(
                &name,
                "add the finalizer of",
                api.patch(&name, &PatchParams::default(), &of(object, finalizers)),
            )
            .await?;
            latest.wrote(object);
        }
        Effect::RemoveFinalizer => {
            let others = object.finalizers().iter().filter(|finalizer| *finalizer != UNDO_FINALIZER);
            let patch = of(object, others.cloned().collect());
            *object =
                write(&name, "remove the finalizer of", api.patch(&name, &PatchParams::default(), &patch)).await?;
            match object.metadata.deletion_timestamp {
                Some(_) => latest.forget_uid(&uid),
                None => latest.wrote(object),
            }
        }
        Effect::RequestUndo => {
            let version = object.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"undoRequested": true}});
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
            *object = write(&name, "request the undo of", api.patch(&name, &parameters, &patch)).await?;
            latest.wrote(object);
        }
        Effect::WriteStatus(status) => {
            let next = PodNotification { status: Some(*status), ..object.clone() };
            let parameters = PostParams::default();
            let written = api.replace_status(&name, &parameters, &next);
            *object = write(&name, "write the status of", written).await?;
            latest.wrote(object);
        }
        Effect::Start(work) => {
            runs.start(&Subject::of(object), work, room.take());
            runs.remember(object);
        }
        Effect::Cancel | Effect::BeginNoMore | Effect::StartUndo(_) | Effect::ForgetRun | Effect::ForgetUndo => {
            apply_here(runs, object, effect);
        }
        Effect::Delete => {
            let preconditions = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
            let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            write(&name, "delete", api.delete(&name, &parameters)).await?;
            latest.forget_uid(&uid);
        }
    }
    Ok(())
}

/// Carries out an effect that concerns this process alone, of an object that may be gone; others are left out.
pub fn apply_here(runs: &Runs, object: &PodNotification, effect: Effect) {
    let uid = object.uid().unwrap_or_default();
    match effect {
        Effect::Cancel => runs.cancel(&uid),
        Effect::BeginNoMore => runs.begin_no_more(&uid),
        Effect::StartUndo(work) => {
            runs.start_undo(&Subject::of(object), work);
            runs.remember(object);
        }
        Effect::ForgetRun => runs.forget_run(&uid),
        Effect::ForgetUndo => runs.forget_undo(&uid),
        Effect::RecordOn(_)
        | Effect::AddFinalizer
        | Effect::RemoveFinalizer
        | Effect::RequestUndo
        | Effect::WriteStatus(_)
        | Effect::Start(_)
        | Effect::Delete => {}
    }
}

/// A merge patch that holds only for the version that was looked at.
fn of(object: &PodNotification, finalizers: Vec<String>) -> Patch<serde_json::Value> {
    let version = object.resource_version();
    Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}}))
}

async fn write<T>(
    name: &str,
    what: &'static str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ApplyError> {
    in_time(call).await.context(CallSnafu { what, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_version(version: &str) -> PodNotification {
        let spec = serde_json::from_value(json!({"podName": "db-0", "notifier": "freeze"})).unwrap();
        let mut object = PodNotification::new("one", spec);
        object.metadata.uid = Some("u".to_owned());
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    #[test]
    fn own_write_counts_until_the_watch_has_it() {
        let latest = Latest::default();
        latest.wrote(&of_version("10"));
        assert_eq!(latest.of(&of_version("9")), of_version("10"));
        assert_eq!(latest.of(&of_version("11")), of_version("11"));
        assert_eq!(latest.of(&of_version("9")), of_version("9"), "it is forgotten");
    }
}
