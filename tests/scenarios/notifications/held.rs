//! Commands whose session is held: ready, released, lost.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, Executor},
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE, LATE,
    boathook::{
        execution_hooks::with,
        host::{a_long_time, processes_with},
        notifications::{condition_of, error_of, status, succeeded, undone},
        recording::{freezes_at, record, recorder, restartable},
    },
};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::notifications::undo::{EXPIRY, undone_no_earlier_than};

/// A command for a shell in pod `box` whose session is held, with what takes it back.
pub(crate) fn hold(script: &str, undo: Value) -> Value {
    let action = json!({"exec": {"command": ["sh", "-c", script], "hold": true}, "timeoutSeconds": 60});
    // The time of the release, and of the undo's action.
    json!({"podName": "box", "action": action, "undo": with(json!({"timeoutSeconds": 60}), undo)})
}

/// Records that it freezes, is ready, and records the line that ends it: `RELEASE`, or nothing at the end of its input.
pub(crate) fn lock() -> String {
    format!("{}; echo READY; read -r word; echo \"ended $word\" >> log/lines", record("freeze"))
}

/// The same, each line with the time at which it was written, by the container's own clock.
pub(crate) fn timed_lock() -> String {
    let now = "read now rest < /proc/uptime";
    format!("{now}; echo freeze $now >> log/lines; echo READY; read -r word; {now}; echo thaw $now >> log/lines")
}

/// What follows the release.
pub(crate) fn thaw() -> Value {
    json!({"exec": {"command": ["sh", "-c", record("thaw")]}})
}

pub(crate) fn held(object: &PodNotification) -> Option<(String, String)> {
    condition_of(object, condition::HELD)
}

