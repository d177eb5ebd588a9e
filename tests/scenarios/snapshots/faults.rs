//! The controller is killed at every write that it makes. Then another one is started, and whatever the first one left,
//! every promise is kept.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, Consistency},
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_decide::pod_notification::last_round;
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        api_proxy::{ApiProxy, Cut, Fate},
        application_snapshots::{self, is_complete},
        conditions::is_true,
        installation::Installation,
        notifications::{condition_of, may_be_undone_once_more, state, status, undone},
        process::Process,
    },
    measure::Measure,
    random::Random,
};
use kube::ResourceExt;

use crate::snapshots::two_pods;

/// Far more than a snapshot takes: whoever comes here writes without end.
const MOST_WRITES: usize = 100;

/// Two changes that are looked at together become one write: so much may one run have fewer than another.
pub(crate) const FEWER: usize = 5;

/// Nothing is written for this long when everything is done; and, in the end, for that long.
pub(crate) const QUIET: Duration = Duration::from_millis(500);
const LONG_QUIET: Duration = Duration::from_secs(5);

/// A controller, and the proxy that it writes through.
type Watched = (Process, ApiProxy);

/// It was to write something, and never did.
pub(crate) async fn killed_before_any_write_arrives_every_promise_is_kept(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    kill_at_every_write(&ctx, &installation, executor, Fate::NeverArrives, Some(two_pods::LONG)).await
}

/// It did write, and never knew. The hooks never expire, so a successor may vouch for what it did not begin: the copies
/// say whether it was right.
pub(crate) async fn killed_before_any_answer_every_promise_is_kept(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    kill_at_every_write(&ctx, &installation, executor, Fate::AnswerLost, None).await
}

async fn kill_at_every_write(
    ctx: &Ctx,
    installation: &Installation,
    executor: Executor,
    fate: Fate,
    expiration: Option<i32>,
) -> Result<()> {
    two_pods::start(ctx).await?;
    let agent = match executor {
        Executor::Api => None,
        Executor::Agent => Some(installation.agent().await?),
    };
    let mut watched = installation.controller_behind_proxy(executor).await?;
    let whole = writes_of_a_whole_run(ctx, &watched.1, expiration).await?;
    let mut writes = Random::of_the_environment()?.some_up_to(whole, Measure::from_environment()?.writes());
    let surely_reached = writes.iter().filter(|at| **at + FEWER <= whole).count();
    // A last time undisturbed: what the killed ones left is in nothing's way.
    writes.push(MOST_WRITES);
    let (mut undisturbed, mut killed) = (false, 0);
    for at in writes {
        let (begun, name) = (Instant::now(), format!("at-{at}"));
        two_pods::create_templates(ctx, &name, expiration).await?;
        watched.1.cut(Cut { of: "", at, fate });
        ctx.create_application_snapshot(&name, two_pods::snapshot(&name)).await?;
        undisturbed = tokio::select! {
            made = watched.1.cut_made() => made.map(|()| false)?,
            ended = comes_to_a_good_end(ctx, &watched.1, &name) => ended.map(|()| true)?,
        };
        let writes = watched.1.writes();
        match undisturbed {
            true => watched.1.count(),
            false => watched = replace(installation, executor, watched).await?,
        }
        killed += usize::from(!undisturbed);
        let kept = promises_kept(ctx, &watched.1, &name).await;
        let ended = kept.with_context(|| format!("killed at the last of these writes: {writes:#?}"))?;
        eprintln!("{at} {}: {} ({:?})", writes.last().map_or("", String::as_str), shown(&ended), begun.elapsed());
    }
    ensure!(undisturbed, "it writes without end: {:#?}", watched.1.writes());
    // How many writes there are depends on timing, too: half of those that should be reached is enough.
    ensure!(2 * killed >= surely_reached, "of {whole} writes it was killed at {killed}");
    let (controller, proxy) = watched;
    // What came after the last status is written by then.
    proxy.quiet_for(LONG_QUIET).await?;
    proxy.count();
    proxy.quiet_for(LONG_QUIET).await?;
    ensure!(proxy.writes().is_empty(), "there was nothing to write: {:#?}", proxy.writes());
    controller.stop().await?;
    match agent {
        Some(agent) => agent.stop().await,
        None => Ok(()),
    }
}

/// How many writes a snapshot takes when nobody stands in the way.
async fn writes_of_a_whole_run(ctx: &Ctx, proxy: &ApiProxy, expiration: Option<i32>) -> Result<usize> {
    two_pods::create_templates(ctx, "whole", expiration).await?;
    proxy.count();
    ctx.create_application_snapshot("whole", two_pods::snapshot("whole")).await?;
    comes_to_a_good_end(ctx, proxy, "whole").await?;
    let writes = proxy.writes();
    eprintln!("a whole run: {writes:#?}");
    promises_kept(ctx, proxy, "whole").await?;
    Ok(writes.len())
}

/// The chosen write was never made, and so nobody is killed.
async fn comes_to_a_good_end(ctx: &Ctx, proxy: &ApiProxy, name: &str) -> Result<()> {
    is_complete(&ctx.over(name).await?, Consistency::Application)?;
    is_let_go(ctx, name).await?;
    proxy.quiet_for(QUIET).await
}

