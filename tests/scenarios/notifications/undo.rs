//! What takes a handler back: it runs at least once, whenever it is owed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, Executor, State},
    words::{UNDO_FINALIZER, reason},
};
use boathook_tests::{
    Ctx, LATE,
    boathook::{
        notifications::{error_of, state, status, succeeded, undone},
        recording::{freezer, freezes_at, record, recorder, restartable, stubborn, timed_freezer},
    },
};
use k8s_openapi::{
    api::core::v1::{Namespace, Pod},
    jiff::SignedDuration,
};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

/// Long enough for a handler to end in time on a busy machine; the scenario waits for the rest of it.
pub(crate) const EXPIRY: Duration = Duration::from_secs(10);

/// A freeze of pod `box`, with what takes it back.
pub(crate) fn freeze() -> Value {
    json!({"podName": "box", "notifier": "freeze", "undo": {"notifier": "thaw"}})
}

/// The same, which takes itself back after this long.
pub(crate) fn freeze_for(time: Duration) -> Value {
    json!({"podName": "box", "notifier": "freeze", "undo": {"notifier": "thaw", "afterSeconds": time.as_secs()}})
}

pub(crate) async fn an_undo_runs_when_it_is_asked_for(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze()).await?;
    succeeded(&frozen)?;
    assert_eq!(undone(&frozen).as_deref(), Some(reason::ARMED));
    ensure!(frozen.finalizers().contains(&UNDO_FINALIZER.to_owned()), "nothing holds what is owed: {frozen:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);

    let name = frozen.name_any();
    ctx.request_undo(&name).await?;
    let undone = ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    assert_eq!(state(&undone), State::Succeeded);
    Ok(())
}

pub(crate) async fn an_undo_runs_when_the_notification_is_deleted(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze()).await?;
    succeeded(&frozen)?;
    ctx.delete_and_see_gone::<PodNotification>(&frozen.name_any()).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

