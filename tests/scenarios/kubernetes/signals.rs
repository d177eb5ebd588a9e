//! Signals to a container's first process: from its node, and only when it handles them.

use anyhow::{Result, ensure};
use boathook_actions::{Cancel, Outcome, place::cri::Options};
use boathook_api::pod_notification::ErrorType;
use boathook_tests::{
    Ctx, DEADLINE,
    pods::pod,
    work::{From, failure, signal},
};

pub(crate) async fn a_process_in_an_image_without_a_shell_is_told_to_reload(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("lantern", ctx.images().lantern)).await?;
    ctx.follow_log_until(DEADLINE, "lantern", "lit").await?;
    let told = ctx.carry_out(From::Node, &pod, &signal("SIGHUP")?).await?;
    assert_eq!(told.outcome, Outcome::Succeeded, "{told:?}");
    ctx.follow_log_until(DEADLINE, "lantern", "reloaded 1").await?;
    let told = ctx.carry_out(From::ApiServer, &pod, &signal("HUP")?).await?;
    let (kind, message) = failure(&told)?;
    ensure!(kind == ErrorType::Unsupported && message.contains("boathook agent"), "{told:?}");
    Ok(())
}

pub(crate) async fn a_signal_that_nobody_handles_is_not_sent(ctx: Ctx) -> Result<()> {
    // It handles TERM alone.
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    let lost = ctx.carry_out(From::Node, &pod, &signal("USR1")?).await?;
    assert_eq!(failure(&lost)?.0, ErrorType::SignalNotHandled, "{lost:?}");
    for guarded in ["TERM", "KILL", "STOP"] {
        let refused = ctx.carry_out(From::Node, &pod, &signal(guarded)?).await?;
        let (kind, message) = failure(&refused)?;
        ensure!(kind == ErrorType::Unsupported && message.contains("--allow-signals"), "{refused:?}");
    }
    let options = Options { allow_signals: ["TERM".parse()?].into(), notes: None };
    let sent = (ctx.main_of(&pod)?, signal("TERM")?, Cancel::new());
    assert_eq!(ctx.run_on_node(&pod, options, sent).await?.outcome, Outcome::Succeeded);
    let restarted = |pod: &k8s_openapi::api::core::v1::Pod| {
        let mut statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        statuses.any(|status| status.restart_count > 0)
    };
    ctx.watch_until(DEADLINE, "box", "has ended at that and was restarted", restarted).await.map(drop)
}
