//! The second door: somebody's own VolumeSnapshot, marked to be taken with hooks, is held until they have frozen.
//!
//! What is to be done is written down as an ApplicationSnapshot, which does it and takes it back, whatever becomes of
//! this process. Here its freeze is waited for; and if nobody waits any more, it is deleted, which thaws.

mod fit;
mod intent;
mod standing;

use std::{sync::Arc, time::Duration};

use boathook_api::{
    ApplicationSnapshot, ExecutionHookTemplate,
    application_snapshot::{
        ApplicationSnapshotSpec, DEFAULT_CUT_TIMEOUT_SECONDS, ExecutionHookInfo, OnHookFailure, SnapshotSource,
    },
    snapshot_mark::{self, Mark},
    volume_snapshot::VolumeSnapshot,
};
use boathook_decide::application_snapshot::intent_name;
use boathook_install::webhooks::HOLD_SECONDS;
use boathook_runtime::{
    error_class::chain,
    in_time,
    webhook::{Ask, refuse, time_to_answer},
};
use kube::{Api, Client, ResourceExt, core::admission::AdmissionResponse};
use tokio::{sync::Semaphore, time::Instant};

use super::access::{Access, Right};
use crate::application_snapshot::missing_class;
pub use fit::fits;
use intent::Intent;

/// The API server serves everybody; at 100 holds others were seen to wait for seconds, at 20 nobody.
const MOST_HOLDS: usize = 20;

/// To say why, and for that to be heard: the rest of the time is the hooks'.
const MARGIN: Duration = Duration::from_secs(1);

/// What hooks have of the time that the API server waits, in whole seconds: the one that has begun is not whole any more.
pub fn seconds_for_hooks() -> u64 {
    let patience = Duration::from_secs(HOLD_SECONDS.unsigned_abs().into());
    (time_to_answer(patience) - MARGIN).as_secs() - 1
}

/// Not a yes.
type Refusal = Box<AdmissionResponse>;

pub(super) struct Door {
    client: Client,
    access: Arc<Access>,
    holds: Semaphore,
}

impl Door {
    pub(super) fn new(client: Client, access: Arc<Access>) -> Self {
        Self { client, access, holds: Semaphore::new(MOST_HOLDS) }
    }

    /// Answers when the application is frozen, or cannot be, and `by_when` at the latest.
    pub(super) async fn review(&self, ask: &Ask, by_when: Instant) -> AdmissionResponse {
        match self.admit(ask, by_when - MARGIN).await {
            Ok(()) => AdmissionResponse::from(ask),
            Err(refusal) => *refusal,
        }
    }

    async fn admit(&self, ask: &Ask, by_when: Instant) -> Result<(), Refusal> {
        if ask.dry_run {
            return Ok(());
        }
        let snapshot = written(ask)?;
        if self.is_there(ask, &snapshot).await? {
            // The API server will say so.
            return Ok(());
        }
        self.access.check(ask, &[Right::Hook]).await?;
        let mark = snapshot_mark::of(snapshot.annotations(), snapshot.labels());
        let mark = match mark.map_err(|mistake| no(ask, (422, "Invalid"), mistake))? {
            Some(mark) => mark,
            // Not for us.
            None => return Ok(()),
        };
        self.has_class(ask, &snapshot).await?;
        let _hold = self.holds.try_acquire().map_err(|_| {
            let message = format!("{MOST_HOLDS} snapshots already wait for their hooks: try again later");
            no(ask, (429, "TooManyRequests"), message)
        })?;
        let seconds = by_when.saturating_duration_since(Instant::now()).as_secs();
        self.has_time(ask, &snapshot, &mark.infos, seconds).await?;
        let intended = intended(&snapshot, mark, seconds);
        let intent = Intent::write(self.client.clone(), intended).await;
        let intent = intent.map_err(|why| no(ask, (500, "InternalError"), why))?;
        intent.frozen(by_when).await.map_err(|why| no(ask, (403, "Forbidden"), why))
    }

    /// Live, not from a cache: what is there already needs no freeze.
    async fn is_there(&self, ask: &Ask, snapshot: &VolumeSnapshot) -> Result<bool, Refusal> {
        let name = snapshot.name_any();
        let api: Api<VolumeSnapshot> = Api::namespaced(self.client.clone(), &snapshot.namespace().unwrap_or_default());
        let found = in_time(api.get_metadata_opt(&name)).await.map_err(|error| {
            let message = format!("failed to check whether VolumeSnapshot `{name}` exists: {}", chain(&error));
            no(ask, (500, "InternalError"), message)
        })?;
        Ok(found.is_some())
    }

