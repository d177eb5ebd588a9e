//! What it is all for: snapshots of a database under load, each restored and read to the last record.

use anyhow::{Result, bail, ensure};
use boathook_api::{application_snapshot::Consistency, pod_notification::Executor};
use boathook_tests::{
    Ctx,
    boathook::application_snapshots::{by, is_complete},
    logbook::{self, FREEZE, Report, THAW},
    measure::Measure,
};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// So many copies without hooks are taken until one of them is torn.
const MOST_COPIES: usize = 20;

fn of_the_writer(hooks: &[Value]) -> Value {
    json!({"source": {"persistentVolumeClaimName": "writer"}, "executionHookInfos": hooks})
}

pub(crate) async fn snapshots_under_load_are_whole_with_hooks(ctx: Ctx, _: Executor) -> Result<()> {
    logbook::serve(&ctx, "writer").await?;
    let action = |command: [&str; 3]| json!({"exec": {"command": command}, "actionTimeoutSeconds": 60});
    let actions = json!({"preAction": action(FREEZE), "postAction": action(THAW), "expirationSeconds": 600});
    ctx.create_template("logbook", actions).await?;
    let mut records = Vec::new();
    for name in (1..=Measure::from_environment()?.copies()).map(|copy| format!("copy-{copy}")) {
        let before = logbook::status(&ctx, "writer").await?.records;
        is_complete(&ctx.take(&name, of_the_writer(&[by("logbook")])).await?, Consistency::Application)?;
        let after = logbook::status(&ctx, "writer").await?;
        ensure!(!after.frozen && after.holders == 0, "the database is frozen still: {after:?}");
        // Before the next is cut: the CSI driver of the real cluster knows only the newest snapshot of a volume.
        let copy = restored(&ctx, &name).await?;
        ensure!(!copy.torn, "`{name}` is torn: {copy:?}");
        let between = before..=after.records;
        ensure!(between.contains(&copy.records), "`{name}` has {} records, not {between:?}", copy.records);
        records.push(copy.records);
    }
    // There was load: each has more than the one before.
    ensure!(records.is_sorted_by(|earlier, later| earlier < later), "{records:?}");
    Ok(())
}

/// Else the other scenario would show nothing.
pub(crate) async fn a_snapshot_under_load_is_torn_without_hooks(ctx: Ctx, _: Executor) -> Result<()> {
    logbook::serve(&ctx, "writer").await?;
    for name in (1..=MOST_COPIES).map(|copy| format!("copy-{copy}")) {
        is_complete(&ctx.take(&name, of_the_writer(&[])).await?, Consistency::Crash)?;
        if restored(&ctx, &name).await?.torn {
            return Ok(());
        }
    }
    bail!("none of {MOST_COPIES} copies under load is torn")
}

/// What a copy is like; what read it does not stay.
async fn restored(ctx: &Ctx, snapshot: &str) -> Result<Report> {
    let report = logbook::verify_restored(ctx, snapshot).await?;
    ctx.delete_and_see_gone::<Pod>(snapshot).await?;
    Ok(report)
}
