//! What becomes of a rollout whose hook fails: every failurePolicy at every stage, for both strategies.

use anyhow::{Context, Result, bail, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{RolloutPhase, Stage, StageRecord, StageState},
    pod_notification::Executor,
    words::{ABORT_PREFIX, condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{condition_of, fails, phase, policy, stage},
        rollouts::{History, Thing, Web, template},
    },
    deployments::{DeploymentBuilder, deployment},
};
use futures::future::try_join_all;
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentCondition},
    jiff::SignedDuration,
};
use serde_json::{Value, json};

/// A hook that is tried again has this long: enough to be tried twice, on a slow machine too.
const PATIENCE: i32 = 60;

/// One that is not has more than it needs.
const MORE_THAN_ENOUGH: i32 = 600;

/// A pod has whole seconds for what is left of that time, and they count from the whole second in which it was started.
const ROUNDED: SignedDuration = SignedDuration::from_secs(2);

/// On a slow machine, and long before a Deployment's own time is over.
const PROMPTLY: SignedDuration = SignedDuration::from_secs(30);

/// What is expected.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The rollout ends there.
    Aborts,
    /// It goes on.
    GoesOn,
    /// Nothing is adopted.
    Refused,
}

pub(crate) async fn every_policy_at_every_stage_of_a_rolling_update(ctx: Ctx, _: Executor) -> Result<()> {
    let cases = [
        (Stage::Pre, "Retry", Then::Aborts),
        (Stage::Pre, "Abort", Then::Aborts),
        (Stage::Pre, "Ignore", Then::GoesOn),
        (Stage::Mid, "Retry", Then::Refused),
        (Stage::Mid, "Abort", Then::Refused),
        (Stage::Mid, "Ignore", Then::Refused),
        // After a RollingUpdate there is nothing left to abort.
        (Stage::Post, "Retry", Then::GoesOn),
        (Stage::Post, "Abort", Then::Refused),
        (Stage::Post, "Ignore", Then::GoesOn),
    ];
    each(&ctx, &cases, |deployment| deployment.rolling(1, 0)).await
}

pub(crate) async fn every_policy_at_every_stage_under_recreate(ctx: Ctx, _: Executor) -> Result<()> {
    let stages = [Stage::Pre, Stage::Mid, Stage::Post];
    let policies = [("Retry", Then::Aborts), ("Abort", Then::Aborts), ("Ignore", Then::GoesOn)];
    let cases: Vec<_> =
        stages.into_iter().flat_map(|stage| policies.map(|(policy, then)| (stage, policy, then))).collect();
    each(&ctx, &cases, DeploymentBuilder::recreate).await
}

/// Each case with a Deployment of its own, all at once.
async fn each(
    ctx: &Ctx,
    cases: &[(Stage, &str, Then)],
    strategy: fn(DeploymentBuilder) -> DeploymentBuilder,
) -> Result<()> {
    let each = cases.iter().map(|(stage, policy, then)| async move {
        let case = one(ctx, *stage, policy, *then, strategy).await;
        case.map_err(|error| error.context(format!("{stage} {policy}, {then:?}")))
    });
    try_join_all(each).await.map(drop)
}

async fn one(
    ctx: &Ctx,
    at: Stage,
    failure_policy: &str,
    then: Then,
    strategy: fn(DeploymentBuilder) -> DeploymentBuilder,
) -> Result<()> {
    let name = format!("{at}-{}", failure_policy.to_lowercase());
    let deadline = if failure_policy == "Retry" { PATIENCE } else { MORE_THAN_ENOUGH };
    let deployment = strategy(deployment(&name, template(ctx)).replicas(1).progress_deadline(deadline));
    let mut web = Web::run(ctx, deployment).await?;
    let hooks = json!({at.as_str(): policy(fails(), failure_policy)});
    if let Then::Refused = then {
        return refused(web, hooks).await;
    }
    web.adopt(hooks).await?;
    web.roll_to("v2").await?;
    let over = match then {
        Then::Aborts => web.aborted().await?,
        Then::GoesOn | Then::Refused => web.completed().await?,
    };
    let record = stage(&over, at)?;
    ensure!(record.failures >= 1, "no failure is recorded: {record:?}");
    ensure!(record.log_tail.as_deref() == Some("no such table\n"), "what it wrote is not kept: {record:?}");
    ctx.event_of::<DeploymentLifecycle>(&name, reason::HOOK_RUN_FAILED).await?;
    ctx.event_of::<Deployment>(&name, reason::HOOK_RUN_FAILED).await?;
    if failure_policy == "Retry" {
        has_used_its_time(&record)?;
    }
    match then {
        Then::Aborts => {
            assert_eq!(record.state, StageState::Failed);
            aborts(&web, &over, at).await?;
        }
        Then::GoesOn | Then::Refused => {
            assert_eq!(record.state, StageState::Ignored);
            web.serves("v2", 1).await?;
        }
    }
    let history = web.finish().await?;
    if let (Then::Aborts, Stage::Pre | Stage::Mid) = (then, at) {
        fails_promptly(&history, &record)?;
    }
    let (runs, words) = (history.runs(), format!("{at} v2"));
    let enough = if failure_policy == "Retry" { runs.len() >= 2 } else { runs.len() == 1 };
    ensure!(enough && runs.iter().all(|run| *run == words), "{runs:?}");
    Ok(())
}

