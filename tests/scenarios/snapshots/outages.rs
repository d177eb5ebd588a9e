//! A process of Boathook is away in the middle: what was frozen is thawed, and nothing is called better than it is known
//! to be.

use anyhow::{Result, ensure};
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{Consistency, Phase},
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        application_snapshots::{by, failure, is_complete, of_data},
        execution_hooks::{condition_of, freezing, mains, part_of, shell, status, with},
        host::a_long_time,
        installation::Installation,
        recording::{record, recorder},
        running::Running,
    },
    snapshots::VolumeSnapshot,
};
use kube::api::DeleteParams;
use serde_json::json;

/// It did its work, and nobody heard that it had: it is not run again, and taken back.
pub(crate) async fn a_pre_action_whose_reply_is_lost_is_taken_back(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let frozen = format!("{}; exec sleep {}", record("freeze"), a_long_time());
    ctx.create_hook("db", with(with(freezing(), json!({"preAction": shell(&frozen)})), mains(["box"]))).await?;
    ctx.records("box", "freeze").await?;
    let left = running.kill_executor(&installation).await?;
    let running = Running::revive(&installation, left).await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(status(&thawed).pre_action_succeed, Some(false));
    let (_, why) = condition_of(&thawed, condition::FROZEN).unwrap_or_default();
    assert_eq!(why, reason::PRE_ACTION_FAILED, "{thawed:?}");
    let before = part_of(&thawed, "box")?.pre_action_status.unwrap_or_default();
    ensure!(before.error.is_some_and(|error| error.message.contains("may have run")), "{thawed:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    running.stop().await
}

/// Clocks are not compared: only whoever began a freeze knows whether its time was over.
pub(crate) async fn a_snapshot_that_outlives_its_controller_is_consistent_only_without_an_expiry(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let mut running = Running::start(&installation, executor).await?;
    ctx.run_box_on_data().await?;
    ctx.create_template("expires", freezing()).await?;
    ctx.create_template("never", with(freezing(), json!({"expirationSeconds": null}))).await?;
    let storage = ctx.silent_storage().await?;
    for (template, consistency) in [("expires", Consistency::Crash), ("never", Consistency::Application)] {
        let spec = with(of_data([by(template)]), storage.fields());
        ctx.create_application_snapshot(template, spec).await?;
        ctx.in_phase(template, Phase::Cutting).await?;
        storage.asked_for(template).await?;
        running = running.replace_controller(&installation, executor).await?;
        storage.cuts(template).await?;
        let taken = ctx.over(template).await?;
        is_complete(&taken, consistency)?;
        let why = failure(&taken).map(|(why, _)| why);
        let wanted = (consistency == Consistency::Crash).then_some(reason::CONTROLLER_CHANGED);
        assert_eq!(why.as_deref(), wanted);
    }
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw", "freeze", "thaw"]);
    running.stop().await
}

/// Asked for while nobody is there: whoever comes next takes it back.
pub(crate) async fn a_snapshot_deleted_while_the_controller_is_down_is_thawed(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let running = Running::start(&installation, executor).await?;
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    let spec = with(of_data([by("quiet")]), storage.fields());
    ctx.create_application_snapshot("nightly", spec).await?;
    storage.asked_for("nightly").await?;
    let Running { controller, agent } = running;
    controller.kill().await?;
    installation.bury_leader().await?;
    ctx.api::<ApplicationSnapshot>().delete("nightly", &DeleteParams::default()).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    let controller = installation.controller(executor, &[]).await?;
    ctx.gone::<ApplicationSnapshot>("nightly").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ctx.gone::<VolumeSnapshot>("nightly").await?;
    Running { controller, agent }.stop().await
}
