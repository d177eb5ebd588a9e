//! Sessions whose executor goes away: they end with it, and that is told and undone.

use std::time::Duration;

use anyhow::{Result, ensure};
use boathook_api::{PodNotification, pod_notification::Executor, words::reason};
use boathook_tests::{
    Ctx, DEADLINE, ON_TIME,
    boathook::{
        host::{a_long_time, processes_with},
        installation::Installation,
        notifications::undone,
        recording::{freezes_at, record},
        running::Running,
    },
};
use kube::ResourceExt;
use serde_json::json;

use crate::notifications::held::{held, held_by, hold, is, lock, no_longer_held, thaw, timed_lock};

pub(crate) async fn a_session_ends_with_its_executor_and_the_next_one_undoes_it(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    let name = held_by(&ctx, hold(&lock(), json!({"action": thaw()}))).await?;
    let other = ctx.notify("hold", hold("echo READY; read -r word", json!({}))).await?.name_any();
    let left = running.kill_executor(&installation).await?;
    // Its input has ended, and so has it.
    assert_eq!(ctx.records_lines("box", 2).await?, ["freeze", "ended "]);
    let running = Running::revive(&installation, left).await?;
    no_longer_held(&ctx, &name, reason::SESSION_LOST).await?;
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended ", "thaw"]);
    no_longer_held(&ctx, &other, reason::SESSION_LOST).await?;
    ctx.undone(&other, reason::SESSION_ENDED).await?;
    running.stop().await
}

pub(crate) async fn a_process_that_is_told_to_stop_releases_what_it_holds(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let Running { controller, agent } = Running::start(&installation, executor).await?;
    let name = held_by(&ctx, hold(&lock(), json!({"action": thaw()}))).await?;
    // The agent first: the other one lets the object go.
    if let Some(agent) = agent {
        agent.stop().await?;
    }
    controller.stop().await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE", "thaw"]);
    let object: PodNotification = ctx.api().get(&name).await?;
    // Nobody had asked for it.
    assert_eq!(held(&object), is("False", reason::SESSION_LOST));
    assert_eq!(undone(&object).as_deref(), Some(reason::UNDO_SUCCEEDED));
    // Whoever comes next has nothing to undo, and lets it go.
    let running = Running::start(&installation, executor).await?;
    ctx.delete_and_see_gone::<PodNotification>(&name).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE", "thaw"]);
    running.stop().await
}

/// It keeps its stream while it is stopped, and the next leader does not wait for that.
pub(crate) async fn a_leader_that_was_stopped_past_its_lease_releases_what_it_holds(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let first = installation.controller(executor, &[]).await?;
    let name = held_by(&ctx, hold(&lock(), json!({}))).await?;
    first.pause()?;
    let second = installation.controller(executor, &[]).await?;
    no_longer_held(&ctx, &name, reason::SESSION_LOST).await?;
    ctx.undone(&name, reason::SESSION_ENDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    first.resume()?;
    assert_eq!(ctx.records_lines("box", 2).await?, ["freeze", "ended RELEASE"]);
    first.stop().await?;
    second.stop().await
}

pub(crate) async fn an_agent_releases_on_time_while_the_api_server_is_gone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    const TIME: Duration = Duration::from_secs(15);
    let controller = installation.controller(executor, &[]).await?;
    let (agent, mut relay) = installation.agent_behind_relay().await?;
    let name = held_by(&ctx, hold(&timed_lock(), json!({"afterSeconds": TIME.as_secs()}))).await?;
    relay.close().await?;
    let lines = ctx.records_lines("box", 2).await?;
    let (freeze, thaw) = freezes_at(&lines)?;
    let released_after = thaw.saturating_sub(freeze);
    ensure!(released_after <= TIME + ON_TIME, "released late, after {released_after:?}");
    let seen: PodNotification = ctx.api().get(&name).await?;
    assert_eq!(held(&seen), is("True", reason::SESSION_OPEN));
    // It reports when it can again.
    relay.open().await?;
    let object = ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(held(&object), is("False", reason::RELEASED));
    Running { controller, agent: Some(agent) }.stop().await
}

/// Its notes are enough to end what was held, and its ledger to undo it.
pub(crate) async fn what_a_killed_agent_held_is_ended_and_undone_without_an_api_server(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let (agent, mut relay) = installation.agent_behind_relay().await?;
    let long = a_long_time();
    let deaf = format!("{}; echo READY; sleep {long}; {}", record("freeze"), record("late"));
    let name = held_by(&ctx, hold(&deaf, json!({"action": thaw()}))).await?;
    relay.close().await?;
    agent.kill().await?;
    ensure!(!processes_with(&long)?.is_empty(), "it ended with its agent: there is nothing to try");
    let agent = installation.agent_again().await?;
    assert_eq!(ctx.records_lines("box", 2).await?, ["freeze", "thaw"]);
    ensure!(processes_with(&long)?.is_empty(), "what was held is still running");
    relay.open().await?;
    let object = ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(held(&object), is("False", reason::SESSION_LOST));
    let gone = |object: &PodNotification| object.finalizers().is_empty();
    ctx.watch_until(DEADLINE, &name, "is held by nothing", gone).await?;
    Running { controller, agent: Some(agent) }.stop().await
}
