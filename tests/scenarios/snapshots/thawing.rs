//! The way back: whatever was frozen is thawed, and while it is not, that is said.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    execution_hook::ExecutionHookActionStatus,
    pod_notification::Executor,
    words::{THAW_FINALIZER, condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, of_data},
        conditions,
        execution_hooks::{condition_of, freezing, freezing_as, mains, part_of, shell_within, status, with},
        recording::{ends_only_on_demand, record, recorder, recorder_on},
    },
    claims::claim,
    poll::Look,
};
use k8s_openapi::{api::core::v1::Namespace, jiff::SignedDuration};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

/// A freeze of pod `box` whose thaw succeeds only when the file `log/loose` is there. Each round of it that fails takes
/// all of its time, and leaves one line.
fn stuck() -> Value {
    let thaw = format!("if [ -e log/loose ]; then {}; else {}; exec sleep 9; fi", record("thaw"), record("stuck"));
    with(with(freezing(), json!({"postAction": shell_within(&thaw, 4)})), mains(["box"]))
}

pub(crate) async fn a_post_action_that_fails_is_tried_until_it_succeeds(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.freeze("db", stuck()).await?;
    ctx.request_thaw("db").await?;
    let failed = ctx.hook_says("db", condition::THAWED, reason::THAW_FAILED).await?;
    assert_eq!(status(&failed).post_action_succeed, Some(false));
    ensure!(failed.finalizers().contains(&THAW_FINALIZER.to_owned()), "nothing holds what is owed: {failed:?}");
    let message = conditions::message(&status(&failed).conditions, condition::THAWED);
    ensure!(message.contains("boathook thaw db"), "it does not say what to do: {message}");
    ctx.event_of::<ExecutionHook>("db", reason::THAW_FAILED).await?;
    ctx.shell("box", "touch log/loose").await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(status(&thawed).pre_action_succeed, Some(true));
    let lines = ctx.recorded("box").await?;
    ensure!(lines.first().is_some_and(|line| line == "freeze"), "{lines:?}");
    ensure!(lines.last().is_some_and(|line| line == "thaw"), "{lines:?}");
    ctx.delete_and_see_gone::<ExecutionHook>("db").await
}

/// Between the end of the sixth round and the next one there are 32 s: a person who has fixed it does not wait for that.
pub(crate) async fn whoever_asks_for_the_thaw_again_gets_it_at_once(ctx: Ctx, _: Executor) -> Result<()> {
    const AT_ONCE: Duration = Duration::from_secs(30);
    /// Longer than a round. On a busy machine a round can time out though the thaw would succeed: a person asks again.
    const ASK_AGAIN: Duration = Duration::from_secs(6);
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.freeze("db", stuck()).await?;
    ctx.request_thaw("db").await?;
    let rounds = |lines: &[String]| lines.iter().filter(|line| *line == "stuck").count();
    ctx.poll_until(DEADLINE, "six rounds have failed", async || {
        let lines = ctx.recorded("box").await?;
        Ok(if rounds(&lines) >= 6 { Look::Done(()) } else { Look::NotYet(format!("{lines:?}")) })
    })
    .await?;
    ctx.shell("box", "touch log/loose").await?;
    let asking = async {
        loop {
            ctx.thaw_now("db").await?;
            if let Ok(thawed) = tokio::time::timeout(ASK_AGAIN, ctx.thawed("db")).await {
                return thawed.map(drop);
            }
        }
    };
    tokio::time::timeout(AT_ONCE, asking).await.context("it is not thawed at once")?
}

pub(crate) async fn a_thaw_that_never_succeeds_can_be_given_up(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.freeze("db", stuck()).await?;
    ctx.request_thaw("db").await?;
    ctx.hook_says("db", condition::THAWED, reason::THAW_FAILED).await?;
    ctx.give_up_thaw("db").await?;
    let given_up = ctx.hook_says("db", condition::THAWED, reason::ABANDONED).await?;
    assert_eq!(status(&given_up).post_action_succeed, Some(false), "it is called a success: {given_up:?}");
    assert_eq!(condition_of(&given_up, condition::THAWED).map(|(status, _)| status).as_deref(), Some("False"));
    ctx.event_of::<ExecutionHook>("db", reason::ABANDONED).await?;
    // Nothing holds it any more.
    ctx.delete_and_see_gone::<ExecutionHook>("db").await
}

