//! What handlers are for: each of the flow's examples, as an author declares it and a caller uses it.

use anyhow::{Result, ensure};
use boathook_api::{
    pod_notification::{ErrorType, Executor, State},
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        notifications::{condition_of, error_of, state, status, succeeded, undone},
        recording::{record, recorder},
    },
    pods::{is_ready, pod},
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;

pub(crate) async fn a_process_without_a_shell_reloads_on_a_signal(ctx: Ctx, _: Executor) -> Result<()> {
    let reload = json!({"name": "reload", "handler": {"signal": "SIGHUP"}, "timeoutSeconds": 60});
    ctx.run_pod(pod("lantern", ctx.images().lantern).declares("main", reload).build()).await?;
    ctx.follow_log_until(DEADLINE, "lantern", "lit").await?;
    succeeded(&ctx.tell("lantern", "reload").await?)?;
    ctx.follow_log_until(DEADLINE, "lantern", "reloaded 1").await?;
    succeeded(&ctx.tell("lantern", "reload").await?)?;
    ctx.follow_log_until(DEADLINE, "lantern", "reloaded 2").await
}

pub(crate) async fn a_signal_that_would_kill_or_be_lost_is_not_sent(ctx: Ctx, _: Executor) -> Result<()> {
    let sends = |name: &str, signal: &str| json!({"name": name, "handler": {"signal": signal}, "timeoutSeconds": 60});
    let lantern = pod("lantern", ctx.images().lantern);
    let lantern = lantern.declares("main", sends("rotate", "USR1")).declares("main", sends("end", "TERM"));
    let before = ctx.run_pod(lantern.build()).await?;
    ctx.follow_log_until(DEADLINE, "lantern", "lit").await?;
    let (kind, message) = error_of(&ctx.tell("lantern", "rotate").await?)?;
    assert_eq!(kind, ErrorType::SignalNotHandled, "{message}");
    ensure!(message.contains("USR1"), "{message}");
    let (kind, message) = error_of(&ctx.tell("lantern", "end").await?)?;
    ensure!(kind != ErrorType::SignalNotHandled, "{message}");
    ensure!(message.contains("TERM") && message.contains("--allow-signals"), "{message}");
    let after: Pod = ctx.watch_until(DEADLINE, "lantern", "is ready", is_ready).await?;
    ensure!(after.uid() == before.uid() && restarts(&after) == 0, "the container was ended");
    Ok(())
}

pub(crate) async fn a_signal_needs_the_agent(ctx: Ctx, _: Executor) -> Result<()> {
    let reload = json!({"name": "reload", "handler": {"signal": "HUP"}});
    ctx.run_pod(pod("lantern", ctx.images().lantern).declares("main", reload).build()).await?;
    let (kind, message) = error_of(&ctx.tell("lantern", "reload").await?)?;
    assert_eq!(kind, ErrorType::Unsupported, "{message}");
    ensure!(message.contains("agent"), "it does not say what to do: {message}");
    Ok(())
}

/// The process takes its time to follow; the notification is done when the probe has seen that it has.
pub(crate) async fn a_log_level_is_changed_and_a_probe_checks_it(ctx: Ctx, _: Executor) -> Result<()> {
    const FOLLOWING: &str = "trap 'exit 0' TERM
        while :; do if [ -e log/wanted ]; then sleep 1; mv log/wanted log/level; fi; sleep 0.1; done";
    let probe = |level: &str| json!({"exec": {"command": ["grep", "-q", level, "log/level"]}, "timeoutSeconds": 30});
    let louder = json!({
        "name": "louder",
        "handler": {"exec": {"command": ["sh", "-c", "echo debug > log/new; mv log/new log/wanted"]}},
        "timeoutSeconds": 60,
        "probe": probe("debug"),
    });
    let quieter = json!({
        "name": "quieter",
        "handler": {"exec": {"command": ["true"]}},
        "timeoutSeconds": 10,
        "probe": probe("silent"),
    });
    let following = recorder(&ctx, "box").command(["sh", "-c", FOLLOWING]);
    ctx.run_pod(following.declares("main", louder).declares("main", quieter).build()).await?;
    succeeded(&ctx.tell("box", "louder").await?)?;
    assert_eq!(ctx.shell("box", "cat log/level").await?, "debug\n");
    let (kind, message) = error_of(&ctx.tell("box", "quieter").await?)?;
    assert_eq!(kind, ErrorType::ProbeFailed, "{message}");
    Ok(())
}

const DATABASE: [&str; 5] = ["lockTables", "flushDisk", "fsfreeze", "fsUnfreeze", "unlockTables"];

