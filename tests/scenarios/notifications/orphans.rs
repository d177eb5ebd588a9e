//! Commands whose agent goes away while they run: they end with it or by the next one, before anything is undone.

use anyhow::{Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, Executor},
    words::reason,
};
use boathook_tests::{
    Ctx,
    boathook::{
        host::{a_long_time, processes_with},
        installation::Installation,
        notifications::{error_of, succeeded},
        recording::{record, recorder},
    },
};
use kube::ResourceExt;

use crate::notifications::undo::freeze;

/// Begins a freeze of pod `box` that comes only after this long, and waits until it has begun.
async fn begin_slow_freeze(ctx: &Ctx, long: &str) -> Result<String> {
    let slow = format!("{}; sleep {long}; {}", record("begun"), record("froze"));
    let pod = recorder(ctx, "box").notifier("main", "freeze", &slow).notifier("main", "thaw", &record("thaw"));
    ctx.run_pod(pod.build()).await?;
    let name = ctx.begin("freeze", freeze()).await?;
    ctx.records("box", "begun").await?;
    Ok(name)
}

fn nothing_runs(long: &str) -> Result<()> {
    let running = processes_with(long)?;
    ensure!(running.is_empty(), "still running: {running:?}");
    Ok(())
}

/// Else it would freeze after the thaw, for ever.
pub(crate) async fn what_a_killed_agent_left_running_is_ended_before_it_is_undone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let agent = installation.agent().await?;
    let long = a_long_time();
    let name = begin_slow_freeze(&ctx, &long).await?;
    agent.kill().await?;
    ensure!(!processes_with(&long)?.is_empty(), "it ended with its agent: there is nothing to try");
    let agent = installation.agent().await?;
    nothing_runs(&long)?;
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["begun", "thaw"]);
    controller.stop().await?;
    agent.stop().await
}

/// The lock of a database is often held by a process that a handler leaves behind.
pub(crate) async fn what_a_handler_left_running_on_purpose_outlives_the_agent(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let agent = installation.agent().await?;
    let long = a_long_time();
    let leaving = format!("setsid sleep {long} </dev/null >/dev/null 2>&1 & {}", record("freeze"));
    let pod = recorder(&ctx, "box").notifier("main", "freeze", &leaving).notifier("main", "thaw", &record("thaw"));
    ctx.run_pod(pod.build()).await?;
    let frozen = ctx.notify("freeze", freeze()).await?;
    succeeded(&frozen)?;
    agent.kill().await?;
    let agent = installation.agent().await?;
    ctx.request_undo(&frozen.name_any()).await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    ensure!(!processes_with(&long)?.is_empty(), "it was ended");
    controller.stop().await?;
    agent.stop().await
}

pub(crate) async fn an_agent_that_is_told_to_stop_ends_what_does_not_end_by_itself(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let agent = installation.agent().await?;
    let long = a_long_time();
    let name = begin_slow_freeze(&ctx, &long).await?;
    agent.stop().await?;
    nothing_runs(&long)?;
    let (kind, message) = error_of(&ctx.api::<PodNotification>().get(&name).await?)?;
    assert_eq!(kind, ErrorType::OutcomeUnknown, "{message}");
    let agent = installation.agent().await?;
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    controller.stop().await?;
    agent.stop().await
}
