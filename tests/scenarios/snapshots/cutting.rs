//! The cut: one that fails or hangs fails the snapshot, and thaws; and what comes late changes nothing.

use anyhow::{Result, ensure};
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{Consistency, Phase},
    pod_notification::Executor,
    words::reason,
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, failed_for, failure, is_complete, of_data},
        execution_hooks::{freezing, shell, with},
        recording::{record, recorder_on},
    },
    claims::claim,
    cluster::Choice,
    snapshots::{VolumeSnapshot, is_ready},
};
use kube::api::DeleteParams;
use serde_json::json;

pub(crate) async fn a_cut_that_fails_thaws_and_leaves_nothing(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    ctx.create_application_snapshot("nightly", with(of_data([by("quiet")]), storage.fields())).await?;
    storage.asked_for("nightly").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    storage.fails("nightly", "the pool is full").await?;
    let failed = ctx.over("nightly").await?;
    failed_for(&failed, reason::CUT_FAILED)?;
    let (_, message) = failure(&failed).unwrap_or_default();
    ensure!(message.contains("the pool is full"), "it does not say why: {message}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    // The storage would go on trying for ever.
    ctx.gone::<VolumeSnapshot>("nightly").await
}

pub(crate) async fn a_cut_that_comes_after_its_time_is_never_called_consistent(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    // Long enough for a busy snapshot controller to make the content; the embedded cluster's is quick.
    let seconds = match Choice::of_the_environment()? {
        Choice::Embedded => 15,
        Choice::Kubeconfig => 60,
    };
    let fields = with(storage.fields(), json!({"cutTimeoutSeconds": seconds}));
    ctx.create_application_snapshot("nightly", with(of_data([by("quiet")]), fields)).await?;
    let asked = storage.asked_for("nightly").await?;
    let failed = ctx.over("nightly").await?;
    failed_for(&failed, reason::CUT_TIMED_OUT)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ctx.gone::<VolumeSnapshot>("nightly").await?;
    storage.cuts_late(&asked).await?;
    // Whoever looks at the next one has seen what came before it.
    ctx.create_application_snapshot("weekly", with(of_data([by("quiet")]), storage.fields())).await?;
    storage.cuts("weekly").await?;
    ctx.in_phase("weekly", Phase::Complete).await?;
    let still: ApplicationSnapshot = ctx.api().get("nightly").await?;
    failed_for(&still, reason::CUT_TIMED_OUT)?;
    ensure!(still.status == failed.status, "it was changed after its end: {still:?}");
    Ok(())
}

/// It is cut, and its upload may take hours.
pub(crate) async fn the_thaw_does_not_wait_until_it_is_ready(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    ctx.create_application_snapshot("nightly", with(of_data([by("quiet")]), storage.fields())).await?;
    storage.cuts_and_uploads("nightly").await?;
    is_complete(&ctx.over("nightly").await?, Consistency::Application)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    let uploading: VolumeSnapshot = ctx.api().get("nightly").await?;
    ensure!(!is_ready(&uploading), "it was ready to use: {uploading:?}");
    storage.cuts("nightly").await?;
    ctx.watch_until(DEADLINE, "nightly", "is ready to use", is_ready).await?;
    assert_eq!(ctx.consistency_mark("nightly").await?.as_deref(), Some("Application"));
    Ok(())
}

pub(crate) async fn a_snapshot_deleted_before_the_cut_thaws_and_leaves_nothing(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    ctx.create_application_snapshot("nightly", with(of_data([by("quiet")]), storage.fields())).await?;
    storage.asked_for("nightly").await?;
    ctx.delete_and_see_gone::<ApplicationSnapshot>("nightly").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ctx.gone::<VolumeSnapshot>("nightly").await
}

pub(crate) async fn a_snapshot_deleted_after_the_cut_thaws_and_keeps_what_was_cut(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let waits = format!("until [ -e log/loose ]; do sleep 0.1; done; {}", record("thaw"));
    ctx.create_template("slow", with(freezing(), json!({"postAction": shell(&waits)}))).await?;
    ctx.create_application_snapshot("nightly", of_data([by("slow")])).await?;
    ctx.in_phase("nightly", Phase::Thawing).await?;
    ctx.api::<ApplicationSnapshot>().delete("nightly", &DeleteParams::default()).await?;
    ctx.shell("box", "touch log/loose").await?;
    ctx.gone::<ApplicationSnapshot>("nightly").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    assert_eq!(ctx.restored_record("nightly").await?, ["freeze"]);
    assert_eq!(ctx.consistency_mark("nightly").await?.as_deref(), Some("Application"));
    assert_eq!(ctx.hooks_there().await?, [""; 0]);
    Ok(())
}

/// The storage of one has cut, that of the other hangs: nobody can use one without the other.
pub(crate) async fn of_several_claims_all_are_cut_or_none(ctx: Ctx, _: Executor) -> Result<()> {
    for name in ["data", "wal"] {
        ctx.create(&claim(name).label("app", "db").build()).await?;
    }
    ctx.run_pod(recorder_on(&ctx, "data", "box").mount_claim("wal", "/wal").build()).await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    let source = json!({"selector": {"matchLabels": {"app": "db"}}});
    let spec = json!({"source": source, "executionHookInfos": [by("quiet")]});
    ctx.create_application_snapshot("nightly", with(spec, storage.fields())).await?;
    storage.cuts("nightly-data").await?;
    storage.fails("nightly-wal", "the pool is full").await?;
    failed_for(&ctx.over("nightly").await?, reason::CUT_FAILED)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ctx.gone::<VolumeSnapshot>("nightly-data").await?;
    ctx.gone::<VolumeSnapshot>("nightly-wal").await
}
