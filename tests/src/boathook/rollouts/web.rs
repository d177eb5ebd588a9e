//! The Deployment `web` of a scenario, with its lifecycle and its story.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{RolloutPhase, Stage},
    words::{condition, reason},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentSpec},
    core::v1::Pod,
};
use kube::ResourceExt;
use serde_json::Value;

use super::{
    history::{
        History, exit_code, hook_stage, is_hook, is_live, is_managed, main, template_of, version_of, version_of_pod,
    },
    invariants,
    story::{Now, Story, Thing},
};
use crate::{
    Ctx,
    boathook::lifecycles::{condition_of, lifecycle, phase, rollout},
    cluster::Choice,
    deployments::{DeploymentBuilder, deployment, is_rolled_out, revision},
    pods::{PodBuilder, is_ready, pod},
};

/// A version whose pods end at once, and so are never available.
pub const BROKEN: &str = "broken";

/// What the pods run: nothing, until they are told to end.
const IDLE: &str = "[ $VERSION != broken ] || exit 1; trap 'exit 0' TERM; sleep 2147483647 & wait";

/// A progress deadline for scenarios that wait until it has passed. The pod of a hook starts before it.
pub fn short_progress_deadline() -> Result<i32> {
    Ok(match Choice::of_the_environment()? {
        Choice::Embedded => 20,
        Choice::Kubeconfig => 40,
    })
}

/// A Deployment `web` of version v1.
pub fn web(ctx: &Ctx) -> DeploymentBuilder {
    deployment("web", template(ctx))
}

/// Its template.
pub fn template(ctx: &Ctx) -> PodBuilder {
    pod("web", ctx.images().shell).command(["sh", "-c", IDLE]).scratch("log", "/log").env("VERSION", "v1")
}

/// A Deployment whose user is the scenario. Whatever the user writes goes through this, so that nothing that somebody else
/// wrote is missed.
pub struct Web {
    pub(super) ctx: Ctx,
    pub(super) name: String,
    pub(super) story: Story,
    /// Its spec after each write of its user.
    pub(super) specs: Vec<DeploymentSpec>,
    /// How often it was adopted, or let go.
    pub(super) adoptions: i64,
}

impl Web {
    /// Creates it, and waits for nothing.
    pub async fn make(ctx: &Ctx, deployment: Deployment) -> Result<Self> {
        let name = deployment.name_any();
        let story = Story::of(ctx, &name).await?;
        let made = ctx.create(&deployment).await?;
        let specs = made.spec.into_iter().collect();
        Ok(Self { ctx: ctx.clone(), name, story, specs, adoptions: 0 })
    }

    /// Creates it, and waits until it is rolled out; it has no lifecycle yet.
    pub async fn run(ctx: &Ctx, deployment: DeploymentBuilder) -> Result<Self> {
        let web = Self::make(ctx, deployment.build()).await?;
        web.until("it is rolled out", |now| now.deployment.as_ref().filter(|one| is_rolled_out(one)).map(|_| ()))
            .await?;
        Ok(web)
    }

    /// Creates it and its lifecycle, and waits until it was adopted.
    pub async fn adopted(ctx: &Ctx, deployment: DeploymentBuilder, spec: Value) -> Result<Self> {
        let mut web = Self::run(ctx, deployment).await?;
        web.adopt(spec).await?;
        Ok(web)
    }

    /// Creates the lifecycle of a Deployment that nobody holds, and waits until it was adopted.
    pub async fn adopt(&mut self, spec: Value) -> Result<()> {
        self.create_lifecycle(spec).await?;
        self.adoptions += 1;
        let adopted = |object: &DeploymentLifecycle| {
            condition_of(object, condition::COMPLETE) == Some(("True".to_owned(), reason::ADOPTED.to_owned()))
        };
        self.until("it is adopted", |now| {
            let annotated = now.deployment.as_ref().is_some_and(is_managed);
            now.lifecycle.as_ref().filter(|object| adopted(object) && annotated).map(|_| ())
        })
        .await
    }

