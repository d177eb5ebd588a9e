//! When a snapshot is called application-consistent, and when not.

use anyhow::{Result, ensure};
use boathook_api::{
    ExecutionHook,
    application_snapshot::Consistency,
    pod_notification::Executor,
    words::{EXECUTION_HOOK_NAMES, condition},
};
use boathook_tests::{
    Ctx,
    boathook::{
        application_snapshots::{by, is_complete, of_data, status},
        conditions::is_true,
        execution_hooks::freezing,
    },
    snapshots::VolumeSnapshot,
};
use kube::ResourceExt;

pub(crate) async fn a_snapshot_holds_what_was_frozen_and_says_so(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let taken = ctx.take("nightly", of_data([by("quiet")])).await?;
    is_complete(&taken, Consistency::Application)?;
    let status = status(&taken);
    ensure!(is_true(&status.conditions, condition::COMPLETE), "{status:?}");
    ensure!(!is_true(&status.conditions, condition::FAILED), "{status:?}");
    ensure!(is_true(&status.conditions, condition::THAWED), "{status:?}");
    ensure!(status.freeze_window.is_some_and(|window| window.duration.is_some()), "{taken:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    // The copy was cut between the two.
    assert_eq!(ctx.restored_record("nightly").await?, ["freeze"]);
    assert_eq!(ctx.consistency_mark("nightly").await?.as_deref(), Some("Application"));
    let snapshot: VolumeSnapshot = ctx.api().get("nightly").await?;
    assert_eq!(snapshot.annotations().get(EXECUTION_HOOK_NAMES), Some(&status.execution_hook_names.join(",")));
    // What did all that it should is not needed any more.
    for hook in &status.execution_hook_names {
        ctx.gone::<ExecutionHook>(hook).await?;
    }
    Ok(())
}