    /// Refuses a snapshot that the storage could not cut.
    async fn has_class(&self, ask: &Ask, snapshot: &VolumeSnapshot) -> Result<(), Refusal> {
        let class = snapshot.spec.volume_snapshot_class_name.as_deref();
        match missing_class(&self.client, class).await {
            Ok(None) => Ok(()),
            Ok(Some(missing)) => {
                let message = format!("{missing}: create it, or name an existing class. Boathook ran no hook");
                Err(no(ask, (403, "Forbidden"), message))
            }
            Err(error) => {
                let message = format!("failed to list the VolumeSnapshotClasses: {}", chain(&error));
                Err(no(ask, (500, "InternalError"), message))
            }
        }
    }

    /// Refuses what cannot be done in the time that the request has.
    async fn has_time(
        &self,
        ask: &Ask,
        snapshot: &VolumeSnapshot,
        infos: &[ExecutionHookInfo],
        seconds: u64,
    ) -> Result<(), Refusal> {
        let namespace = ask.namespace.as_deref().unwrap_or_default();
        let api: Api<ExecutionHookTemplate> = Api::namespaced(self.client.clone(), namespace);
        let mut hooks = Vec::new();
        for info in infos {
            let name = &info.execution_hook_template_name;
            let found = in_time(api.get_opt(name)).await.map_err(|error| {
                let message = format!("failed to get ExecutionHookTemplate `{name}`: {}", chain(&error));
                no(ask, (500, "InternalError"), message)
            })?;
            let missing = || {
                let message = format!(
                    "ExecutionHookTemplate `{name}` not found in this namespace: create it, or fix \
                     executionHookTemplateName"
                );
                no(ask, (403, "Forbidden"), message)
            };
            hooks.push((info.clone(), found.ok_or_else(missing)?));
        }
        let claim = snapshot.spec.source.persistent_volume_claim_name.as_deref().unwrap_or_default();
        let fits = fits(&self.client, namespace, claim, &hooks, seconds).await.map_err(|error| {
            let message = format!("failed to list the pods of namespace `{namespace}`: {}", chain(&error));
            no(ask, (500, "InternalError"), message)
        })?;
        fits.map_err(|why| no(ask, (403, "Forbidden"), why))
    }
}

fn written(ask: &Ask) -> Result<VolumeSnapshot, Refusal> {
    let object = serde_json::to_value(&ask.object).and_then(serde_json::from_value::<VolumeSnapshot>);
    let mut snapshot = object.map_err(|error| {
        no(ask, (422, "Invalid"), format!("the request does not contain a valid VolumeSnapshot: {error}"))
    })?;
    // In a create, only the request says where.
    snapshot.metadata.namespace.clone_from(&ask.namespace);
    Ok(snapshot)
}

/// What is to be done around the cut of this VolumeSnapshot, which will be stored with the UID that it has already.
pub fn intended(snapshot: &VolumeSnapshot, mark: Mark, seconds: u64) -> ApplicationSnapshot {
    let (name, uid) = (snapshot.name_any(), snapshot.uid().unwrap_or_default());
    let spec = ApplicationSnapshotSpec {
        source: SnapshotSource {
            persistent_volume_claim_name: snapshot.spec.source.persistent_volume_claim_name.clone(),
            selector: None,
            volume_snapshot_name: Some(name.clone()),
            volume_snapshot_uid: Some(uid.clone()),
        },
        // The class may be deleted before the controller begins: it looks again.
        volume_snapshot_class_name: snapshot.spec.volume_snapshot_class_name.clone(),
        execution_hook_infos: mark.infos,
        cut_timeout_seconds: DEFAULT_CUT_TIMEOUT_SECONDS,
        freeze_timeout_seconds: Some(i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)),
        on_hook_failure: OnHookFailure::Fail,
        other_pods: mark.other_pods,
    };
    let mut intended = ApplicationSnapshot::new(&intent_name(&name, &uid), spec);
    intended.metadata.namespace = snapshot.namespace();
    intended
}

fn no(ask: &Ask, (code, reason): (u16, &str), message: impl ToString) -> Refusal {
    Box::new(refuse(ask, code, reason, message))
}

#[cfg(test)]
mod tests;
