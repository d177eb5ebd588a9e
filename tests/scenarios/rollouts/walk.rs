//! Several users at once do with their Deployments whatever comes to their minds, and the controller is killed again and
//! again. When they stop, everything is rolled out or said to be aborted, and nobody writes any more.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use boathook_api::{
    deployment_lifecycle::{RolloutPhase, StageRecord, StageState},
    pod_notification::Executor,
    words::{HOOK_OF_LABEL, ROLLOUT_LABEL, STAGE_LABEL},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        installation::Installation,
        lifecycles::{self, hook, phase, policy},
        process::Process,
        rollouts::{History, Thing, Web, is_hook, is_live, template, template_of, version_of},
    },
    deployments::{DeploymentBuilder, deployment, is_rolled_out},
    measure::Measure,
    pods::PodBuilder,
    random::Random,
};
use futures::future::{try_join, try_join_all};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::rollouts::faults::{end, replace};

/// Between two operations of one user no more than this many milliseconds pass; one in [`RARE`] times ten times as much.
const PAUSE: u64 = 500;
const RARE: u64 = 12;

/// When everything is as it will be, nothing is written for this long.
const QUIET: Duration = Duration::from_secs(5);

/// One of these is vetoed by its pre.
const VERSIONS: [&str; 5] = ["v1", "v2", "v3", "v4", VETOED];
const VETOED: &str = "vetoed";

pub(crate) async fn whatever_users_do_at_random_every_promise_is_kept(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let measure = Measure::from_environment()?;
    let mut random = Random::of_the_environment()?;
    let controller = installation.controller(executor, &[]).await?;
    let mut users = Vec::new();
    for (deployment, hooks) in deployments(&template(&ctx), &HookPreludes::default()) {
        users.push(User::of(Web::adopted(&ctx, deployment, hooks).await?, random.another()));
    }
    let begun = Instant::now();
    let walks = users.into_iter().map(|user| user.walk(|at| at < measure.operations()));
    let killing = kill_again_and_again(measure, random, &installation, executor, controller);
    let (webs, controller) = try_join(try_join_all(walks), killing).await?;
    eprintln!(
        "{} operations each and {} kills in {:?}",
        measure.operations(),
        measure.kills_of_the_walk(),
        begun.elapsed()
    );
    for web in &webs {
        comes_to_an_end(web).await?;
    }
    nobody_writes(&webs).await?;
    eprintln!("quiet after {:?}", begun.elapsed());
    for web in webs {
        ends_as_promised(&web)?;
        hooks_run_once(&web.finish().await?)?;
    }
    end(&ctx, controller).await
}

/// Shell commands that each hook of a Deployment begins with.
#[derive(Default)]
pub(crate) struct HookPreludes {
    pub(crate) any: &'static str,
    pub(crate) mid: &'static str,
}

/// One for each way to roll out.
pub(crate) fn deployments(template: &PodBuilder, preludes: &HookPreludes) -> Vec<(DeploymentBuilder, Value)> {
    let named = |name| deployment(name, template.clone().env("DEPLOYMENT", name)).replicas(2);
    let HookPreludes { any, mid } = preludes;
    let mid = |script: &str| hook(&format!("{any}{mid}{script}"));
    let pre = policy(hook(&format!("{any}sleep 0.2; [ $VERSION != vetoed ]")), "Abort");
    let post = policy(hook(&format!("{any}sleep 0.2; [ $VERSION != v4 ]")), "Ignore");
    let rolling = json!({"pre": pre, "post": post});
    let recreate = json!({"pre": pre, "mid": mid("sleep 0.3"), "post": post});
    vec![
        (named("surge").rolling(1, 0), rolling.clone()),
        (named("shrink").rolling(0, 1), rolling),
        (named("recreate").recreate(), recreate),
        (named("plain").recreate(), json!({"mid": mid("sleep 0.5")})),
    ]
}

/// Somebody with a Deployment.
pub(crate) struct User {
    web: Web,
    random: Random,
}

impl User {
    pub(crate) fn of(web: Web, random: Random) -> Self {
        Self { web, random }
    }

    /// Does one operation after another, as long as this holds of the number of those before.
    pub(crate) async fn walk(mut self, mut goes_on: impl FnMut(usize) -> bool) -> Result<Web> {
        for at in (0..).take_while(|at| goes_on(*at)) {
            let done = self.operate().await;
            let done = done.with_context(|| format!("operation {at} on `{}` failed", self.web.name()))?;
            eprintln!("{} {at}: {done}", self.web.name());
            // The moment is what is random: nothing is waited for.
            let rare = if self.random.below(RARE) == 0 { 10 } else { 1 };
            tokio::time::sleep(Duration::from_millis(self.random.below(PAUSE * rare))).await;
        }
        if self.is_paused()? {
            self.web.resume().await?;
        }
        Ok(self.web)
    }

    /// Does something that changes the spec, and says what.
    async fn operate(&mut self) -> Result<String> {
        let paused = self.is_paused()?;
        match self.random.below(20) {
            0..8 => self.roll().await,
            8..11 => self.scale().await,
            11..14 if !paused => self.undo().await,
            14..16 if !paused => {
                self.web.restart().await?;
                Ok("restarted".to_owned())
            }
            16 if !paused => {
                self.web.pause().await?;
                Ok("paused".to_owned())
            }
            _ if paused => {
                self.web.resume().await?;
                Ok("resumed".to_owned())
            }
            _ => self.roll().await,
        }
    }

