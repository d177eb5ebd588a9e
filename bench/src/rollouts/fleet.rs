//! Deployments of one pod each that are rolled out at once, with hooks or without.

use std::time::Instant;

use anyhow::{Context, Result};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{DeploymentLifecycleSpec, RolloutPhase, Stage},
    words::condition,
};
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::Condition,
};
use serde_json::{Value, json};

use super::namespace::{COMMAND, Namespace, until};

/// What is rolled out in one way.
#[derive(Clone, Copy)]
pub(super) enum Strategy {
    RollingUpdate,
    Recreate,
}

impl Strategy {
    pub(super) const ALL: [Self; 2] = [Self::RollingUpdate, Self::Recreate];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::RollingUpdate => "RollingUpdate",
            Self::Recreate => "Recreate",
        }
    }

    /// All that it can have.
    pub(super) fn stages(self) -> &'static [Stage] {
        match self {
            Self::RollingUpdate => &[Stage::Pre, Stage::Post],
            Self::Recreate => &Stage::ALL,
        }
    }
}

pub(super) struct Fleet<'a> {
    namespace: &'a Namespace,
    strategy: Strategy,
    /// A label that its pods have, and the beginning of each name.
    word: &'static str,
    names: Vec<String>,
    has_hooks: bool,
}

impl<'a> Fleet<'a> {
    pub(super) async fn plain(namespace: &'a Namespace, strategy: Strategy, count: usize) -> Result<Self> {
        Self::make(namespace, strategy, "plain", count, false).await
    }

    pub(super) async fn hooked(namespace: &'a Namespace, strategy: Strategy, count: usize) -> Result<Self> {
        Self::make(namespace, strategy, "hooked", count, true).await
    }

    async fn make(
        namespace: &'a Namespace,
        strategy: Strategy,
        word: &'static str,
        count: usize,
        has_hooks: bool,
    ) -> Result<Self> {
        let of = strategy.as_str().to_lowercase();
        let names = (0..count).map(|number| format!("{word}-{of}-{number}")).collect();
        let fleet = Self { namespace, strategy, word, names, has_hooks };
        try_join_all(fleet.names.iter().map(|name| fleet.make_one(name))).await?;
        Ok(fleet)
    }

    async fn make_one(&self, name: &str) -> Result<()> {
        let labels = json!({"app": name, self.word: ""});
        let container = json!({"name": "main", "image": self.namespace.image, "command": ["sleep", "100000"]});
        let deployment = json!({"metadata": {"name": name}, "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "strategy": {"type": self.strategy.as_str()},
            "template": {"metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}}});
        let deployments = self.namespace.api::<Deployment>();
        let deployment = serde_json::from_value(deployment)?;
        deployments.create(&PostParams::default(), &deployment).await.context("failed to create a Deployment")?;
        until(deployments, name, is_rolled_out).await?;
        if self.has_hooks {
            let lifecycles = self.namespace.api();
            let lifecycle = DeploymentLifecycle::new(name, self.hooks()?);
            lifecycles.create(&PostParams::default(), &lifecycle).await.context("failed to create a lifecycle")?;
            until(lifecycles, name, is_complete("1".to_owned())).await?;
        }
        Ok(())
    }

    fn hooks(&self) -> Result<DeploymentLifecycleSpec> {
        let hook = json!({"execNewPod": {"containerName": "main", "command": [COMMAND]}});
        let hooks: Value = self.strategy.stages().iter().map(|stage| (stage.as_str(), hook.clone())).collect();
        Ok(serde_json::from_value(hooks)?)
    }

    /// All of them at once: how many milliseconds it takes.
    pub(super) async fn roll_out(&self, round: usize) -> Result<f64> {
        let begun = Instant::now();
        try_join_all(self.names.iter().map(|name| self.roll_one(name, round))).await?;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    async fn roll_one(&self, name: &str, round: usize) -> Result<()> {
        let deployments = self.namespace.api::<Deployment>();
        let template = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        let patch = Patch::Merge(json!({"spec": {"template": template}}));
        deployments.patch(name, &PatchParams::default(), &patch).await.context("failed to change a template")?;
        if self.has_hooks {
            until(self.namespace.api(), name, is_complete((round + 1).to_string())).await
        } else {
            until(deployments, name, is_rolled_out).await
        }
    }

    /// Its pods take no part in what comes next.
    pub(super) async fn remove(self) -> Result<()> {
        let (how, which) = (DeleteParams::background(), ListParams::default());
        if self.has_hooks {
            // Its controller lets a Deployment go.
            let lifecycles = self.namespace.api::<DeploymentLifecycle>();
            lifecycles.delete_collection(&how, &which).await.context("failed to delete the lifecycles")?;
            let gone = |lifecycle: Option<&DeploymentLifecycle>| lifecycle.is_none();
            try_join_all(self.names.iter().map(|name| until(lifecycles.clone(), name, gone))).await?;
        }
        let deployments = self.namespace.api::<Deployment>();
        try_join_all(self.names.iter().map(|name| deployments.delete(name, &how))).await?;
        self.namespace.until_no_pods(self.word).await
    }
}

fn is_rolled_out(deployment: Option<&Deployment>) -> bool {
    deployment.is_some_and(|deployment| {
        let status = deployment.status.clone().unwrap_or_default();
        status.observed_generation >= deployment.metadata.generation
            && [status.replicas, status.updated_replicas, status.available_replicas] == [Some(1); 3]
    })
}

/// Of this revision.
fn is_complete(revision: String) -> impl Condition<DeploymentLifecycle> {
    move |lifecycle: Option<&DeploymentLifecycle>| {
        let status = lifecycle.and_then(|lifecycle| lifecycle.status.as_ref());
        // An adoption is recorded before a new version would be held.
        let said = status.is_some_and(|status| {
            status.conditions.iter().any(|known| known.type_ == condition::COMPLETE && known.status == "True")
        });
        let rollout = status.filter(|_| said).and_then(|status| status.rollout.as_ref());
        rollout.is_some_and(|rollout| {
            rollout.phase == RolloutPhase::Complete && rollout.revision.as_ref() == Some(&revision)
        })
    }
}
