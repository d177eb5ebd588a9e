//! A storage that does nothing but what a scenario makes it do: a VolumeSnapshotClass whose driver nobody serves.
//!
//! The cluster's own snapshot controller makes a content for each snapshot, and takes over what is written there; what the
//! driver's sidecar would write, the scenario does. So a cut can hang, fail, or come late, on any cluster.

use std::{
    borrow::Cow,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use k8s_openapi::{ClusterResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, TypeMeta},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Ctx, DEADLINE, namespace,
    snapshots::{GROUP, VolumeSnapshot, VolumeSnapshotContent},
};

const VERSION: &str = "v1";

/// See above. It, and what it has, goes with the scenario.
pub struct SilentStorage {
    ctx: Ctx,
    /// The name of its VolumeSnapshotClass.
    pub class: String,
}

impl Ctx {
    pub async fn silent_storage(&self) -> Result<SilentStorage> {
        let class = format!("{}-silent", self.namespace());
        let driver = format!("{class}.boathook.dev");
        let (ctx, of_driver) = (self.clone(), driver.clone());
        self.afterwards(move || Box::pin(remove_contents(ctx, of_driver)));
        self.create_cluster_scoped(VolumeSnapshotClass {
            types: TypeMeta { api_version: format!("{GROUP}/{VERSION}"), kind: "VolumeSnapshotClass".to_owned() },
            metadata: ObjectMeta { name: Some(class.clone()), ..ObjectMeta::default() },
            driver,
            // Nobody is there to delete anything: a snapshot that waited for that would never go.
            deletion_policy: "Retain".to_owned(),
        })
        .await?;
        Ok(SilentStorage { ctx: self.clone(), class })
    }
}

impl SilentStorage {
    /// This class in an ApplicationSnapshot's spec, with more time for the cut than a scenario takes on a busy machine.
    pub fn fields(&self) -> Value {
        json!({"volumeSnapshotClassName": self.class, "cutTimeoutSeconds": 600})
    }

    /// Waits until it is asked for this snapshot, and returns the content that it would write on.
    pub async fn asked_for(&self, snapshot: &str) -> Result<VolumeSnapshotContent> {
        let is_bound = |snapshot: &VolumeSnapshot| content_of(snapshot).is_some();
        let what = "has a content";
        let bound: VolumeSnapshot = self.ctx.watch_until(DEADLINE, snapshot, what, is_bound).await?;
        let name = content_of(&bound).context("a bound snapshot has a content")?;
        self.contents().get(&name).await.with_context(|| format!("failed to get VolumeSnapshotContent `{name}`"))
    }

    /// Cuts this snapshot: says so at once, and that it is ready.
    pub async fn cuts(&self, snapshot: &str) -> Result<()> {
        let content = self.asked_for(snapshot).await?;
        self.cuts_late(&content).await
    }

    /// The same for a content whose snapshot may be gone by now.
    pub async fn cuts_late(&self, content: &VolumeSnapshotContent) -> Result<()> {
        self.says_cut(content, true).await
    }

    /// Cuts this snapshot, and says that it is not ready yet, as while it is uploaded.
    pub async fn cuts_and_uploads(&self, snapshot: &str) -> Result<()> {
        let content = self.asked_for(snapshot).await?;
        self.says_cut(&content, false).await
    }

    async fn says_cut(&self, content: &VolumeSnapshotContent, ready: bool) -> Result<()> {
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
        let handle = content.name_any();
        let status = json!({"creationTime": now, "readyToUse": ready, "restoreSize": 0, "snapshotHandle": handle});
        self.writes(content, status).await
    }

    /// Fails to cut this snapshot, for this reason.
    pub async fn fails(&self, snapshot: &str, message: &str) -> Result<()> {
        let content = self.asked_for(snapshot).await?;
        let error = json!({"message": message, "time": Timestamp::now().to_string()});
        self.writes(&content, json!({"readyToUse": false, "error": error})).await
    }

    async fn writes(&self, content: &VolumeSnapshotContent, status: Value) -> Result<()> {
        let (name, patch) = (content.name_any(), Patch::Merge(json!({"status": status})));
        let written = self.contents().patch_status(&name, &PatchParams::default(), &patch).await;
        written.map(drop).with_context(|| format!("failed to write the status of VolumeSnapshotContent `{name}`"))
    }

    fn contents(&self) -> Api<VolumeSnapshotContent> {
        Api::all(self.ctx.client())
    }
}

fn content_of(snapshot: &VolumeSnapshot) -> Option<String> {
    snapshot.status.as_ref()?.bound_volume_snapshot_content_name.clone()
}

/// First the snapshots, which would ask for contents again; then what the sidecar of this driver would have let go.
async fn remove_contents(ctx: Ctx, driver: String) -> Result<()> {
    let snapshots: Api<VolumeSnapshot> = ctx.api();
    snapshots.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let mut left = ctx.watch::<VolumeSnapshot>("").await?;
    left.until(DEADLINE, "the snapshots are gone", |seen| seen.now.is_empty()).await?;
    let contents = ApiResource::erase::<VolumeSnapshotContent>(&());
    let contents: Api<DynamicObject> = Api::all_with(ctx.client(), &contents);
    for content in contents.list(&ListParams::default()).await?.items {
        if content.data["spec"]["driver"] == *driver {
            let name = content.name_any();
            contents.delete(&name, &DeleteParams::default()).await?;
            // Only now: one that is not being deleted is protected again at once.
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            contents.patch(&name, &PatchParams::default(), &free).await?;
            namespace::remove::<VolumeSnapshotContent>(ctx.client(), name).await?;
        }
    }
    Ok(())
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct VolumeSnapshotClass {
    #[serde(flatten)]
    types: TypeMeta,
    metadata: ObjectMeta,
    driver: String,
    deletion_policy: String,
}

impl Resource for VolumeSnapshotClass {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "VolumeSnapshotClass".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "volumesnapshotclasses".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
