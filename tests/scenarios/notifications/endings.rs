//! How handlers end that do not end well: on time, and with nothing left behind where that can be had.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, Executor},
    words::reason,
};
use boathook_tests::{
    Ctx, DEADLINE, LATE,
    boathook::{
        host::{a_long_time, processes_with},
        notifications::{error_of, status, succeeded, undone},
        recording::{freezer, record, recorder, restartable},
    },
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

/// What a handler is given that does not end by itself.
const LIMIT: Duration = Duration::from_secs(2);

/// An inline action that runs this line for a shell.
fn shell(pod: &str, script: &str, limit: Duration) -> Value {
    let action = json!({"exec": {"command": ["sh", "-c", script]}, "timeoutSeconds": limit.as_secs()});
    json!({"podName": pod, "action": action})
}

pub(crate) async fn a_handler_that_hangs_is_ended_on_time(ctx: Ctx, executor: Executor) -> Result<()> {
    ends_on_time(ctx, executor, |long| format!("sleep {long}")).await
}

pub(crate) async fn a_handler_that_ignores_term_is_ended_on_time(ctx: Ctx, executor: Executor) -> Result<()> {
    ends_on_time(ctx, executor, |long| format!("trap '' TERM INT HUP; sleep {long} & sleep {long}; sleep {long}")).await
}

pub(crate) async fn a_child_that_holds_stdout_does_not_hold_the_notification(
    ctx: Ctx,
    executor: Executor,
) -> Result<()> {
    ends_on_time(ctx, executor, |long| format!("sleep {long} & echo begun")).await
}

pub(crate) async fn a_child_in_a_session_of_its_own_is_ended_too(ctx: Ctx, executor: Executor) -> Result<()> {
    ends_on_time(ctx, executor, |long| format!("setsid sleep {long} & env -i setsid sleep {long} & sleep {long}")).await
}

async fn ends_on_time(ctx: Ctx, executor: Executor, script: impl Fn(&str) -> String) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let long = a_long_time();
    let ended = ctx.notify("long", shell("box", &script(&long), LIMIT)).await?;
    let left = processes_with(&long)?;
    let (kind, message) = error_of(&ended)?;
    assert_eq!(kind, ErrorType::HandlerTimeout, "{message}");
    let took = duration(&ended)?;
    ensure!(LIMIT <= took && took < LIMIT + LATE, "it took {took:?}");
    match executor {
        Executor::Agent => ensure!(left.is_empty(), "these were left running: {left:?}"),
        Executor::Api => ensure!(message.contains("ProcessMayRemain"), "it does not say what may remain: {message}"),
    }
    Ok(())
}

pub(crate) async fn of_twenty_megabytes_of_output_the_end_is_kept(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let script = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end";
    let told = ctx.notify("much", shell("box", script, Duration::from_secs(120))).await?;
    succeeded(&told)?;
    let output = status(&told).containers.remove(0).output.context("no output was kept")?;
    ensure!(output.ends_with("x\nthe end\n"), "it ends with {:?}", &output[output.len().saturating_sub(40)..]);
    ensure!(output.len() <= 10 << 10 && output.len() > 9 << 10, "{} bytes were kept", output.len());
    Ok(())
}

pub(crate) async fn a_pod_deleted_in_the_middle_ends_its_handler(ctx: Ctx, _: Executor) -> Result<()> {
    let script = format!("{}; sleep {}", record("begun"), a_long_time());
    ctx.run_pod(freezer(recorder(&ctx, "box")).notifier("main", "long", &script).build()).await?;
    let spec = json!({"podName": "box", "notifier": "long", "undo": {"notifier": "thaw"}});
    let name = ctx.begin("long", spec).await?;
    ctx.records("box", "begun").await?;
    ctx.api::<Pod>().delete("box", &DeleteParams::default()).await?;
    let ended = ctx.ended(&name).await?;
    let (kind, message) = error_of(&ended)?;
    // The pod's end and the undo, which is due at once, race: the handler ends with its container or is cancelled, and it
    // is undone there, or the pod is gone.
    let is_gone = matches!(kind, ErrorType::ContainerNotRunning | ErrorType::PodNotFound);
    let was_ended = kind == ErrorType::OutcomeUnknown || exit_code(&ended) == Some(137);
    ensure!(is_gone || was_ended, "{kind:?}: {message}");
    closed_with_its_pod(&ctx, &name).await?;
    ctx.delete_and_see_gone::<PodNotification>(&name).await
}