    pub async fn create_lifecycle(&self, spec: Value) -> Result<DeploymentLifecycle> {
        self.ctx.create(&lifecycle(&self.name, spec)?).await
    }

    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// As it was seen last; every write of its user has been.
    pub fn deployment(&self) -> Result<Deployment> {
        self.story.now().deployment.context("there is no such Deployment")
    }

    pub fn story(&self) -> &Story {
        &self.story
    }

    /// Waits until a look at what is there finds something.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&Now) -> Option<T>) -> Result<T> {
        self.story.until(what, look).await
    }

    /// Waits until the lifecycle is as it should be.
    pub async fn until_lifecycle(
        &self,
        what: &str,
        mut holds: impl FnMut(&DeploymentLifecycle) -> bool,
    ) -> Result<DeploymentLifecycle> {
        self.until(&format!("the lifecycle {what}"), |now| now.lifecycle.clone().filter(&mut holds)).await
    }

    /// Waits until the rollout of the template that it has now is in this phase.
    pub async fn until_phase(&self, wanted: RolloutPhase) -> Result<DeploymentLifecycle> {
        self.until(&format!("its rollout is in the phase {wanted:?}"), |now| {
            let current = now.lifecycle.clone().filter(|object| phase(object) == Some(wanted))?;
            is_of_template(now, &current).then_some(current)
        })
        .await
    }

    /// Waits until the rollout of the template that it has now is over and well.
    pub async fn completed(&self) -> Result<DeploymentLifecycle> {
        self.until_phase(RolloutPhase::Complete).await
    }

    /// Waits until its user is told that the rollout was aborted.
    pub async fn aborted(&self) -> Result<DeploymentLifecycle> {
        self.until_phase(RolloutPhase::Aborted).await
    }

    /// Waits until it is said that the template is the one again that runs already: no hooks.
    pub async fn cancelled(&self) -> Result<DeploymentLifecycle> {
        let cancelled = ("True".to_owned(), reason::CANCELLED.to_owned());
        self.until_lifecycle("says that the rollout was cancelled", |object| {
            condition_of(object, condition::COMPLETE).as_ref() == Some(&cancelled)
        })
        .await
    }

    /// Waits until the hook of this stage, and of the version that it has now, runs; and returns its pod.
    pub async fn hook_runs(&self, stage: Stage) -> Result<Pod> {
        let (what, mut outdated) = (format!("the hook of {stage} runs"), BTreeSet::new());
        loop {
            let seen = self.until(&what, |now| {
                let version = now.deployment.as_ref().map(version_of)?;
                let runs = |pod: &&Pod| runs_hook(pod, stage, &version) && !outdated.contains(&pod.resource_version());
                now.pods.values().find(runs).cloned()
            });
            let seen = seen.await?;
            // What is watched may be behind: a pod that was deleted or has failed just now is not the one that runs.
            let there = self.ctx.api::<Pod>().get_opt(&seen.name_any()).await?;
            match there.filter(|pod| pod.uid() == seen.uid() && runs_hook(pod, stage, &version_of_pod(&seen))) {
                Some(pod) => return Ok(pod),
                None => _ = outdated.insert(seen.resource_version()),
            }
        }
    }

    /// Waits until the hook of this stage runs, and lets it succeed.
    pub async fn release(&self, stage: Stage) -> Result<()> {
        self.end_hook(stage, "touch log/go").await
    }

    /// Waits until the hook of this stage runs, and has it fail: of those that can be told to.
    pub async fn refuse(&self, stage: Stage) -> Result<()> {
        self.end_hook(stage, "touch log/fail").await
    }

    async fn end_hook(&self, stage: Stage, tell: &str) -> Result<()> {
        let pod = self.hook_runs(stage).await?.name_any();
        // It may end before whoever told it so has.
        let told = self.ctx.shell(&pod, tell).await;
        let has_ended = |now: &Now| match now.pods.get(&pod) {
            Some(hook) => exit_code(hook).map(drop),
            None => Some(()),
        };
        let ended = self.until(&format!("hook pod `{pod}` has ended"), has_ended).await;
        ended.with_context(|| format!("it was told to: {told:?}"))
    }

    /// Waits until the Deployment controller has seen what its user wrote last.
    pub async fn is_observed(&self) -> Result<()> {
        self.until("the Deployment controller has seen it", |now| {
            let deployment = now.deployment.as_ref()?;
            (deployment.status.as_ref()?.observed_generation >= deployment.metadata.generation).then_some(())
        })
        .await
    }

    /// Waits until the Deployment does not say any more that a rollout of it was aborted.
    pub async fn says_nothing_of_an_abort(&self) -> Result<()> {
        self.until("the Deployment does not say any more that it was aborted", |now| {
            let conditions = now.deployment.as_ref()?.status.as_ref()?.conditions.as_ref()?;
            conditions.iter().all(|condition| condition.status == "True").then_some(())
        })
        .await
    }

    /// Says that somebody adopts it or lets it go, which costs a generation.
    pub fn expect_adoption(&mut self) {
        self.adoptions += 1;
    }

    /// Waits until this many pods of this version are ready, and there is no other that lives.
    pub async fn serves(&self, version: &str, count: usize) -> Result<()> {
        self.until(&format!("{count} pods of {version} are ready, and no other lives"), |now| {
            let replicas: Vec<_> = now.pods.values().filter(|pod| !is_hook(pod) && is_live(pod)).collect();
            let ready = |pod: &&Pod| is_ready(pod) && version_of_pod(pod) == version;
            (replicas.len() == count && replicas.iter().all(ready)).then_some(())
        })
        .await
    }

    /// Checks what holds for every rollout, over everything that has happened; and returns that, for what holds for this
    /// scenario's.
    pub async fn finish(self) -> Result<History> {
        let history = self.story.history().await?;
        invariants::check(&history)?;
        self.check_spec(&history)?;
        Ok(history)
    }

    /// Nobody but its user has written its spec, and nobody but its user and whoever adopted it or let it go has cost it a
    /// generation.
    fn check_spec(&self, history: &History) -> Result<()> {
        let mut seen: Vec<&DeploymentSpec> = Vec::new();
        let mut generation = 0;
        for moment in history.moments() {
            let Thing::Deployment(deployment) = &moment.thing else { continue };
            let spec = deployment.spec.as_ref().context("a Deployment without a spec")?;
            if seen.last() != Some(&spec) {
                seen.push(spec);
            }
            if deployment.metadata.deletion_timestamp.is_none() {
                generation = deployment.metadata.generation.unwrap_or(0);
            }
        }
        let mut written: Vec<_> = self.specs.iter().collect();
        written.dedup();
        ensure!(seen == written, "its spec was {seen:?}, its user wrote {written:?}");
        let writes = i64::try_from(self.specs.len())?;
        let adoptions = self.adoptions;
        ensure!(
            generation == writes + adoptions,
            "generation {generation} after {writes} writes of its user, adopted and let go {adoptions} times"
        );
        Ok(())
    }
}

/// Whether this pod runs the hook of this stage and version.
fn runs_hook(pod: &Pod, stage: Stage, version: &str) -> bool {
    let state = main(pod).and_then(|container| container.state.as_ref());
    hook_stage(pod) == Some(stage.as_str())
        && is_live(pod)
        && pod.metadata.deletion_timestamp.is_none()
        && state.is_some_and(|state| state.running.is_some())
        && version_of_pod(pod) == version
}

/// Whether what is recorded is about the template that the Deployment has now.
fn is_of_template(now: &Now, object: &DeploymentLifecycle) -> bool {
    let (Some(rollout), Some(deployment)) = (rollout(object), &now.deployment) else { return false };
    let wanted = deployment.spec.as_ref().map(|spec| &spec.template);
    match rollout.replica_set.as_ref().and_then(|name| now.sets.get(name)) {
        Some(set) => {
            let revision = revision(set).map(|revision| revision.to_string());
            template_of(set).as_ref() == wanted && revision == rollout.revision
        }
        // Under Recreate it is made after the drain; then no ReplicaSet has the template.
        None => now.sets.values().all(|set| template_of(set).as_ref() != wanted),
    }
}