pub(crate) fn is(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

/// Holds it, and sees that it is held.
pub(crate) async fn held_by(ctx: &Ctx, spec: Value) -> Result<String> {
    ctx.run_pod(recorder(ctx, "box").build()).await?;
    let object = ctx.notify("hold", spec).await?;
    succeeded(&object)?;
    assert_eq!(held(&object), is("True", reason::SESSION_OPEN));
    assert_eq!(undone(&object).as_deref(), Some(reason::ARMED));
    Ok(object.name_any())
}

/// Waits until it is no longer held, for this reason; and returns what is said of that.
pub(crate) async fn no_longer_held(ctx: &Ctx, name: &str, why: &str) -> Result<String> {
    let is_so = |object: &PodNotification| held(object) == is("False", why);
    let object = ctx.watch_until(DEADLINE, name, &format!("is no longer held: {why}"), is_so).await?;
    let said = status(&object).conditions.into_iter().find(|one| one.type_ == condition::HELD);
    Ok(said.context("it says nothing of its sessions")?.message)
}

pub(crate) async fn a_session_is_held_from_its_ready_to_its_release(ctx: Ctx, _: Executor) -> Result<()> {
    let name = held_by(&ctx, hold(&lock(), json!({}))).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    ctx.request_undo(&name).await?;
    let object = ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(held(&object), is("False", reason::RELEASED));
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE"]);
    let undo = status(&object).containers.remove(0).undo.context("no undo is told")?;
    assert_eq!((undo.exit_code, undo.succeeded), (Some(0), Some(true)));
    Ok(())
}

pub(crate) async fn a_release_comes_before_the_action_of_the_undo(ctx: Ctx, _: Executor) -> Result<()> {
    let name = held_by(&ctx, hold(&lock(), json!({"action": thaw()}))).await?;
    ctx.request_undo(&name).await?;
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE", "thaw"]);
    Ok(())
}

pub(crate) async fn a_deletion_releases_a_session_and_then_the_object_goes(ctx: Ctx, _: Executor) -> Result<()> {
    let name = held_by(&ctx, hold(&lock(), json!({}))).await?;
    ctx.delete_and_see_gone::<PodNotification>(&name).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE"]);
    Ok(())
}

pub(crate) async fn a_session_is_released_by_itself_when_its_time_has_come(ctx: Ctx, _: Executor) -> Result<()> {
    let name = held_by(&ctx, hold(&timed_lock(), json!({"afterSeconds": EXPIRY.as_secs()}))).await?;
    let object = ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(held(&object), is("False", reason::RELEASED));
    let (freeze, thaw) = freezes_at(&ctx.recorded("box").await?)?;
    let released_after = thaw.saturating_sub(freeze);
    ensure!(released_after <= EXPIRY + LATE, "released late, after {released_after:?}");
    undone_no_earlier_than(&object, EXPIRY)
}

pub(crate) async fn a_command_that_ends_before_it_is_ready_has_failed(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    for code in [0, 3] {
        // What it says on stderr does not make it ready.
        let object = ctx.notify("hold", hold(&format!("echo READY >&2; exit {code}"), json!({}))).await?;
        let (kind, message) = error_of(&object)?;
        assert_eq!(kind, ErrorType::HandlerFailed, "{message}");
        ensure!(message.contains(&format!("exit code {code}")) && message.contains("READY"), "{message}");
        let part = status(&object).containers.remove(0);
        assert_eq!((part.exit_code, part.output.as_deref()), (Some(code), Some("READY\n")));
        assert_eq!(held(&object), None);
        ctx.undone(&object.name_any(), reason::SESSION_ENDED).await?;
    }
    Ok(())
}

pub(crate) async fn a_command_that_was_not_ready_is_tried_again_while_there_is_time(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let third_time = format!("echo try >> log/tries; [ $(wc -l < log/tries) -ge 3 ] || exit 1; {}", lock());
    let mut spec = hold(&third_time, json!({}));
    spec["retry"] = "UntilTimeout".into();
    let object = ctx.notify("hold", spec).await?;
    succeeded(&object)?;
    assert_eq!(status(&object).containers[0].attempts, Some(3));
    ctx.delete_and_see_gone::<PodNotification>(&object.name_any()).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE"]);
    Ok(())
}

/// Its input ends, upon which it ends; or it is ended with everything that it started.
pub(crate) async fn a_command_that_is_never_ready_is_over_with_its_time(ctx: Ctx, executor: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let long = a_long_time();
    let never = format!("sleep {long} >/dev/null & {}; read -r word; kill $!; {}", record("begun"), record("ended"));
    let mut spec = hold(&never, json!({}));
    spec["action"]["timeoutSeconds"] = 10.into();
    let object = ctx.notify("hold", spec).await?;
    let (kind, message) = error_of(&object)?;
    assert_eq!(kind, ErrorType::HandlerTimeout, "{message}");
    ensure!(message.contains("READY"), "{message}");
    match executor {
        Executor::Api => assert_eq!(ctx.records_lines("box", 2).await?, ["begun", "ended"]),
        Executor::Agent => {
            let left = processes_with(&long)?;
            ensure!(left.is_empty(), "these were left running: {left:?}");
            assert_eq!(ctx.recorded("box").await?, ["begun"]);
        }
    }
    ctx.undone(&object.name_any(), reason::SESSION_ENDED).await?;
    Ok(())
}

pub(crate) async fn a_session_that_is_lost_is_told_and_undone_at_once(ctx: Ctx, _: Executor) -> Result<()> {
    let fragile = format!("{}; echo READY; until [ -e log/lose ]; do sleep 0.1; done; exit 3", record("freeze"));
    let name = held_by(&ctx, hold(&fragile, json!({"action": thaw()}))).await?;
    ctx.shell("box", "touch log/lose").await?;
    let message = no_longer_held(&ctx, &name, reason::SESSION_LOST).await?;
    ensure!(message.contains("container `main`") && message.contains("exit code 3"), "{message}");
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);

    // Without an action there is nothing to do, and that is said.
    let other = ctx.notify("hold", hold(&fragile, json!({}))).await?.name_any();
    no_longer_held(&ctx, &other, reason::SESSION_LOST).await?;
    ctx.undone(&other, reason::SESSION_ENDED).await?;
    Ok(())
}