/// Waits until it is undone in a pod that was told to end, or the pod is gone: which comes first is chance.
async fn closed_with_its_pod(ctx: &Ctx, name: &str) -> Result<()> {
    let closed = [reason::POD_GONE, reason::UNDO_SUCCEEDED];
    let is_closed = |object: &PodNotification| undone(object).is_some_and(|why| closed.contains(&why.as_str()));
    ctx.watch_until::<PodNotification>(DEADLINE, name, "is undone, or its pod is gone", is_closed).await?;
    Ok(())
}

pub(crate) async fn a_container_restarted_in_the_middle_ends_its_handler(ctx: Ctx, executor: Executor) -> Result<()> {
    let script = format!("{}; touch log/end; sleep {}", record("begun"), a_long_time());
    ctx.run_pod(restartable(&ctx, "box").notifier("main", "long", &script).build()).await?;
    let ended = ctx.tell("box", "long").await?;
    let (kind, message) = error_of(&ended)?;
    ensure!(kind == ErrorType::ContainerNotRunning || was_killed_unseen(&ended, executor), "{kind:?}: {message}");
    ctx.restarted("box", 1).await?;
    assert_eq!(ctx.recorded("box").await?, ["begun"], "it was run again in the new container");
    Ok(())
}

pub(crate) async fn a_missing_program_is_a_failure_with_the_runtimes_words(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let action = json!({"exec": {"command": ["no-such-program"]}, "timeoutSeconds": 60});
    let spec = json!({"podName": "box", "action": action});
    let (kind, message) = error_of(&ctx.notify("missing", spec).await?)?;
    assert_eq!(kind, ErrorType::HandlerFailed, "{message}");
    ensure!(message.contains("container `main`") && message.contains("no-such-program"), "{message}");
    Ok(())
}

pub(crate) async fn a_pod_that_is_not_there_is_not_found(ctx: Ctx, _: Executor) -> Result<()> {
    let (kind, message) = error_of(&ctx.tell("box", "reload").await?)?;
    assert_eq!(kind, ErrorType::PodNotFound, "{message}");
    ensure!(message.contains("`box`"), "{message}");
    Ok(())
}

pub(crate) async fn a_pod_created_again_under_the_same_name_is_another_one(ctx: Ctx, _: Executor) -> Result<()> {
    let pod = freezer(recorder(&ctx, "box")).build();
    let first = ctx.run_pod(pod.clone()).await?;
    let spec = json!({"podName": "box", "notifier": "freeze", "undo": {"notifier": "thaw"}});
    let frozen = ctx.notify("freeze", spec).await?;
    succeeded(&frozen)?;
    ctx.delete_and_see_gone::<Pod>("box").await?;
    ctx.api::<Pod>().create(&PostParams::default(), &pod).await?;
    ctx.ready("box").await?;

    // The first one was undone before its end, or went frozen; the second is not undone, and not told what the first was
    // to do.
    ctx.request_undo(&frozen.name_any()).await?;
    closed_with_its_pod(&ctx, &frozen.name_any()).await?;
    let spec = json!({"podName": "box", "podUID": first.uid(), "notifier": "freeze"});
    let (kind, message) = error_of(&ctx.notify("late", spec).await?)?;
    assert_eq!(kind, ErrorType::PodNotFound, "{message}");
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

/// Whether the handler was killed with its container, and the executor did not see why: through the API server it asks
/// for the container's state for a few seconds, and a busy kubelet reports that state later.
fn was_killed_unseen(object: &PodNotification, executor: Executor) -> bool {
    executor == Executor::Api && exit_code(object) == Some(137)
}

fn exit_code(object: &PodNotification) -> Option<i32> {
    status(object).containers.first().and_then(|part| part.exit_code)
}

/// From the start of its only container's handler to its end.
fn duration(object: &PodNotification) -> Result<Duration> {
    let part = status(object).containers.into_iter().next().context("it ran in no container")?;
    let (start, complete) = (part.start_time.context("no start")?, part.complete_time.context("no end")?);
    Ok(Duration::try_from(complete.0.duration_since(start.0))?)
}
