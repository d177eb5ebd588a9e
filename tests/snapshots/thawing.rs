//! The way back: whatever was frozen is thawed, and while it is not, that is said.

use anyhow::{Result, ensure};
use boathook_api::{
    ExecutionHook,
    pod_notification::Executor,
    words::{THAW_FINALIZER, condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        conditions,
        execution_hooks::{freezing, mains, shell_within, status, with},
        recording::{record, recorder},
    },
};
use kube::ResourceExt;
use serde_json::{Value, json};

/// A freeze of pod `box` whose thaw succeeds only when the file `log/loose` is there.
fn stuck() -> Value {
    let thaw = format!("[ -e log/loose ] && {}", record("thaw"));
    with(with(freezing(), json!({"postAction": shell_within(&thaw, 1)})), mains(["box"]))
}

pub(crate) async fn a_post_action_that_fails_is_tried_until_it_succeeds(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.freeze("db", stuck()).await?;
    ctx.request_thaw("db").await?;
    let failed = ctx.hook_says("db", condition::THAWED, reason::POST_ACTION_FAILED).await?;
    assert_eq!(status(&failed).post_action_succeed, Some(false));
    ensure!(failed.finalizers().contains(&THAW_FINALIZER.to_owned()), "nothing holds what is owed: {failed:?}");
    let message = conditions::message(&status(&failed).conditions, condition::THAWED);
    ensure!(message.contains("boathook thaw db"), "it does not say what to do: {message}");
    ctx.shell("box", "touch log/loose").await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(status(&thawed).pre_action_succeed, Some(true));
    // At least once: an attempt may have succeeded without being seen to.
    let lines = ctx.recorded("box").await?;
    ensure!(lines[0] == "freeze" && lines[1..].iter().all(|line| line == "thaw"), "{lines:?}");
    ctx.delete_and_see_gone::<ExecutionHook>("db").await
}
