//! What the user of a Deployment does with it: the same requests that `kubectl` makes. Each costs one generation.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use boathook_api::DeploymentLifecycle;
use k8s_openapi::{
    api::apps::v1::{Deployment, ReplicaSet},
    jiff::Timestamp,
};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{history::template_of, story::Now, web::Web};
use crate::deployments::revision;

/// Annotations that `kubectl rollout undo` leaves as they are.
const KEPT_BY_UNDO: [&str; 5] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
];

/// In seconds: longer than anything here takes, and shorter than a Deployment has to progress.
const NEVER_SOON: i32 = 500;

impl Web {
    /// Another version, as `kubectl set env` writes it.
    pub async fn roll_to(&mut self, version: &str) -> Result<()> {
        let container = json!({"name": "main", "env": [{"name": "VERSION", "value": version}]});
        self.write(json!({"spec": {"template": {"spec": {"containers": [container]}}}})).await
    }

    /// As `kubectl rollout restart`.
    pub async fn restart(&mut self) -> Result<()> {
        let annotations = json!({"kubectl.kubernetes.io/restartedAt": Timestamp::now().to_string()});
        self.write(json!({"spec": {"template": {"metadata": {"annotations": annotations}}}})).await
    }

    pub async fn pause(&mut self) -> Result<()> {
        self.write(json!({"spec": {"paused": true}})).await
    }

    pub async fn resume(&mut self) -> Result<()> {
        self.write(json!({"spec": {"paused": null}})).await
    }

    /// As `kubectl scale` and autoscalers do it.
    pub async fn scale(&mut self, replicas: i32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.ctx.api::<Deployment>().patch_scale(&self.name, &PatchParams::default(), &patch).await?;
        let scaled = self.ctx.api::<Deployment>().get(&self.name).await?;
        self.note(scaled).await
    }

    /// No pod of the new version counts as available before [`Self::count_new_pods`]: so long its rollout stays where pods
    /// are replaced. To be called while its ReplicaSet is there and held: an old one would keep what is written here.
    pub async fn discount_new_pods(&mut self) -> Result<()> {
        self.write(json!({"spec": {"minReadySeconds": NEVER_SOON}})).await?;
        let counts_late =
            |set: &ReplicaSet| set.spec.as_ref().is_some_and(|spec| spec.min_ready_seconds == Some(NEVER_SOON));
        self.until("its new pods count late", |now| now.sets.values().any(counts_late).then_some(())).await
    }

    pub async fn count_new_pods(&mut self) -> Result<()> {
        self.write(json!({"spec": {"minReadySeconds": 0}})).await
    }

    /// As `kubectl rollout undo --to-revision`; the ReplicaSet's annotations come with its template.
    pub async fn undo_to(&mut self, to: i64) -> Result<()> {
        let of_revision = |now: &Now| now.sets.values().find(|set| revision(*set) == Some(to)).cloned();
        let set = self.until(&format!("there is a revision {to}"), of_revision).await?;
        self.undo(&set).await
    }

    /// As `kubectl rollout undo`: to the revision before the latest, of those that are there, whatever was seen of them.
    pub async fn undo_last(&mut self) -> Result<()> {
        let its_own = ListParams::default().labels(&format!("app={}", self.name));
        let mut sets = self.ctx.api::<ReplicaSet>().list(&its_own).await?.items;
        sets.sort_by_key(revision);
        let before = sets.len().checked_sub(2).and_then(|place| sets.get(place)).cloned();
        self.undo(&before.context("there is no revision before this one")?).await
    }

    /// To this ReplicaSet.
    pub async fn undo(&mut self, set: &ReplicaSet) -> Result<()> {
        let deployment: Deployment = self.ctx.api().get(&self.name).await?;
        let is_kept = |key: &String| KEPT_BY_UNDO.contains(&key.as_str());
        let kept = deployment.annotations().iter().filter(|(key, _)| is_kept(key));
        let taken = set.annotations().iter().filter(|(key, _)| !is_kept(key));
        let annotations: BTreeMap<_, _> = kept.chain(taken).collect();
        let patch: kube::core::params::Patch<()> = Patch::Json(serde_json::from_value(json!([
            {"op": "replace", "path": "/spec/template", "value": template_of(set)},
            {"op": "replace", "path": "/metadata/annotations", "value": annotations},
        ]))?);
        self.patch(&patch).await
    }

    /// As `kubectl apply --server-side`, and as GitOps does it again and again: what is there already costs nothing.
    pub async fn apply(&mut self, manifest: &Deployment) -> Result<()> {
        let before = self.ctx.api::<Deployment>().get(&self.name).await?.metadata.generation;
        let applying = PatchParams::apply("gitops").force();
        let applied = self.ctx.api::<Deployment>().patch(&self.name, &applying, &Patch::Apply(manifest)).await;
        let applied = applied.context("failed to apply the Deployment")?;
        if applied.metadata.generation == before {
            return Ok(());
        }
        self.note(applied).await
    }

    /// Changes the Deployment, as its user.
    pub async fn write(&mut self, patch: Value) -> Result<()> {
        self.patch(&Patch::Strategic(patch)).await
    }

    async fn patch<P: Serialize + std::fmt::Debug>(&mut self, patch: &Patch<P>) -> Result<()> {
        let written = self.ctx.api::<Deployment>().patch(&self.name, &PatchParams::default(), patch).await;
        self.note(written.context("failed to change the Deployment")?).await
    }

    /// Remembers what its user wrote, and waits until that was seen.
    async fn note(&mut self, written: Deployment) -> Result<()> {
        let generation = written.metadata.generation;
        self.specs.extend(written.spec);
        self.until("what its user wrote is seen", |now| {
            let seen = now.deployment.as_ref().map(|deployment| deployment.metadata.generation);
            (seen >= Some(generation)).then_some(())
        })
        .await
    }

    /// Deletes the lifecycle, and waits until the Deployment is let go.
    pub async fn let_go(&mut self) -> Result<()> {
        self.adoptions += 1;
        self.ctx.delete_and_see_gone::<DeploymentLifecycle>(&self.name).await
    }

    /// Deletes the Deployment and then its lifecycle, and waits until everything of them is gone.
    pub async fn delete_all(&self) -> Result<()> {
        self.ctx.delete_and_see_gone::<Deployment>(&self.name).await?;
        self.ctx.delete_and_see_gone::<DeploymentLifecycle>(&self.name).await?;
        let none = |now: &Now| (now.pods.is_empty() && now.sets.is_empty()).then_some(());
        self.until("everything of it is gone", none).await
    }

    /// Changes the lifecycle.
    pub async fn write_lifecycle(&self, patch: Value) -> Result<DeploymentLifecycle> {
        let lifecycles = self.ctx.api::<DeploymentLifecycle>();
        let written = lifecycles.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        written.context("failed to change the lifecycle")
    }
}
