//! A process of Boathook is away: killed, stopped, cut off. What is owed is undone when it should be, and what was
//! called off never runs.

use std::time::Duration;

use anyhow::{Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, Executor},
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE, ON_TIME,
    boathook::{
        host::a_long_time,
        installation::Installation,
        notifications::{condition_of, error_of, status, succeeded},
        recording::{freezer, freezes_at, record, recorder, timed_freezer},
        running::Running,
    },
    poll::Look,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::json;

use crate::notifications::undo::{EXPIRY, freeze, freeze_for};

/// The agent needs no controller to undo; the executor `api` is the controller, and does it when it is back.
pub(crate) async fn what_is_asked_while_the_controller_is_down_is_undone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze()).await?;
    succeeded(&frozen)?;
    running.controller.kill().await?;
    installation.bury_leader().await?;
    ctx.request_undo(&frozen.name_any()).await?;
    match executor {
        Executor::Agent => ctx.records("box", "thaw").await?,
        Executor::Api => assert_eq!(ctx.recorded("box").await?, ["freeze"]),
    }
    let controller = installation.controller(executor, &[]).await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ctx.delete_and_see_gone::<PodNotification>(&frozen.name_any()).await?;
    Running { controller, agent: running.agent }.stop().await
}

pub(crate) async fn what_expires_while_its_executor_is_down_is_undone_when_it_is_back(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze_for(EXPIRY)).await?;
    succeeded(&frozen)?;
    let left = running.kill_executor(&installation).await?;
    let claimed = status(&frozen).claim.map_or(Timestamp::now(), |claim| claim.time.0);
    let expiry = claimed + SignedDuration::try_from(EXPIRY)?;
    ctx.poll_until(DEADLINE, "the undo is overdue", async || {
        let now = Timestamp::now();
        Ok(if now > expiry { Look::Done(()) } else { Look::NotYet(format!("it is {now}")) })
    })
    .await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    let running = Running::revive(&installation, left).await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    running.stop().await
}

/// Nobody knows how far it came: it is not run again, and taken back.
pub(crate) async fn a_handler_whose_executor_was_killed_is_unknown_and_undone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    let long = format!("{}; exec sleep {}", record("freeze"), a_long_time());
    ctx.run_pod(
        recorder(&ctx, "box").notifier("main", "freeze", &long).notifier("main", "thaw", &record("thaw")).build(),
    )
    .await?;
    let name = ctx.begin("freeze", freeze()).await?;
    ctx.records("box", "freeze").await?;
    let left = running.kill_executor(&installation).await?;
    let running = Running::revive(&installation, left).await?;
    let (kind, message) = error_of(&ctx.ended(&name).await?)?;
    assert_eq!(kind, ErrorType::OutcomeUnknown, "{message}");
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    running.stop().await
}

pub(crate) async fn a_process_that_is_told_to_stop_lets_its_handlers_end(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    let script = format!("{}; sleep 3; {}", record("begun"), record("ended"));
    ctx.run_pod(recorder(&ctx, "box").notifier("main", "slow", &script).build()).await?;
    let name = ctx.begin("slow", json!({"podName": "box", "notifier": "slow"})).await?;
    ctx.records("box", "begun").await?;
    running.stop().await?;
    let ended: PodNotification = ctx.api().get(&name).await?;
    succeeded(&ended)?;
    assert_eq!(ctx.recorded("box").await?, ["begun", "ended"]);
    Ok(())
}

pub(crate) async fn with_the_gate_off_nothing_runs_but_what_is_owed_is_undone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze()).await?;
    succeeded(&frozen)?;
    running.controller.stop().await?;

    let controller = installation.controller(executor, &["--feature-gates", "ContainerNotifier=false"]).await?;
    let refused = ctx.notify("freeze", freeze()).await?;
    let (kind, message) = error_of(&refused)?;
    assert_eq!(kind, ErrorType::Unsupported, "{message}");
    ensure!(message.contains("ContainerNotifier"), "{message}");
    let accepted = condition_of(&refused, condition::ACCEPTED);
    assert_eq!(accepted, Some(("False".to_owned(), reason::FEATURE_DISABLED.to_owned())));
    ctx.request_undo(&frozen.name_any()).await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Running { controller, agent: running.agent }.stop().await
}

/// Leadership is judged by one's own clock: whoever was stopped past it does nothing when it goes on.
pub(crate) async fn a_leader_that_was_stopped_past_its_lease_runs_nothing_twice(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let first = installation.controller(executor, &[]).await?;
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    first.pause()?;
    let name = ctx.begin("freeze", freeze()).await?;
    let second = installation.controller(executor, &[]).await?;
    succeeded(&ctx.ended(&name).await?)?;
    first.resume()?;
    ctx.request_undo(&name).await?;
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    // Both are well: one leads, the other waits, and both end when they are told to.
    first.stop().await?;
    second.stop().await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn an_agent_undoes_on_time_while_the_api_server_is_gone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    const TIME: Duration = Duration::from_secs(15);
    let controller = installation.controller(executor, &[]).await?;
    let (agent, mut relay) = installation.agent_behind_relay().await?;
    ctx.run_pod(timed_freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze_for(TIME)).await?;
    succeeded(&frozen)?;
    relay.close().await?;
    let lines = ctx.records_lines("box", 2).await?;
    let (freeze, thaw) = freezes_at(&lines)?;
    let thawed_after = thaw.saturating_sub(freeze);
    ensure!(thawed_after <= TIME + ON_TIME, "thawed late, after {thawed_after:?}");
    let seen: PodNotification = ctx.api().get(&frozen.name_any()).await?;
    assert_eq!(condition_of(&seen, condition::UNDONE).map(|(_, why)| why).as_deref(), Some(reason::ARMED));
    // It reports when it can again.
    relay.open().await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    ensure!(ctx.recorded("box").await? == lines, "it was undone again");
    Running { controller, agent: Some(agent) }.stop().await
}

pub(crate) async fn an_agent_that_was_killed_undoes_without_an_api_server_too(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let (agent, mut relay) = installation.agent_behind_relay().await?;
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze_for(EXPIRY)).await?;
    succeeded(&frozen)?;
    relay.close().await?;
    agent.kill().await?;
    let agent = installation.agent_again().await?;
    ctx.records("box", "thaw").await?;
    relay.open().await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Running { controller, agent: Some(agent) }.stop().await
}

pub(crate) async fn an_agent_that_was_away_never_runs_what_was_revoked(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let agent = installation.agent().await?;
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    agent.pause()?;
    let name = ctx.begin("freeze", freeze()).await?;
    let is_accepted = |object: &PodNotification| status(object).executor == Some(Executor::Agent);
    ctx.watch_until(DEADLINE, &name, "is accepted", is_accepted).await?;
    ctx.request_undo(&name).await?;
    let (kind, message) = error_of(&ctx.ended(&name).await?)?;
    assert_eq!(kind, ErrorType::Revoked, "{message}");
    agent.resume()?;
    // What comes after is run, so by then the agent has seen what came before.
    succeeded(&ctx.tell("box", "thaw").await?)?;
    assert_eq!(ctx.recorded("box").await?, ["thaw"]);
    Running { controller, agent: Some(agent) }.stop().await
}
