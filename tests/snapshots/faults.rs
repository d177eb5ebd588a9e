//! The controller is killed at every write that it makes: before the write has arrived, and before its answer has. Then
//! another one is started, and whatever the first one left, every promise is kept.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, Consistency},
    pod_notification::Executor,
    words::condition,
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        api_proxy::{ApiProxy, Cut, Fate},
        installation::Installation,
        notifications::{condition_of, state, status},
        process::Process,
    },
};
use kube::ResourceExt;
use serde_json::json;

use crate::two_pods;

/// Far more than a snapshot takes: whoever comes here writes without end.
const MOST_WRITES: usize = 100;

/// Nothing was written for this long after each kill, and for that long at the end.
const QUIET: Duration = Duration::from_millis(500);
const LONG_QUIET: Duration = Duration::from_secs(5);

pub(crate) async fn wherever_the_controller_is_killed_every_promise_is_kept(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    two_pods::start(&ctx).await?;
    let agent = match executor {
        Executor::Api => None,
        Executor::Agent => Some(installation.agent().await?),
    };
    let mut running = installation.controller_behind_proxy(executor).await?;
    for (fate, word) in [(Fate::NeverArrives, "never-arrives"), (Fate::AnswerLost, "answer-lost")] {
        for at in 1.. {
            ensure!(at <= MOST_WRITES, "it writes without end: {:#?}", running.1.writes());
            let round = format!("{word}-{at}");
            let begun = Instant::now();
            two_pods::create_templates(&ctx, &round, two_pods::EXPIRATION).await?;
            running.1.cut(Cut { of: "", at, fate });
            two_pods::begin(&ctx, &round, json!({})).await?;
            let came_to_its_end = tokio::select! {
                () = running.1.cut_made() => false,
                ended = undisturbed(&ctx, &running.1, &round) => { ended?; true }
            };
            let writes = running.1.writes();
            if !came_to_its_end {
                running = replace(&installation, executor, running).await?;
            }
            let outcome = promises_kept(&ctx, &running.1, &round);
            let outcome = outcome.await.with_context(|| format!("`{round}`, killed at the last of {writes:#?}"))?;
            eprintln!("{round}: {} -> {} in {:?}", writes[writes.len() - 1], shown(&outcome), begun.elapsed());
            if came_to_its_end {
                break;
            }
        }
    }
    let (controller, proxy) = running;
    proxy.count();
    proxy.quiet_for(LONG_QUIET).await?;
    ensure!(proxy.writes().is_empty(), "there was nothing to do: {:?}", proxy.writes());
    controller.stop().await?;
    match agent {
        Some(agent) => agent.stop().await,
        None => Ok(()),
    }
}

/// No write was chosen any more: it comes to a good end.
async fn undisturbed(ctx: &Ctx, proxy: &ApiProxy, snapshot: &str) -> Result<()> {
    let ended = two_pods::ended(ctx, snapshot).await?;
    proxy.quiet_for(QUIET).await?;
    ensure!(ended.consistency == Some(Consistency::Application), "nobody was killed: {ended:?}");
    Ok(())
}

async fn replace(
    installation: &Installation,
    executor: Executor,
    (killed, proxy): (Process, ApiProxy),
) -> Result<(Process, ApiProxy)> {
    killed.kill().await?;
    drop(proxy);
    installation.bury_leader().await?;
    installation.controller_behind_proxy(executor).await
}

async fn promises_kept(ctx: &Ctx, proxy: &ApiProxy, snapshot: &str) -> Result<ApplicationSnapshotStatus> {
    let ended = two_pods::ended(ctx, snapshot).await?;
    let is_true = |kind: &str| ended.conditions.iter().any(|one| one.type_ == kind && one.status == "True");
    ensure!(is_true(condition::COMPLETE) != is_true(condition::FAILED), "not one of both: {ended:?}");
    two_pods::thawed(ctx, snapshot).await?;
    nothing_open(ctx).await?;
    proxy.quiet_for(QUIET).await?;
    let afterwards: ApplicationSnapshot = ctx.api().get(snapshot).await?;
    ensure!(two_pods::status(&afterwards) == ended, "it ended as {ended:?}, and then became {afterwards:?}");
    two_pods::thawed(ctx, snapshot).await?;
    two_pods::honest(ctx, snapshot, &ended).await?;
    ctx.delete_and_see_gone::<ApplicationSnapshot>(snapshot).await?;
    everything_gone(ctx).await?;
    two_pods::thawed(ctx, snapshot).await?;
    Ok(ended)
}

/// Waits until nothing is owed by any PodNotification.
async fn nothing_open(ctx: &Ctx) -> Result<()> {
    let is_closed = |object: &PodNotification| {
        let undone = condition_of(object, condition::UNDONE).is_some_and(|(truth, _)| truth == "True");
        let owes_nothing = status(object).claim.is_none() || undone;
        state(object).is_terminal() && owes_nothing && object.finalizers().is_empty()
    };
    let mut watch = ctx.watch::<PodNotification>("").await?;
    watch.until(DEADLINE, "nothing is owed any more", |seen| seen.now.values().all(is_closed)).await.map(drop)
}

/// Waits until the hooks have gone with their snapshot, and the PodNotifications with their hooks.
async fn everything_gone(ctx: &Ctx) -> Result<()> {
    let mut hooks = ctx.watch::<ExecutionHook>("").await?;
    hooks.until(DEADLINE, "every hook is gone", |seen| seen.now.is_empty()).await?;
    let mut parts = ctx.watch::<PodNotification>("").await?;
    parts.until(DEADLINE, "every PodNotification is gone", |seen| seen.now.is_empty()).await.map(drop)
}

fn shown(status: &ApplicationSnapshotStatus) -> String {
    let why = status.trouble.as_ref().map(|trouble| trouble.reason.as_str()).unwrap_or_default();
    match status.consistency {
        Some(consistency) => format!("{:?}, {consistency:?} {why}", status.phase),
        None => format!("{:?} {why}", status.phase),
    }
}