    async fn roll(&mut self) -> Result<String> {
        let now = version_of(&self.web.deployment()?);
        let others: Vec<_> = VERSIONS.into_iter().filter(|version| *version != now).collect();
        let version = self.random.one_of(&others).copied().unwrap_or_default();
        self.web.roll_to(version).await?;
        Ok(format!("rolled to {version}"))
    }

    async fn scale(&mut self) -> Result<String> {
        let now = self.web.deployment()?.spec.and_then(|spec| spec.replicas);
        let others: Vec<_> = (0..4).filter(|replicas| Some(*replicas) != now).collect();
        let replicas = self.random.one_of(&others).copied().unwrap_or_default();
        self.web.scale(replicas).await?;
        Ok(format!("scaled to {replicas}"))
    }

    /// To any other version that is still known.
    async fn undo(&mut self) -> Result<String> {
        let template = self.web.deployment()?.spec.map(|spec| spec.template);
        let sets: Vec<_> = self.web.story().now().sets.into_values().collect();
        let others: Vec<_> = sets.into_iter().filter(|set| template_of(set) != template).collect();
        let Some(set) = self.random.one_of(&others) else { return self.roll().await };
        self.web.undo(set).await?;
        Ok(format!("undone to {}", set.name_any()))
    }

    fn is_paused(&self) -> Result<bool> {
        Ok(self.web.deployment()?.spec.and_then(|spec| spec.paused).unwrap_or(false))
    }
}

async fn kill_again_and_again(
    measure: Measure,
    mut random: Random,
    installation: &Installation,
    executor: Executor,
    mut controller: Process,
) -> Result<Process> {
    // Spread over the time that the users take, roughly.
    let longest = PAUSE * measure.operations() as u64 / measure.kills_of_the_walk() as u64;
    for kill in 0..measure.kills_of_the_walk() {
        tokio::time::sleep(Duration::from_millis(random.below(longest))).await;
        controller = replace(installation, executor, controller).await?;
        eprintln!("killed {kill}");
    }
    Ok(controller)
}

pub(crate) async fn comes_to_an_end(web: &Web) -> Result<()> {
    tokio::select! {
        completed = web.completed() => completed.map(drop),
        aborted = web.aborted() => aborted.map(drop),
    }
}

/// Waits until nothing of any of them has changed for a while: some still end, and then none does anything.
pub(crate) async fn nobody_writes(webs: &[Web]) -> Result<()> {
    let quiet = async {
        'again: loop {
            let before: Vec<_> = webs.iter().map(|web| web.story().now().versions()).collect();
            let changes = webs.iter().zip(&before).map(|(web, before)| {
                Box::pin(web.until("anything changes", |now| (now.versions() != *before).then_some(())))
            });
            match tokio::time::timeout(QUIET, futures::future::select_all(changes)).await {
                Ok((changed, ..)) => changed?,
                Err(_) => break 'again,
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(DEADLINE, quiet).await.context("somebody writes and writes")?
}

/// It is rolled out, or it says that it was aborted; and no hook runs any more.
pub(crate) fn ends_as_promised(web: &Web) -> Result<()> {
    let (now, name) = (web.story().now(), web.name());
    let phase = now.lifecycle.as_ref().and_then(phase);
    match phase {
        Some(RolloutPhase::Complete) => {
            let rolled_out = now.deployment.as_ref().is_some_and(is_rolled_out);
            ensure!(rolled_out, "`{name}` is called complete, and is not rolled out: {:?}", now.deployment);
        }
        Some(RolloutPhase::Aborted) => {
            let version = now.deployment.as_ref().map(version_of);
            ensure!(version.as_deref() == Some(VETOED), "`{name}` was aborted, and nothing is wrong with {version:?}");
        }
        other => anyhow::bail!("`{name}` stands still in {other:?}"),
    }
    let hooks: Vec<_> = now.pods.values().filter(|pod| is_hook(pod) && is_live(pod)).collect();
    ensure!(hooks.is_empty(), "hooks of `{name}` are left: {hooks:?}");
    Ok(())
}

/// No hook is retried here: each stage of each rollout has one pod, besides those that a newer template has ended. (Who
/// goes back to the template before the newer one was begun goes on with the rollout that was under way.) One that ended by
/// itself just before it was deleted is gone at once, and its stage still recorded as running.
pub(crate) fn hooks_run_once(history: &History) -> Result<()> {
    let mut pods: BTreeMap<_, BTreeMap<_, bool>> = BTreeMap::new();
    for (before, moment) in history.steps() {
        let Thing::Pod(pod) = &moment.thing else { continue };
        let label = |key| pod.labels().get(key).cloned();
        if let (Some(of), Some(rollout), Some(stage)) = (label(HOOK_OF_LABEL), label(ROLLOUT_LABEL), label(STAGE_LABEL))
        {
            let recorded = before.lifecycle.as_ref().and_then(lifecycles::rollout);
            let recorded = recorded.filter(|one| one.start_time.0.as_microsecond().to_string() == rollout);
            let runs = |record: &StageRecord| record.stage.as_str() == stage && record.state == StageState::Running;
            let runs = recorded.is_some_and(|one| one.stages.iter().any(runs));
            let of_stage = pods.entry((of, rollout, stage)).or_default();
            let ended = of_stage.entry(pod.uid()).or_default();
            *ended |= (pod.metadata.deletion_timestamp.is_some() && is_live(pod)) || (moment.gone && runs);
        }
    }
    for (stage, pods) in pods {
        let whole = pods.values().filter(|ended| !**ended).count();
        ensure!(whole <= 1, "{stage:?} had several pods: {pods:?}");
    }
    Ok(())
}
