//! The fault run. While users create, thaw, delete and roll, every process of Boathook is killed, stopped and cut off, its
//! wall clock is stepped, the lease is deleted, and the disk of the agent is full. The faults stop, and then everything comes
//! to its end, the writes stop, and what the actions recorded in their own pods shows that every promise was kept.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use boathook_api::{ApplicationSnapshot, ExecutionHook, PodNotification, pod_notification::Executor};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{installation::Installation, recording::recorder, rollouts::Web, traces::traced},
    measure::Measure,
    random::Random,
    watch::{Seen, Watchable},
};
use futures::{future::try_join_all, try_join};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;

use crate::{
    combined::{
        faults::{Machinery, delete_lease_again_and_again},
        load::{BOXES, Snapshots, deployments, hooks, no_overlap, notifications, run_log},
    },
    notifications, rollouts,
    rollouts::walk::{User, comes_to_an_end, ends_as_promised, hooks_run_once, nobody_writes},
    snapshots::{faults::nothing_owed, two_pods},
};

/// When everything has come to its end, nothing is written for this long.
const QUIET: Duration = Duration::from_secs(5);

pub(crate) async fn promises_are_kept_while_faults_come(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let mut random = Random::of_the_environment()?;
    let mut machinery = Machinery::start(&installation, executor, &mut random).await?;
    two_pods::start(&ctx).await?;
    for pod in BOXES {
        ctx.run_pod(traced(recorder(&ctx, pod)).build()).await?;
    }
    run_log(&ctx).await?;
    let mut users = Vec::new();
    for (deployment, hooks) in deployments(&ctx) {
        users.push(User::of(Web::adopted(&ctx, deployment, hooks).await?, random.another()));
    }

    let (begun, time) = (Instant::now(), Measure::from_environment()?.faults());
    let until = begun + time;
    let walks = try_join_all(users.into_iter().map(|user| user.walk(|_| Instant::now() < until)));
    let load = (random.another(), random.another(), random.another(), random.another());
    let (rounds, hooks, snapshots, webs, (), ()) = try_join!(
        notifications(&ctx, load.0, until),
        hooks(&ctx, load.1, until),
        Snapshots::take_again_and_again(&ctx, load.2, until),
        walks,
        delete_lease_again_and_again(&installation, load.3, until),
        machinery.fail_until(until),
    )?;
    eprintln!("the faults stop after {:?}", begun.elapsed());

    for web in &webs {
        comes_to_an_end(web).await?;
    }
    let ended = notifications::faults::all_ended(&ctx, rounds * notifications::faults::EACH.len()).await?;
    nothing_owed(&ctx).await?;
    let hooks = hooks.all_gone(&ctx).await?;
    try_join!(
        nobody_writes(&webs),
        is_quiet::<PodNotification>(&ctx),
        is_quiet::<ExecutionHook>(&ctx),
        is_quiet::<ApplicationSnapshot>(&ctx),
    )?;
    eprintln!("quiet after {:?}", begun.elapsed());

    let traces = ctx.traces(&BOXES).await?;
    notifications::faults::check(&ended, &traces, executor)?;
    hooks.check(&traces, executor)?;
    snapshots.check(&ctx, executor).await?;
    no_overlap(&ctx).await?;
    for web in webs {
        ends_as_promised(&web)?;
        hooks_run_once(&web.finish().await?)?;
    }
    rollouts::faults::let_all_go(&ctx).await?;
    machinery.stop().await
}

/// Waits until no object of this kind has changed for a while.
async fn is_quiet<K>(ctx: &Ctx) -> Result<()>
where
    K: Watchable + Resource<Scope = NamespaceResourceScope>,
{
    let mut watch = ctx.watch::<K>("").await?;
    let quiet = async {
        let mut known = 0;
        loop {
            let is_new = |seen: &Seen<K>| seen.history().map_or(0, <[_]>::len) > known;
            match tokio::time::timeout(QUIET, watch.until(DEADLINE, "anything changes", is_new)).await {
                Ok(changed) => known = changed?.history()?.len(),
                Err(_) => return anyhow::Ok(()),
            }
        }
    };
    let quiet = tokio::time::timeout(DEADLINE, quiet).await;
    quiet.with_context(|| format!("{} are written without end", K::plural(&())))?
}
