//! While something is frozen the API server is gone, or an answer is: it is thawed all the same.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use boathook_api::{
    ExecutionHook,
    application_snapshot::Consistency,
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE, ON_TIME,
    boathook::{
        application_snapshots::{by, failed_for, failure, is_complete, of_data},
        conditions,
        execution_hooks::{condition_of, freezing, mains, shell, shell_within, status, with},
        installation::Installation,
        recording::{freezes_at, record, timed_record},
        running::Running,
    },
    measure::Measure,
    poll::Look,
};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::snapshots::two_pods;

/// Nobody reaches it, neither controller nor agent. The cut hangs, so only the expiry thaws.
pub(crate) async fn what_is_frozen_when_the_api_server_goes_is_thawed_on_time(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    const EXPIRATION: Duration = Duration::from_secs(15);
    let outage = Measure::from_environment()?.api_server_outage();
    let (controller, mut of_controller) = installation.controller_behind_proxy(executor).await?;
    let (agent, mut of_agent) = installation.agent_behind_relay().await?;
    ctx.run_box_on_data().await?;
    let (freeze, thaw) = (shell(&timed_record("freeze")), shell(&timed_record("thaw")));
    let template = json!({"preAction": freeze, "postAction": thaw, "expirationSeconds": EXPIRATION.as_secs()});
    ctx.create_template("quiet", template).await?;
    let storage = ctx.silent_storage().await?;
    ctx.create_application_snapshot("nightly", with(of_data([by("quiet")]), storage.fields())).await?;
    storage.asked_for("nightly").await?;

    of_controller.close().await;
    of_agent.close().await?;
    let gone = Instant::now();
    let lines = ctx
        .poll_until(DEADLINE, "the API server was gone long enough", async || {
            let lines = ctx.recorded("box").await?;
            Ok(if gone.elapsed() >= outage { Look::Done(lines) } else { Look::NotYet(format!("{lines:?}")) })
        })
        .await?;
    let (freeze, thaw) = freezes_at(&lines)?;
    let thawed_after = thaw.saturating_sub(freeze);
    eprintln!("thawed {thawed_after:?} after the freeze");
    // The time counts from the claim, and a busy machine takes a while from there to the freeze.
    ensure!(thawed_after >= EXPIRATION / 2, "thawed early, after {thawed_after:?}");
    ensure!(thawed_after <= EXPIRATION + ON_TIME, "thawed late, after {thawed_after:?}");

    of_controller.open().await?;
    of_agent.open().await?;
    failed_for(&ctx.over("nightly").await?, reason::EXPIRED)?;
    ensure!(ctx.recorded("box").await? == lines, "it was frozen or thawed again");
    controller.stop().await?;
    agent.stop().await
}

/// The PreAction ran to its end, and nobody died; but of the stream that would have said so nothing came back.
pub(crate) async fn a_freeze_whose_answer_is_lost_is_taken_back(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let (controller, proxy) = installation.controller_behind_proxy(executor).await?;
    two_pods::start(&ctx).await?;
    for (name, on_hook_failure) in [("strict", "Fail"), ("lenient", "CrashConsistent")] {
        two_pods::create_templates(&ctx, name, None).await?;
        proxy.lose_next_stream();
        let spec = with(two_pods::snapshot(name), json!({"onHookFailure": on_hook_failure}));
        let ended = ctx.take(name, spec).await?;
        match name {
            "strict" => failed_for(&ended, reason::HOOK_FAILED)?,
            _ => is_complete(&ended, Consistency::Crash)?,
        }
        let (_, why) = failure(&ended).unwrap_or_default();
        ensure!(why.contains("pod `one`") && why.contains("without a status"), "it does not say what happened: {why}");
        assert_eq!(two_pods::recorded(&ctx, "one", name, "one").await?, ["frozen", "thawed"]);
        assert_eq!(two_pods::recorded(&ctx, "two", name, "two").await?, [] as [&str; 0], "the next one was frozen");
    }
    controller.stop().await
}

/// The agent is killed while its node is frozen. The leader reports that the thaw is overdue; the next agent thaws.
pub(crate) async fn silent_agent_is_reported(ctx: Ctx, installation: Installation, executor: Executor) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let agent = installation.agent().await?;
    ctx.run_box_on_data().await?;
    let thaw = json!({"postAction": shell_within(&record("thaw"), 1)});
    ctx.freeze("nightly", with(with(freezing(), thaw), mains(["box"]))).await?;
    agent.kill().await?;
    ctx.request_thaw("nightly").await?;
    let failed = ctx.hook_says("nightly", condition::THAWED, reason::THAW_FAILED).await?;
    let message = conditions::message(&status(&failed).conditions, condition::THAWED);
    ensure!(message.contains("has not reported the undo"), "it does not say why: {message}");
    let frozen = condition_of(&failed, condition::FROZEN).map(|(status, _)| status);
    assert_eq!(frozen.as_deref(), Some("Unknown"));
    ctx.event_of::<ExecutionHook>("nightly", reason::THAW_FAILED).await?;
    ctx.event_of::<Pod>("box", reason::UNDO_FAILED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    let agent = installation.agent().await?;
    ctx.thawed("nightly").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Running { controller, agent: Some(agent) }.stop().await
}