/// Waits until what is over has nothing left to write: its hooks, which did all that they should, are gone, and nothing
/// holds it any more.
pub(crate) async fn is_let_go(ctx: &Ctx, name: &str) -> Result<()> {
    everything_gone(ctx).await?;
    let is_free = |object: &ApplicationSnapshot| object.finalizers().is_empty();
    ctx.watch_until(DEADLINE, name, "is let go", is_free).await.map(drop)
}

pub(crate) async fn replace(
    installation: &Installation,
    executor: Executor,
    (killed, proxy): Watched,
) -> Result<Watched> {
    killed.kill().await?;
    drop(proxy);
    installation.bury_leader().await?;
    installation.controller_behind_proxy(executor).await
}

async fn promises_kept(ctx: &Ctx, proxy: &ApiProxy, name: &str) -> Result<ApplicationSnapshotStatus> {
    let ended = application_snapshots::status(&ctx.over(name).await?);
    let says = |kind: &str| is_true(&ended.conditions, kind);
    ensure!(says(condition::COMPLETE) != says(condition::FAILED), "it is not one of both: {ended:?}");
    two_pods::is_thawed(ctx, name).await?;
    nothing_owed(ctx).await?;
    proxy.quiet_for(QUIET).await?;
    let later: ApplicationSnapshot = ctx.api().get(name).await?;
    let later = application_snapshots::status(&later);
    ensure!(is_same_end(&ended, &later), "it had ended as {ended:?}, and is now {later:?}");
    two_pods::is_honest(ctx, name, &ended).await?;
    ctx.delete_and_see_gone::<ApplicationSnapshot>(name).await?;
    everything_gone(ctx).await?;
    two_pods::is_thawed(ctx, name).await?;
    Ok(ended)
}

/// Whether nothing changed since a snapshot ended. The last round of a PreAction that may have gone on changes what is said of
/// the thaw.
pub(crate) fn is_same_end(ended: &ApplicationSnapshotStatus, later: &ApplicationSnapshotStatus) -> bool {
    if may_freeze_again(ended) { outcome(later) == outcome(ended) } else { later == ended }
}

fn may_freeze_again(status: &ApplicationSnapshotStatus) -> bool {
    let mut thawed = status.conditions.iter().filter(|one| one.type_ == condition::THAWED);
    thawed.any(|thawed| thawed.reason == reason::PROCESS_MAY_REMAIN)
}

/// What became of a snapshot, without what is said of its thaw.
fn outcome(status: &ApplicationSnapshotStatus) -> ApplicationSnapshotStatus {
    let mut outcome = ApplicationSnapshotStatus { hooks: vec![], freeze_window: None, ..status.clone() };
    outcome.conditions.retain(|one| ![condition::FROZEN, condition::THAWED].contains(&one.type_.as_str()));
    outcome
}

/// Waits until no PodNotification owes anything.
pub(crate) async fn nothing_owed(ctx: &Ctx) -> Result<()> {
    let is_closed = |object: &PodNotification| {
        let undone = condition_of(object, condition::UNDONE).is_some_and(|(truth, _)| truth == "True");
        let owes = status(object).claim.is_some() && !undone;
        // One without an expiry is undone once more soon: before that the next round would count its writes.
        let expires = object.spec.undo.as_ref().is_some_and(|undo| undo.after_seconds.is_some());
        // One that was deleted is kept after that, for as long as this waits.
        let undone_once_more = object.metadata.deletion_timestamp.is_some() && last_round(object).is_none();
        let free = object.finalizers().is_empty() || (expires || undone_once_more) && is_kept_for_long(object);
        state(object).is_terminal() && !owes && free
    };
    let mut watch = ctx.watch::<PodNotification>("").await?;
    watch.until(DEADLINE, "no undo is owed", |seen| seen.now.values().all(is_closed)).await.map(drop)
}

/// Waits until the hooks have gone with their snapshot, and the PodNotifications with their hooks.
pub(crate) async fn everything_gone(ctx: &Ctx) -> Result<()> {
    let mut hooks = ctx.watch::<ExecutionHook>("").await?;
    hooks.until(DEADLINE, "every hook is gone", |seen| seen.now.is_empty()).await?;
    let mut parts = ctx.watch::<PodNotification>("").await?;
    let is_gone = "every PodNotification is gone";
    parts.until(DEADLINE, is_gone, |seen| seen.now.values().all(is_kept_for_long)).await.map(drop)
}

/// Whether it is undone, and to be undone once more: it may be held until then.
fn is_kept_for_long(object: &PodNotification) -> bool {
    undone(object).as_deref() == Some(reason::UNDO_SUCCEEDED) && may_be_undone_once_more(object)
}

pub(crate) fn shown(status: &ApplicationSnapshotStatus) -> String {
    let why = status.failure.as_ref().map(|failure| failure.reason.as_str()).unwrap_or_default();
    let consistency = status.consistency.map(|consistency| format!("{consistency:?} ")).unwrap_or_default();
    format!("{:?} {consistency}{why}", status.phase)
}
