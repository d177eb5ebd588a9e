//! Snapshots of a database under load: without hooks, with them, and with the one who would thaw it dead.

use anyhow::{Context, Result, bail, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate,
    application_snapshot::{Consistency, Phase},
    volume_snapshot::VolumeSnapshot,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    LOOK_AGAIN, Story,
    database::{self, CLAIM, NAME, Report},
    objects::{create, is_ready, reached},
};
use crate::output::{duration::shown, plain::in_words};

/// Of so many snapshots under load one is torn, far more than surely.
const TRIES: usize = 10;

/// The agent thaws a frozen database after this long, also without a controller. A busy machine takes seconds to kill the
/// controller, and the lease of the dead one lasts longer than this.
const EXPIRATION_SECONDS: u32 = 10;

/// The name of what is frozen for the cut.
pub(super) const WITH_HOOKS: &str = "with-hooks";

fn problems(report: &Report) -> String {
    let all: Vec<_> = report.problems.iter().map(|problem| format!("{}: {}", problem.file, problem.what)).collect();
    all.join("; ")
}

/// Cuts without asking the database, until a copy is torn.
pub(super) async fn without_hooks(story: &mut Story) -> Result<String> {
    let client = story.client();
    story.teller.say("cuts a VolumeSnapshot while it writes, and restores it into a new claim")?;
    for name in (1..=TRIES).map(|number| format!("plain-{number}")) {
        let source = json!({"persistentVolumeClaimName": CLAIM});
        create::<VolumeSnapshot>(&client, json!({"metadata": {"name": name}, "spec": {"source": source}})).await?;
        let cut = reached::<VolumeSnapshot>(&client, &name, is_ready);
        story.teller.wait(&format!("cutting `{name}`"), cut).await?;
        let restored = database::verify_restored(&client, &name);
        let report = story.teller.wait(&format!("reading the copy of `{name}`"), restored).await?;
        if report.torn {
            for problem in &report.problems {
                story.teller.say_odd(&format!("`{name}`, {}: {}", problem.file, problem.what))?;
            }
            return Ok(format!("torn after {} records", report.records));
        }
        story.teller.say(&format!("`{name}` is whole, by chance: once more"))?;
    }
    bail!("none of {TRIES} copies was torn")
}

/// Freezes, cuts and thaws, and reads every record of the copy.
pub(super) async fn with_hooks(story: &mut Story) -> Result<String> {
    let client = story.client();
    let spec = json!({"preAction": database::freeze(), "postAction": database::thaw(), "expirationSeconds": 300});
    create::<ExecutionHookTemplate>(&client, json!({"metadata": {"name": NAME}, "spec": spec})).await?;
    story.teller.say("ApplicationSnapshot: freezes the pods that mount the claim, cuts, thaws")?;
    let hooks = json!([{"executionHookTemplateName": NAME}]);
    let spec = json!({"source": {"persistentVolumeClaimName": CLAIM}, "executionHookInfos": hooks});
    create::<ApplicationSnapshot>(&client, json!({"metadata": {"name": WITH_HOOKS}, "spec": spec})).await?;
    let is_over = |snapshot: &ApplicationSnapshot| snapshot.status.as_ref().is_some_and(|s| s.phase.is_terminal());
    let over = reached(&client, WITH_HOOKS, is_over);
    let snapshot = story.teller.wait("freezing, cutting, thawing", over).await?;
    let status = snapshot.status.clone().unwrap_or_default();
    story.taken = Some(snapshot);
    if let Some(failure) = &status.failure {
        bail!("{}: {}", in_words(&status.phase), failure.message);
    }
    ensure!(status.phase == Phase::Complete, "its phase is {}", in_words(&status.phase));
    ensure!(
        status.consistency == Some(Consistency::Application),
        "its consistency is {}",
        in_words(&status.consistency)
    );
    let window = status.freeze_window.and_then(|window| window.duration).context("it says nothing of the freeze")?;
    story.teller.say(&format!("complete, consistency Application, frozen for {window}"))?;

    let frozen_at = database::frozen_at(&client).await?;
    let after = story.teller.wait("waiting for its next record", database::writes_after(&client, frozen_at)).await?;
    ensure!(!after.frozen, "the database is still frozen");
    story.teller.say(&format!("the database goes on: {} records by now", after.records))?;

    let cut = reached::<VolumeSnapshot>(&client, WITH_HOOKS, is_ready);
    story.teller.wait("waiting for the snapshot", cut).await?;
    let report = story.teller.wait("reading the copy", database::verify_restored(&client, WITH_HOOKS)).await?;
    ensure!(!report.torn, "the copy is torn: {}", problems(&report));
    let (records, of) = (report.records, frozen_at);
    ensure!(records == of, "the copy has {records} records, and the database was frozen with {of}");
    Ok(format!("whole: all {records} records of the freeze, each verified; frozen for {window}"))
}

/// Kills the controller while the database is frozen.
pub(super) async fn killed_controller(story: &mut Story) -> Result<String> {
    let client = story.client();
    let spec = json!({
        "preAction": database::freeze(),
        "postAction": database::thaw(),
        "expirationSeconds": EXPIRATION_SECONDS,
        "podContainerNamesList": [{"podName": NAME, "containerNames": [NAME]}],
    });
    story.teller.say(&format!("ExecutionHook `killed`: freezes, and expires after {EXPIRATION_SECONDS} s"))?;
    create::<ExecutionHook>(&client, json!({"metadata": {"name": "killed"}, "spec": spec})).await?;
    let frozen = story.teller.wait("freezing", until_frozen(&client, true)).await?;
    let killed = Instant::now();
    let dead = story.kill_controller().await?;
    let still = database::status(&client).await?;
    ensure!(still.frozen, "it was thawed before the controller was dead: this machine is too slow to show it");
    let records = frozen.records;
    story
        .teller
        .say_odd(&format!("kill -9 {dead}: the controller is dead, the database frozen at {records} records"))?;
    let next = story.start_controller()?.pid();
    story.teller.say(&format!("process {next} is to take its place, once the lease of the dead one has ended"))?;

    story
        .teller
        .wait("waiting until the hook expires, with no controller leading", until_frozen(&client, false))
        .await?;
    let took = shown(killed.elapsed());
    let after = story.teller.wait("waiting for its next record", database::writes_after(&client, records)).await?;
    story.teller.say(&format!("thawed by the node's agent {took} later, {} records by now", after.records))?;

    story.controller_leads().await?;
    let is_thawed =
        |hook: &ExecutionHook| hook.status.as_ref().is_some_and(|status| status.post_action_succeed == Some(true));
    story.teller.wait("waiting for the hook's record", reached(&client, "killed", is_thawed)).await?;
    story.teller.say(&format!("process {next} leads, and found the hook expired and thawed"))?;
    Ok(format!("thawed {took} after the kill, with no controller leading"))
}

async fn until_frozen(client: &kube::Client, wanted: bool) -> Result<database::Status> {
    loop {
        let status = database::status(client).await?;
        if status.frozen == wanted {
            return Ok(status);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