/// The outer one waits for the inner one's thaw, but not longer than its own time.
pub(crate) async fn a_hanging_inner_thaw_does_not_delay_an_expired_outer_one(ctx: Ctx, _: Executor) -> Result<()> {
    const EXPIRATION: SignedDuration = SignedDuration::from_secs(20);
    const LATE: SignedDuration = SignedDuration::from_secs(60);
    /// Far longer than anybody waits here: only the expiry thaws the outer one.
    const HANGS_FOR: i32 = 600;
    ctx.run_box_on_data().await?;
    ctx.create_template("outer", with(freezing_as("-outer"), json!({"expirationSeconds": EXPIRATION.as_secs()})))
        .await?;
    let hangs = format!("until [ -e log/loose ]; do sleep 0.1; done; {}", record("thaw-inner"));
    let hangs = json!({"postAction": shell_within(&hangs, HANGS_FOR)});
    ctx.create_template("inner", with(freezing_as("-inner"), hangs)).await?;
    ctx.create_application_snapshot("nightly", of_data([by("outer"), by("inner")])).await?;
    ctx.records("box", "thaw-outer").await?;
    let outer = ctx.thawed(&ctx.hook_name("nightly", 0).await?).await?;
    assert_eq!(condition_of(&outer, condition::EXPIRED), Some(("True".to_owned(), reason::EXPIRED.to_owned())));
    let part = part_of(&outer, "box")?;
    let begun = |action: Option<ExecutionHookActionStatus>| action?.action_timestamp;
    let frozen = begun(part.pre_action_status).context("no PreAction was begun")?;
    let thawed = begun(part.post_action_status).context("no PostAction was begun")?;
    let after = thawed.0.duration_since(frozen.0);
    ensure!(after <= EXPIRATION + LATE, "it expired after {EXPIRATION:#}, and was thawed after {after:#}");
    let lines = ctx.recorded("box").await?;
    ensure!(!lines.contains(&"thaw-inner".to_owned()), "the inner one did not hang: {lines:?}");
    ctx.shell("box", "touch log/loose").await?;
    ctx.over("nightly").await?;
    let mut lines = ctx.recorded("box").await?;
    // At its expiry and when it is asked for: a thaw runs at least once.
    lines.dedup();
    assert_eq!(lines, ["freeze-outer", "freeze-inner", "thaw-outer", "thaw-inner"]);
    Ok(())
}

/// Nothing can be created there any more, and the pods go first; until then they are thawed when that is asked for.
pub(crate) async fn what_is_frozen_in_a_namespace_that_is_deleted_is_thawed(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    // The namespace is looked at again after half of what its pods are given to end.
    ctx.run_pod(ends_only_on_demand(recorder_on(&ctx, "data", "box")).grace(120).build()).await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    let spec = with(of_data([by("quiet")]), storage.fields());
    ctx.create_application_snapshot("nightly", spec).await?;
    storage.asked_for("nightly").await?;
    Api::<Namespace>::all(ctx.client()).delete(ctx.namespace(), &DeleteParams::default()).await?;
    // A cluster that deletes a namespace's pods first comes to the rest when they have gone, so a person asks for this one.
    // A cluster that does not wait for the pods has asked by now, and then it may be gone already.
    match ctx.api::<ApplicationSnapshot>().delete("nightly", &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        asked => asked.map(drop).context("failed to delete the snapshot")?,
    }
    ctx.gone::<ApplicationSnapshot>("nightly").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    // That the namespace then goes is seen at the end of every scenario.
    ctx.ask_to_end("box").await;
    Ok(())
}
