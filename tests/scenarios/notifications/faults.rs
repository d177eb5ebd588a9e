//! Killed again and again, at random moments and under load: no handler runs twice, everything comes to its end, and what
//! is owed is undone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{Executor, State},
    words::reason,
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        installation::Installation,
        notifications::{may_be_undone_once_more, pod_notification, state, status, undone},
        process::Process,
        recording::recorder,
    },
    measure::Measure,
    random::Random,
};
use kube::ResourceExt;
use serde_json::{Value, json};

/// Two handlers in each round: one that is taken back when it is asked for, one by its time.
const EACH: [&str; 2] = ["asked", "timed"];

/// No later than this after its load was begun is a process killed: longer than a handler takes.
const LATEST: u64 = 300;

pub(crate) async fn whoever_is_killed_no_handler_runs_twice_and_all_is_undone(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let mut random = Random::of_the_environment()?;
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let mut controller = installation.controller(executor, &[]).await?;
    let mut agent = match executor {
        Executor::Api => None,
        Executor::Agent => Some(installation.agent().await?),
    };
    let rounds = Measure::from_environment()?.kills();
    for round in 0..rounds {
        let asked = begin(&ctx, round).await?;
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
    check(&ended, &ctx.recorded("box").await?)
}

/// Creates the load of a round, and returns the name of one whose undo only runs when it is asked for. Each handler and
/// each undo appends its own name to the pod's record.
async fn begin(ctx: &Ctx, round: usize) -> Result<String> {
    for each in EACH {
        let name = format!("{each}-{round}");
        // It takes a moment, so that some are killed in the middle of it.
        let action = shell(&format!("echo {name} >> log/lines; sleep 0.1"));
        let mut undo = json!({"action": shell(&format!("echo undo-{name} >> log/lines"))});
        if each == "timed" {
            undo["afterSeconds"] = 1.into();
        }
        let spec = json!({"podName": "box", "action": action, "startDeadlineSeconds": 600, "undo": undo});
        ctx.create(&pod_notification(&name, spec)?).await?;
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

/// Asks for every undo that was not asked for yet, and waits until none of these many owes anything.
async fn all_ended(ctx: &Ctx, count: usize) -> Result<BTreeMap<String, PodNotification>> {
    let mut watch = ctx.watch::<PodNotification>("").await?;
    let ended = watch
        .until(DEADLINE, "every handler has ended", |seen| seen.now.values().all(|object| state(object).is_terminal()))
        .await?;
    for (name, object) in &ended.now {
        if !object.spec.undo_requested {
            ctx.request_undo(name).await?;
        }
    }
    let is_undone = |object: &PodNotification| {
        status(object).claim.is_none() || undone(object).as_deref() == Some(reason::UNDO_SUCCEEDED)
    };
    let is_free = |object: &PodNotification| object.finalizers().is_empty() || may_be_undone_once_more(object);
    let seen = watch
        .until(DEADLINE, "every undo that is owed has run", |seen| {
            seen.now.values().all(|object| is_undone(object) && is_free(object))
        })
        .await?;
    ensure!(seen.now.len() == count, "{} objects are there", seen.now.len());
    Ok(seen.now.clone())
}

/// Holds what the pod recorded against what its objects say.
fn check(ended: &BTreeMap<String, PodNotification>, lines: &[String]) -> Result<()> {
    let mut ran = BTreeSet::new();
    for line in lines.iter().filter(|line| !line.starts_with("undo-")) {
        ensure!(ran.insert(line.as_str()), "`{line}` ran twice");
    }
    let mut failed = 0;
    for object in ended.values() {
        let name = object.name_any();
        match state(object) {
            State::Succeeded => ensure!(ran.contains(name.as_str()), "`{name}` succeeded, it says, and never ran"),
            State::Failed => failed += 1,
            State::New => bail!("`{name}` has not ended"),
        }
        let last = |word: &str| lines.iter().rposition(|line| line == word);
        if let Some(at) = last(&name) {
            let undone = last(&format!("undo-{name}"));
            ensure!(undone.is_some_and(|undone| undone > at), "`{name}` ran and was not undone after");
        }
    }
    eprintln!("{} of {} handlers ran, and {failed} failed", ran.len(), ended.len());
    Ok(())
}
