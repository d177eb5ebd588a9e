//! The controller is killed at writes that it makes for a marked VolumeSnapshot: while a request waits for its answer, and
//! after that was let through. Then another one is started, and every promise is kept.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use boathook_api::{ApplicationSnapshot, pod_notification::Executor, words::condition};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        api_proxy::{ApiProxy, Cut, Fate},
        application_snapshots::status,
        conditions::is_true,
        installation::Installation,
    },
    measure::Measure,
    random::Random,
    snapshots::VolumeSnapshot,
};
use kube::{
    ResourceExt,
    api::{ListParams, PostParams},
};
use tokio::task::JoinHandle;

use crate::snapshots::{
    door::{annotated, intent_of},
    faults::{FEWER, QUIET, everything_gone, is_let_go, is_same_end, nothing_owed, replace, shown},
    two_pods,
};

/// What is written for marked snapshots only: each is tried, arriving and not.
const OWN: [&str; 2] = ["POST applicationsnapshots", "PATCH volumesnapshots"];

/// What each of two PreActions may take of the time that a request has.
const SECONDS: i32 = 9;

pub(crate) async fn killed_at_any_write_of_a_marked_snapshot_every_promise_is_kept(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    two_pods::start(&ctx).await?;
    let mut watched = installation.controller_behind_proxy(executor).await?;
    let (cuts, surely_reached) = cuts_of_a_whole_run(&ctx, &watched.1).await?;
    let mut killed = 0;
    for (round, cut) in cuts.iter().enumerate() {
        let (begun, name) = (Instant::now(), format!("round-{round}"));
        watched.1.cut(*cut);
        let asked = ask(&ctx, &name).await?;
        let is_cut = tokio::select! {
            made = watched.1.cut_made() => made.map(|()| true)?,
            ended = comes_to_its_end(&ctx, &name) => ended.map(|()| false)?,
        };
        let writes = watched.1.writes();
        match is_cut {
            true => watched = replace(&installation, executor, watched).await?,
            false => watched.1.count(),
        }
        killed += usize::from(is_cut);
        let kept = promises_kept(&ctx, &name, asked.await?).await;
        let ended = kept.with_context(|| format!("killed at the last of these writes: {writes:#?}"))?;
        eprintln!("{cut:?} {}: {ended} ({:?})", writes.last().map_or("", String::as_str), begun.elapsed());
    }
    // How many writes there are depends on timing, too: half of those that should be reached is enough.
    ensure!(2 * killed >= surely_reached, "of {} writes it was killed at {killed}", cuts.len());
    watched.0.stop().await
}

/// Where to kill it, by what it writes when nothing is cut, and how many of the cuts every run reaches. One run may have
/// fewer writes than another, and so not reach the last ones.
async fn cuts_of_a_whole_run(ctx: &Ctx, proxy: &ApiProxy) -> Result<(Vec<Cut>, usize)> {
    proxy.count();
    let asked = ask(ctx, "whole").await?;
    comes_to_its_end(ctx, "whole").await?;
    proxy.quiet_for(QUIET).await?;
    let writes = proxy.writes();
    eprintln!("a whole run: {writes:#?}");
    promises_kept(ctx, "whole", asked.await?).await?;
    for own in OWN {
        ensure!(writes.iter().any(|write| write.starts_with(own)), "there is no `{own}`: {writes:#?}");
    }
    let own = OWN.into_iter().flat_map(|of| [Fate::NeverArrives, Fate::AnswerLost].map(|fate| Cut { of, at: 1, fate }));
    let fate = |at| if at % 2 == 0 { Fate::NeverArrives } else { Fate::AnswerLost };
    // The first is one of its own.
    let any = Random::of_the_environment()?.some_up_to(writes.len(), Measure::from_environment()?.writes());
    let any: Vec<_> = any.into_iter().filter(|at| *at > 1).collect();
    let surely_reached = 2 * OWN.len() + any.iter().filter(|at| **at + FEWER <= writes.len()).count();
    let any = any.into_iter().map(|at| Cut { of: "", at, fate: fate(at) });
    Ok((own.chain(any).collect(), surely_reached))
}

/// Asks for a marked snapshot of this name, and does not wait for the answer.
async fn ask(ctx: &Ctx, name: &str) -> Result<JoinHandle<kube::Result<VolumeSnapshot>>> {
    two_pods::create_templates_within(ctx, name, Some(two_pods::LONG), SECONDS).await?;
    let infos = &two_pods::snapshot(name)["executionHookInfos"];
    let (api, marked) = (ctx.api(), annotated(name, &infos.to_string()));
    Ok(tokio::spawn(async move { api.create(&PostParams::default(), &marked).await }))
}

/// The chosen write was never made, and so nobody is killed.
async fn comes_to_its_end(ctx: &Ctx, name: &str) -> Result<()> {
    let intent = intent_of(ctx, name).await?;
    ctx.over(&intent).await?;
    is_let_go(ctx, &intent).await
}

/// Returns how it ended.
async fn promises_kept(ctx: &Ctx, name: &str, answer: kube::Result<VolumeSnapshot>) -> Result<String> {
    match answer {
        Ok(_) => let_through(ctx, name).await,
        Err(kube::Error::Api(_)) => refused(ctx, name).await,
        Err(error) => Err(error).context("the API server did not answer"),
    }
}

async fn let_through(ctx: &Ctx, name: &str) -> Result<String> {
    let intent = intent_of(ctx, name).await?;
    let ended = status(&ctx.over(&intent).await?);
    let says = |kind: &str| is_true(&ended.conditions, kind);
    ensure!(says(condition::COMPLETE) != says(condition::FAILED), "it is not one of both: {ended:?}");
    two_pods::is_thawed(ctx, name).await?;
    nothing_owed(ctx).await?;
    let is_free = |object: &ApplicationSnapshot| object.finalizers().is_empty();
    let later = status(&ctx.watch_until(DEADLINE, &intent, "is let go", is_free).await?);
    ensure!(is_same_end(&ended, &later), "it had ended as {ended:?}, and is now {later:?}");
    // Nobody vouches for what was not seen cut.
    let consistency = ended.consistency.map_or("Crash", |consistency| consistency.as_str());
    assert_eq!(ctx.consistency_mark(name).await?.as_deref(), Some(consistency));
    two_pods::is_honest(ctx, name, &ended).await?;
    ctx.delete_and_see_gone::<VolumeSnapshot>(name).await?;
    ctx.gone::<ApplicationSnapshot>(&intent).await?;
    everything_gone(ctx).await?;
    two_pods::is_thawed(ctx, name).await?;
    Ok(shown(&ended))
}

/// What was begun for it takes itself back when the time for the cut is over, or as soon as it is deleted.
async fn refused(ctx: &Ctx, name: &str) -> Result<String> {
    let stored = ctx.api::<VolumeSnapshot>().get_opt(name).await?;
    ensure!(stored.is_none(), "it was refused, and is there: {stored:?}");
    for intent in ctx.api::<ApplicationSnapshot>().list(&ListParams::default()).await? {
        ctx.delete_and_see_gone::<ApplicationSnapshot>(&intent.name_any()).await?;
    }
    everything_gone(ctx).await?;
    two_pods::is_thawed(ctx, name).await?;
    Ok("refused".to_owned())
}