pub(crate) async fn a_database_is_locked_flushed_and_frozen_for_a_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    let database = DATABASE.iter().fold(recorder(&ctx, "db"), |pod, name| pod.notifier("main", name, &record(name)));
    ctx.run_pod(database.build()).await?;
    for notifier in DATABASE {
        succeeded(&ctx.tell("db", notifier).await?)?;
    }
    assert_eq!(ctx.recorded("db").await?, DATABASE);
    Ok(())
}

/// What an upper level does that never leaves a database locked: each step carries what takes it back.
pub(crate) async fn a_freeze_that_fails_in_the_middle_is_taken_back_step_by_step(ctx: Ctx, _: Executor) -> Result<()> {
    let mut database = recorder(&ctx, "db");
    for name in DATABASE {
        let fails = if name == "fsfreeze" { "; echo no space >&2; exit 5" } else { "" };
        database = database.notifier("main", name, &format!("{}{fails}", record(name)));
    }
    ctx.run_pod(database.build()).await?;
    let with_undo = |notifier, undo| json!({"podName": "db", "notifier": notifier, "undo": {"notifier": undo}});

    let lock = ctx.notify("lock", with_undo("lockTables", "unlockTables")).await?;
    succeeded(&lock)?;
    succeeded(&ctx.tell("db", "flushDisk").await?)?;
    let freeze = ctx.notify("freeze", with_undo("fsfreeze", "fsUnfreeze")).await?;
    let (kind, message) = error_of(&freeze)?;
    assert_eq!(kind, ErrorType::HandlerFailed, "{message}");
    ensure!(message.contains("container `main`") && message.contains("exit code 5"), "{message}");
    let part = status(&freeze).containers.remove(0);
    assert_eq!((part.exit_code, part.output.as_deref()), (Some(5), Some("no space\n")));

    // A failure is taken back by itself, the rest when the caller asks for it.
    ctx.undone(&freeze.name_any(), reason::UNDO_SUCCEEDED).await?;
    ctx.request_undo(&lock.name_any()).await?;
    let lock = ctx.undone(&lock.name_any(), reason::UNDO_SUCCEEDED).await?;
    assert_eq!(state(&lock), State::Succeeded, "an undo changes nothing about the handler");
    assert_eq!(ctx.recorded("db").await?, DATABASE);
    Ok(())
}

pub(crate) async fn a_notifier_runs_where_it_is_declared_and_nowhere_else(ctx: Ctx, _: Executor) -> Result<()> {
    let pod = recorder(&ctx, "box").also("second").also("third");
    let pod = pod.notifier("main", "flush", &record("main")).notifier("third", "flush", &record("third"));
    ctx.run_pod(pod.build()).await?;
    let told = ctx.tell("box", "flush").await?;
    succeeded(&told)?;
    let names: Vec<_> = status(&told).containers.into_iter().map(|container| container.name).collect();
    assert_eq!(names, ["main", "third"]);
    let mut lines = ctx.recorded("box").await?;
    lines.sort();
    assert_eq!(lines, ["main", "third"]);
    Ok(())
}

pub(crate) async fn a_sidecar_declares_like_any_container(ctx: Ctx, _: Executor) -> Result<()> {
    let pod = recorder(&ctx, "box").sidecar("proxy").notifier("proxy", "drain", &record("drained"));
    ctx.run_pod(pod.build()).await?;
    let told = ctx.tell("box", "drain").await?;
    succeeded(&told)?;
    assert_eq!(status(&told).containers[0].name, "proxy");
    assert_eq!(ctx.recorded("box").await?, ["drained"]);
    Ok(())
}

pub(crate) async fn a_notifier_that_nobody_declares_is_done_at_once(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let spec = json!({"podName": "box", "notifier": "reload", "undo": {"notifier": "reload"}});
    let told = ctx.notify("reload", spec).await?;
    succeeded(&told)?;
    let complete = condition_of(&told, condition::COMPLETE);
    assert_eq!(complete, Some(("True".to_owned(), reason::NO_MATCHING_NOTIFIER.to_owned())));
    ensure!(undone(&told).is_none_or(|why| why == reason::NOTHING_TO_UNDO), "{told:?}");
    Ok(())
}

pub(crate) async fn an_undo_that_nobody_declares_keeps_the_handler_from_running(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").notifier("main", "freeze", &record("freeze")).build()).await?;
    let spec = json!({"podName": "box", "notifier": "freeze", "undo": {"notifier": "thaw"}});
    let (kind, message) = error_of(&ctx.notify("freeze", spec).await?)?;
    assert_eq!(kind, ErrorType::UndoNotDeclared, "{message}");
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|status| status.restart_count).sum()
}