/// A frozen pod that is deleted is thawed long before its grace period is over, and not by the expiry.
pub(crate) async fn a_frozen_pod_that_is_deleted_is_thawed_before_its_end(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(stubborn(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze_for(Duration::from_secs(3600))).await?;
    succeeded(&frozen)?;
    let pods: Api<Pod> = ctx.api();
    pods.delete("box", &DeleteParams::default()).await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    pods.delete("box", &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

pub(crate) async fn an_undo_runs_by_itself_when_its_time_has_come(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(timed_freezer(recorder(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze_for(EXPIRY)).await?;
    succeeded(&frozen)?;
    let object = ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    let (freeze, thaw) = freezes_at(&ctx.recorded("box").await?)?;
    let thawed_after = thaw.saturating_sub(freeze);
    ensure!(thawed_after <= EXPIRY + LATE, "thawed late, after {thawed_after:?}");
    undone_no_earlier_than(&object, EXPIRY)
}

/// The undo began at least this long after the claim, from which its time counts: on a busy machine the handler starts
/// long after the claim.
pub(crate) fn undone_no_earlier_than(object: &PodNotification, time: Duration) -> Result<()> {
    let status = status(object);
    let claimed = status.claim.context("the notification has no claim")?.time.0;
    let undo = status.containers.into_iter().next().and_then(|part| part.undo).context("no undo is recorded")?;
    let begun = undo.start_time.context("the undo has no start time")?.0;
    ensure!(begun.duration_since(claimed) >= SignedDuration::try_from(time)?, "undone early: {claimed} to {begun}");
    Ok(())
}

/// A handler that is still running when it is to be taken back is taken back too, and never called a success.
pub(crate) async fn a_handler_that_outlives_its_expiry_is_undone_on_time(ctx: Ctx, executor: Executor) -> Result<()> {
    let slow = format!("{}; until [ -e log/go ]; do sleep 0.1; done", record("freeze"));
    ctx.run_pod(freezer(recorder(&ctx, "box")).notifier("main", "slow", &slow).build()).await?;
    let undo = json!({"notifier": "thaw", "afterSeconds": EXPIRY.as_secs()});
    let name = ctx.begin("slow", json!({"podName": "box", "notifier": "slow", "undo": undo})).await?;
    ctx.records("box", "thaw").await?;
    // Until now the handler could not end by itself.
    ctx.shell("box", "touch log/go").await?;
    let ended = ctx.ended(&name).await?;
    if executor == Executor::Agent {
        // It ends what still runs. Through the API server nothing can be ended: there the handler runs to its end.
        error_of(&ended)?;
    }
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    let expected: &[&str] = match executor {
        Executor::Agent => &["freeze", "thaw"],
        // What the handler did after the first undo is taken back by another.
        Executor::Api => &["freeze", "thaw", "thaw"],
    };
    let mut lines = ctx.recorded("box").await?;
    if executor == Executor::Agent {
        // The undo of a handler that is slow to end runs beside it, and once more after its end.
        lines.dedup();
    }
    assert_eq!(lines, expected);
    Ok(())
}

pub(crate) async fn an_undo_that_fails_is_tried_until_it_succeeds(ctx: Ctx, _: Executor) -> Result<()> {
    let pod =
        freezer(recorder(&ctx, "box")).notifier("main", "stuck", "test -e log/loose && echo loosened >> log/lines");
    ctx.run_pod(pod.build()).await?;
    let undo = json!({"notifier": "stuck", "timeoutSeconds": 10});
    let frozen = ctx.notify("freeze", json!({"podName": "box", "notifier": "freeze", "undo": undo})).await?;
    succeeded(&frozen)?;
    ctx.request_undo(&frozen.name_any()).await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_FAILED).await?;
    ctx.shell("box", "touch log/loose").await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    // At least once: in so short a time an attempt may have succeeded without being seen to.
    let lines = ctx.recorded("box").await?;
    ensure!(lines.len() > 1 && lines[0] == "freeze" && lines[1..].iter().all(|line| line == "loosened"), "{lines:?}");
    Ok(())
}

/// Nothing can be created there any more: the undo needs nothing to be. The pods go first; until then they are undone.
pub(crate) async fn an_undo_runs_in_a_terminating_namespace(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(stubborn(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze()).await?;
    succeeded(&frozen)?;
    Api::<Namespace>::all(ctx.client()).delete(ctx.namespace(), &DeleteParams::default()).await?;
    let refused =
        ctx.begin("freeze", freeze()).await.err().context("something was created in a terminating namespace")?;
    ensure!(format!("{refused:#}").contains("being terminated"), "{refused:#}");
    ctx.request_undo(&frozen.name_any()).await?;
    ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ctx.ask_to_end("box").await;
    ctx.gone::<PodNotification>(&frozen.name_any()).await
}

/// A frozen filesystem outlives the process that froze it.
pub(crate) async fn an_undo_runs_in_the_new_instance_of_a_restarted_container(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(restartable(&ctx, "box")).build()).await?;
    let frozen = ctx.notify("freeze", freeze()).await?;
    succeeded(&frozen)?;
    ctx.ask_to_end("box").await;
    ctx.restarted("box", 1).await?;
    ctx.request_undo(&frozen.name_any()).await?;
    let undone = ctx.undone(&frozen.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    let part = status(&undone).containers.into_iter().next().context("it ran in no container")?;
    let in_which = part.undo.and_then(|undo| undo.container_id).context("the undo does not say where it ran")?;
    ensure!(part.container_id.is_some_and(|first| first != in_which), "the undo ran in a container that had ended");
    Ok(())
}

pub(crate) async fn what_is_revoked_before_it_is_claimed_never_runs(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let mut spec = freeze();
    spec["undoRequested"] = true.into();
    let revoked = ctx.notify("freeze", spec).await?;
    let (kind, message) = error_of(&revoked)?;
    assert_eq!(kind, ErrorType::Revoked, "{message}");
    ctx.delete_and_see_gone::<PodNotification>(&revoked.name_any()).await?;
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

/// It is deleted when its time after the end is over, and not before its undo is done.
pub(crate) async fn a_finished_notification_goes_when_its_time_is_over(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let mut spec = freeze();
    spec["ttlSecondsAfterFinished"] = 0.into();
    let name = ctx.begin("freeze", spec).await?;
    succeeded(&ctx.ended(&name).await?)?;
    ctx.request_undo(&name).await?;
    ctx.gone::<PodNotification>(&name).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}