/// It was tried until its time was over, and says so.
fn has_used_its_time(record: &StageRecord) -> Result<()> {
    let message = record.message.as_deref().unwrap_or_default();
    ensure!(message.contains("progressDeadlineSeconds"), "it does not say that its time is over: {record:?}");
    let ended = record.complete_time.as_ref().with_context(|| format!("it has not ended: {record:?}"))?;
    let took = ended.0.duration_since(record.start_time.0);
    ensure!(took >= SignedDuration::from_secs(PATIENCE.into()) - ROUNDED, "it had only {took:?}: {record:?}");
    Ok(())
}

/// What is refused says which strategy is needed, and the Deployment stays as it was.
async fn refused(mut web: Web, hooks: Value) -> Result<()> {
    let message = match web.create_lifecycle(hooks).await {
        Ok(created) => bail!("it was not refused: {created:?}"),
        Err(error) => format!("{error:#}"),
    };
    ensure!(message.contains("`Recreate`"), "it does not say which strategy is needed: {message}");
    web.roll_to("v2").await?;
    web.serves("v2", 1).await?;
    let runs = web.finish().await?.runs();
    ensure!(runs.is_empty(), "{runs:?}");
    Ok(())
}

/// What a person sees of an aborted rollout, and what still runs.
async fn aborts(web: &Web, over: &DeploymentLifecycle, at: Stage) -> Result<()> {
    assert_eq!(phase(over), Some(RolloutPhase::Aborted));
    assert_eq!(condition_of(over, condition::FAILED), Some(("True".to_owned(), reason::ABORTED.to_owned())));
    web.until("the Deployment says that it was aborted", |now| {
        says(now.deployment.as_ref()?, condition::LIFECYCLE, reason::ABORTED).map(drop)
    })
    .await?;
    match at {
        Stage::Pre => web.serves("v1", 1).await?,
        Stage::Mid => web.serves("none", 0).await?,
        // The Deployment controller is content, and would say so again.
        Stage::Post => return web.serves("v2", 1).await,
    }
    web.until("`kubectl rollout status` fails", |now| has_failed(now.deployment.as_ref()?).map(drop)).await
}

/// `kubectl rollout status` fails soon after the stage did.
fn fails_promptly(history: &History, record: &StageRecord) -> Result<()> {
    let said = history.moments().iter().find_map(|moment| match &moment.thing {
        Thing::Deployment(deployment) => has_failed(deployment),
        Thing::ReplicaSet(_) | Thing::Pod(_) | Thing::Lifecycle(_) => None,
    });
    let since = said.and_then(|said| said.last_transition_time.as_ref()).context("it was never said")?;
    let failed = record.complete_time.as_ref().with_context(|| format!("it has not ended: {record:?}"))?;
    let late = since.0.duration_since(failed.0);
    ensure!(late <= PROMPTLY, "it was said {late:?} after {record:?}");
    Ok(())
}

/// By which `kubectl rollout status` fails.
fn has_failed(deployment: &Deployment) -> Option<&DeploymentCondition> {
    says(deployment, condition::PROGRESSING, reason::PROGRESS_DEADLINE_EXCEEDED)
}

/// The Deployment's condition of this type, if it says for this reason that Boathook has aborted.
fn says<'a>(deployment: &'a Deployment, kind: &str, reason: &str) -> Option<&'a DeploymentCondition> {
    let said = deployment.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)?;
    let is_ours = said.message.as_ref().is_some_and(|message| message.starts_with(ABORT_PREFIX));
    (is_ours && said.status == "False" && said.reason.as_deref() == Some(reason)).then_some(said)
}
