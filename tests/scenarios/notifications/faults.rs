//! Killed again and again, at random moments and under load: no handler runs twice, everything comes to its end, and what
//! is owed is undone.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, bail, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{ErrorType, Executor, State},
    words::{EXECUTION_HOOK_LABEL, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        installation::Installation,
        notifications::{error_of, may_be_undone_once_more, pod_notification, state, status, undone},
        process::Process,
        recording::recorder,
        traces::{self, Traces, traced},
    },
    measure::Measure,
    random::Random,
};
use kube::ResourceExt;
use serde_json::{Value, json};

/// The pod that the handlers run in.
const BOX: &str = "box";

/// Two handlers in each round: one that is taken back when it is asked for, one by its time.
pub(crate) const EACH: [&str; 2] = ["asked", "timed"];

/// No later than this after its load was begun is a process killed: longer than a handler takes.
const LATEST: u64 = 300;

pub(crate) async fn whoever_is_killed_no_handler_runs_twice_and_all_is_undone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let mut random = Random::of_the_environment()?;
    ctx.run_pod(traced(recorder(&ctx, BOX)).build()).await?;
    let mut controller = installation.controller(executor, &[]).await?;
    let mut agent = match executor {
        Executor::Api => None,
        Executor::Agent => Some(installation.agent().await?),
    };
    let rounds = Measure::from_environment()?.kills();
    for round in 0..rounds {
        let asked = begin(&ctx, BOX, round).await?;
        // The moment is what is random: nothing is waited for.
        tokio::time::sleep(Duration::from_millis(random.below(LATEST))).await;
        if random.below(2) == 0 {
            ctx.request_undo(&asked).await?;
        }
        match agent.take_if(|_| random.below(2) == 0) {
            Some(killed) => agent = Some(replace_agent(&installation, killed).await?),
            None => controller = replace_controller(&installation, executor, controller).await?,
        }
    }
    let ended = all_ended(&ctx, rounds * EACH.len()).await?;
    controller.stop().await?;
    if let Some(agent) = agent {
        agent.stop().await?;
    }
    check(&ended, &ctx.traces(&[BOX]).await?, executor)
}

/// Creates the load of a round, and returns the name of one whose undo only runs when it is asked for. Each handler and
/// each undo leaves a trace with its name in the pod.
pub(crate) async fn begin(ctx: &Ctx, pod: &str, round: usize) -> Result<String> {
    for each in EACH {
        let name = format!("{each}-{round}");
        // It takes a moment, so that some are killed in the middle of it.
        let action = shell(&format!("{}; sleep 0.1", traces::done(&name)));
        let mut undo = json!({"action": shell(&traces::undone(&name))});
        if each == "timed" {
            undo["afterSeconds"] = 1.into();
        }
        let spec = json!({"podName": pod, "action": action, "startDeadlineSeconds": 600, "undo": undo});
        let object = pod_notification(&name, spec)?;
        ctx.when_admitted(&format!("`{name}` is admitted"), async || ctx.create(&object).await).await?;
    }
    Ok(format!("asked-{round}"))
}

fn shell(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}, "timeoutSeconds": 60})
}

async fn replace_controller(installation: &Installation, executor: Executor, killed: Process) -> Result<Process> {
    killed.kill().await?;
    installation.bury_leader().await?;
    installation.controller(executor, &[]).await
}

async fn replace_agent(installation: &Installation, killed: Process) -> Result<Process> {
    killed.kill().await?;
    installation.agent_again().await
}

/// Asks for every undo that was not asked for yet, and waits until none of these many owes anything. Those that hooks made
/// are theirs.
pub(crate) async fn all_ended(ctx: &Ctx, count: usize) -> Result<BTreeMap<String, PodNotification>> {
    let mut watch = ctx.watch::<PodNotification>("").await?;
    let ended = watch
        .until(DEADLINE, "every handler has ended", |seen| own(&seen.now).all(|object| state(object).is_terminal()))
        .await?;
    for object in own(&ended.now) {
        let name = &object.name_any();
        if !object.spec.undo_requested {
            ctx.request_undo(name).await?;
        }
    }
    let is_undone = |object: &PodNotification| {
        let undone = undone(object);
        status(object).claim.is_none()
            || [reason::UNDO_SUCCEEDED, reason::NOTHING_TO_UNDO].contains(&undone.as_deref().unwrap_or_default())
    };
    let is_free = |object: &PodNotification| object.finalizers().is_empty() || may_be_undone_once_more(object);
    let seen = watch
        .until(DEADLINE, "every undo that is owed has run", |seen| {
            own(&seen.now).all(|object| is_undone(object) && is_free(object))
        })
        .await?;
    let ended: BTreeMap<_, _> = own(&seen.now).map(|object| (object.name_any(), object.clone())).collect();
    ensure!(ended.len() == count, "{} objects are there, not {count}", ended.len());
    Ok(ended)
}

fn own(all: &BTreeMap<String, PodNotification>) -> impl Iterator<Item = &PodNotification> {
    all.values().filter(|object| !object.labels().contains_key(EXECUTION_HOOK_LABEL))
}

/// Compares the traces in the pod with the status of the objects.
pub(crate) fn check(ended: &BTreeMap<String, PodNotification>, traces: &Traces, executor: Executor) -> Result<()> {
    let (mut ran, mut failed) = (0, 0);
    for (name, object) in ended {
        let runs = traces.runs(name);
        ensure!(runs <= 1, "`{name}` ran {runs} times");
        match state(object) {
            State::Succeeded => ensure!(runs == 1, "`{name}` succeeded, it says, and never ran"),
            State::Failed => {
                let (kind, message) = error_of(object)?;
                let never_ran = matches!(kind, ErrorType::Revoked | ErrorType::StartDeadlineExceeded);
                ensure!(!(never_ran && traces.ran(name)), "`{name}` ran, and says that it did not: {message}");
                failed += 1;
            }
            State::New => bail!("`{name}` has not ended"),
        }
        let nothing_to_undo = undone(object).as_deref() == Some(reason::NOTHING_TO_UNDO);
        ensure!(!(nothing_to_undo && traces.ran(name)), "`{name}` ran, and says that there is nothing to undo");
        traces.is_taken_back(name, executor)?;
        ran += runs;
    }
    eprintln!("{ran} of {} handlers ran, and {failed} failed", ended.len());
    Ok(())
}