/// One of two is lost: the other one is of no use any more.
pub(crate) async fn where_one_session_is_lost_the_others_are_released(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").also("other").build()).await?;
    let word = "if [ -e log/chosen ]; then until [ -e log/lose ]; do sleep 0.1; done; exit 3; fi";
    let either =
        format!("mkdir log/chosen 2>/dev/null && chosen=yes; echo READY; [ \"$chosen\" = yes ] && {word}; {}", lock());
    let object = ctx.notify("hold", hold(&either, json!({}))).await?;
    succeeded(&object)?;
    ctx.shell("box", "touch log/lose").await?;
    no_longer_held(&ctx, &object.name_any(), reason::SESSION_LOST).await?;
    ctx.undone(&object.name_any(), reason::SESSION_ENDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE"]);
    Ok(())
}

pub(crate) async fn a_session_ends_with_its_container_and_is_undone_in_the_new_one(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    ctx.run_pod(restartable(&ctx, "box").build()).await?;
    let object =
        ctx.notify("hold", hold(&format!("echo READY; sleep {}", a_long_time()), json!({"action": thaw()}))).await?;
    succeeded(&object)?;
    ctx.ask_to_end("box").await;
    no_longer_held(&ctx, &object.name_any(), reason::SESSION_LOST).await?;
    ctx.undone(&object.name_any(), reason::UNDO_SUCCEEDED).await?;
    let lines = ctx.recorded("box").await?;
    // At least once: it may have begun in the old one as that ended.
    ensure!(!lines.is_empty() && lines.iter().all(|line| line == "thaw"), "{lines:?}");
    Ok(())
}

pub(crate) async fn a_release_that_fails_is_told_and_then_the_session_is_over(ctx: Ctx, _: Executor) -> Result<()> {
    let name = held_by(&ctx, hold(&format!("{}; exit 5", lock()), json!({"action": thaw()}))).await?;
    ctx.request_undo(&name).await?;
    let message = no_longer_held(&ctx, &name, reason::RELEASE_FAILED).await?;
    ensure!(message.contains("container `main`") && message.contains("exit code 5"), "{message}");
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "ended RELEASE", "thaw"]);
    Ok(())
}

/// The agent ends what does not end; through the API server nobody knows, and that is a failure once.
pub(crate) async fn a_release_that_hangs_does_not_hold_up_the_undo(ctx: Ctx, executor: Executor) -> Result<()> {
    let long = a_long_time();
    let deaf = format!("{}; echo READY; trap '' TERM HUP; sleep {long}; sleep {long}", record("freeze"));
    let name = held_by(&ctx, hold(&deaf, json!({"action": thaw(), "timeoutSeconds": 10}))).await?;
    ctx.request_undo(&name).await?;
    let message = no_longer_held(&ctx, &name, reason::RELEASE_FAILED).await?;
    ensure!(message.contains("RELEASE") && message.contains("10s"), "{message}");
    ctx.undone(&name, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    let left = processes_with(&long)?;
    match executor {
        Executor::Agent => ensure!(left.is_empty(), "these were left running: {left:?}"),
        Executor::Api => ensure!(message.contains("ProcessMayRemain"), "it does not say what may remain: {message}"),
    }
    Ok(())
}

/// It may not be ready when it is no longer wanted.
pub(crate) async fn a_command_that_is_not_ready_when_it_is_revoked_never_holds(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let slow = format!("{}; read -r word; echo READY; {}", record("begun"), lock());
    let name = ctx.begin("hold", hold(&slow, json!({}))).await?;
    ctx.records("box", "begun").await?;
    ctx.request_undo(&name).await?;
    let object = ctx.ended(&name).await?;
    assert_eq!(error_of(&object)?.0, ErrorType::OutcomeUnknown);
    assert_eq!(held(&object), None);
    ctx.undone(&name, reason::SESSION_ENDED).await?;
    Ok(())
}
