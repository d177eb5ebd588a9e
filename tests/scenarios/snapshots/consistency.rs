//! When a snapshot is called application-consistent, and when not.

use anyhow::{Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::Consistency,
    pod_notification::Executor,
    words::{EXECUTION_HOOK_NAMES, SNAPSHOT_MARKS, condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        application_snapshots::{by, failed_for, failure, is_complete, of_data, status},
        conditions::{is_true, said},
        execution_hooks::{freezing, shell, with},
        people::refusal,
        recording::{ends_on_demand, ends_only_on_demand, record, recorder_on},
    },
    claims::claim,
    logbook::{self, HOLD},
    snapshots::{VolumeSnapshot, snapshot},
    storage::SilentStorage,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

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

pub(crate) async fn only_boathook_writes_a_verdict(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let user = ctx.person("ishmael")?;
    user.may("snapshots", "snapshot.storage.k8s.io", "volumesnapshots", &["create", "patch"]).await?;
    user.in_force(async || user.create(&snapshot("plain", "data")).await).await?;
    for key in SNAPSHOT_MARKS {
        let verdict = json!({"metadata": {"annotations": {key: "Application"}}});
        let told = refusal(user.patch::<VolumeSnapshot>("plain", verdict.clone()).await)?;
        ensure!(told.contains(key), "{told}");
        // Neither may who may do everything.
        let (admin, params) = (ctx.api::<VolumeSnapshot>(), PatchParams::default());
        ensure!(refusal(admin.patch("plain", &params, &Patch::Merge(&verdict)).await)?.contains(key));
        let mut new = snapshot("forged", "data");
        new.annotations_mut().insert(key.to_owned(), "Application".to_owned());
        ensure!(refusal(user.create(&new).await)?.contains(key));
    }
    assert_eq!(ctx.consistency_mark("plain").await?, None);
    Ok(())
}

/// A snapshot of the claim `data` whose cut is the scenario's to make; everything is frozen when this returns.
async fn frozen_before_the_cut(ctx: &Ctx) -> Result<SilentStorage> {
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    let spec = with(of_data([by("quiet")]), storage.fields());
    ctx.create_application_snapshot("nightly", spec).await?;
    storage.asked_for("nightly").await?;
    Ok(storage)
}

/// It was cut, and is called crash-consistent for this reason.
async fn only_crash(ctx: &Ctx, reason: &str) -> Result<ApplicationSnapshot> {
    let taken = ctx.over("nightly").await?;
    is_complete(&taken, Consistency::Crash)?;
    let (why, message) = failure(&taken).unwrap_or_default();
    ensure!(why == reason, "it is for another reason, {why}: {message}");
    assert_eq!(ctx.consistency_mark("nightly").await?.as_deref(), Some("Crash"));
    Ok(taken)
}

pub(crate) async fn a_container_restarted_while_frozen_is_thawed_and_not_consistent(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    ctx.run_pod(ends_on_demand(recorder_on(&ctx, "data", "box")).build()).await?;
    let storage = frozen_before_the_cut(&ctx).await?;
    ctx.ask_to_end("box").await;
    ctx.restarted("box", 1).await?;
    storage.cuts("nightly").await?;
    let taken = only_crash(&ctx, reason::CONTAINER_RESTARTED).await?;
    // In the new instance: a frozen filesystem outlives the process.
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ensure!(is_true(&status(&taken).conditions, condition::THAWED), "{taken:?}");
    Ok(())
}

pub(crate) async fn a_pod_deleted_while_frozen_is_not_waited_for(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    ctx.run_pod(ends_only_on_demand(recorder_on(&ctx, "data", "box")).build()).await?;
    frozen_before_the_cut(&ctx).await?;
    let pods: Api<Pod> = ctx.api();
    pods.delete("box", &DeleteParams::default()).await?;
    // It is thawed within its grace period, so there is nothing left to cut.
    let failed = ctx.over("nightly").await?;
    failed_for(&failed, reason::HOOK_FAILED)?;
    ensure!(is_true(&status(&failed).conditions, condition::THAWED), "{failed:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    pods.delete("box", &DeleteParams::default().grace_period(0)).await?;
    ctx.gone::<VolumeSnapshot>("nightly").await
}

pub(crate) async fn a_pod_that_mounts_the_claim_while_frozen_spoils_it(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let storage = frozen_before_the_cut(&ctx).await?;
    ctx.run_pod(recorder_on(&ctx, "data", "late").build()).await?;
    storage.cuts("nightly").await?;
    let taken = only_crash(&ctx, reason::NEW_POD).await?;
    let (_, message) = failure(&taken).unwrap_or_default();
    ensure!(message.contains("`late`"), "{message}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn a_running_pod_without_hook_needs_a_voucher(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.run_pod(recorder_on(&ctx, "data", "beside").build()).await?;
    ctx.create_template("quiet", freezing()).await?;
    let only_box = json!({"podContainerNamesList": [{"podName": "box", "containerNames": ["main"]}]});
    let spec = of_data([with(by("quiet"), only_box)]);
    ctx.take("nightly", spec.clone()).await?;
    let taken = only_crash(&ctx, reason::POD_NOT_FROZEN).await?;
    let (_, message) = failure(&taken).unwrap_or_default();
    ensure!(message.contains("pod `beside`"), "{message}");
    let taken = ctx.take("vouched", with(spec, json!({"otherPods": "Vouched"}))).await?;
    is_complete(&taken, Consistency::Application)?;
    assert_eq!(status(&taken).vouched_pods, ["beside"]);
    Ok(())
}

pub(crate) async fn a_hook_that_expires_before_the_cut_fails_the_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("brief", with(freezing(), json!({"expirationSeconds": 20}))).await?;
    let storage = ctx.silent_storage().await?;
    let failed = ctx.take("nightly", with(of_data([by("brief")]), storage.fields())).await?;
    failed_for(&failed, reason::EXPIRED)?;
    let mut lines = ctx.recorded("box").await?;
    // At its expiry and when it is asked for: a thaw runs at least once.
    lines.dedup();
    assert_eq!(lines, ["freeze", "thaw"]);
    ctx.gone::<VolumeSnapshot>("nightly").await
}

/// With nothing that writes, there is nothing to freeze.
pub(crate) async fn a_claim_that_nobody_uses_needs_no_hooks(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    ctx.shell("box", "echo before >> log/lines; sync").await?;
    ctx.delete_and_see_gone::<Pod>("box").await?;
    let taken = ctx.take("nightly", of_data([by("quiet")])).await?;
    is_complete(&taken, Consistency::Application)?;
    let frozen = said(&status(&taken).conditions, condition::FROZEN);
    assert_eq!(frozen.map(|(_, why)| why).as_deref(), Some(reason::NOT_IN_USE));
    assert_eq!(ctx.hooks_there().await?, [""; 0]);
    assert_eq!(ctx.restored_record("nightly").await?, ["before"]);
    Ok(())
}

pub(crate) async fn a_claim_that_comes_into_use_before_the_cut_is_not_consistent(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    let storage = frozen_before_the_cut(&ctx).await?;
    ctx.run_pod(recorder_on(&ctx, "data", "late").build()).await?;
    storage.cuts("nightly").await?;
    only_crash(&ctx, reason::NEW_POD).await?;
    assert_eq!(ctx.recorded("late").await?, [""; 0]);
    Ok(())
}

/// What is attached to a node may be written to, though nobody here knows by whom.
pub(crate) async fn a_claim_that_is_attached_to_a_node_is_in_use(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    ctx.create_template("quiet", freezing()).await?;
    ctx.attach("data").await?;
    let failed = ctx.take("nightly", of_data([by("quiet")])).await?;
    failed_for(&failed, reason::NO_TARGET)?;
    let (_, message) = failure(&failed).unwrap_or_default();
    ensure!(message.contains("`data` is attached to a node"), "it does not say why: {message}");
    let taken = ctx.take("weekly", of_data([])).await?;
    is_complete(&taken, Consistency::Crash)?;
    assert_eq!(failure(&taken).map(|(why, _)| why).as_deref(), Some(reason::NO_HOOKS));
    Ok(())
}

pub(crate) async fn a_claim_that_is_attached_before_the_cut_is_not_consistent(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    let storage = frozen_before_the_cut(&ctx).await?;
    ctx.attach("data").await?;
    storage.cuts("nightly").await?;
    only_crash(&ctx, reason::NEW_POD).await.map(drop)
}

/// The lock of a database that lives in a session.
pub(crate) async fn a_session_held_until_the_thaw_makes_it_consistent(ctx: Ctx, _: Executor) -> Result<()> {
    logbook::serve(&ctx, "data").await?;
    ctx.create_template("lock", held(&HOLD)).await?;
    let storage = ctx.silent_storage().await?;
    ctx.create_application_snapshot("nightly", with(of_data([by("lock")]), storage.fields())).await?;
    storage.asked_for("nightly").await?;
    let before = logbook::status(&ctx, "data").await?;
    ensure!(before.frozen && before.holders == 1, "nobody holds it before the cut: {before:?}");
    storage.cuts("nightly").await?;
    is_complete(&ctx.over("nightly").await?, Consistency::Application)?;
    assert_eq!(ctx.consistency_mark("nightly").await?.as_deref(), Some("Application"));
    let after = logbook::status(&ctx, "data").await?;
    ensure!(!after.frozen && after.holders == 0, "it is held still: {after:?}");
    ensure!(after.records >= before.records, "it lost records: {before:?}, {after:?}");
    Ok(())
}

pub(crate) async fn a_session_lost_before_the_cut_fails_the_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let fragile = format!("{}; echo READY; until [ -e log/lose ]; do sleep 0.1; done; exit 3", record("freeze"));
    let spec = with(held(&["sh", "-c", &fragile]), json!({"postAction": shell(&record("thaw"))}));
    ctx.create_template("lock", spec).await?;
    let storage = ctx.silent_storage().await?;
    ctx.create_application_snapshot("nightly", with(of_data([by("lock")]), storage.fields())).await?;
    storage.asked_for("nightly").await?;
    ctx.shell("box", "touch log/lose").await?;
    let failed = ctx.over("nightly").await?;
    failed_for(&failed, reason::SESSION_LOST)?;
    let (_, message) = failure(&failed).unwrap_or_default();
    ensure!(message.contains("pod `box`") && message.contains("exit code 3"), "it does not say how: {message}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    ctx.gone::<VolumeSnapshot>("nightly").await
}

/// What freezes as long as its session lasts, as a template has it.
fn held(command: &[&str]) -> Value {
    let lock = json!({"exec": {"command": command, "hold": true}, "actionTimeoutSeconds": 60});
    json!({"preAction": lock, "expirationSeconds": 3600})
}

pub(crate) async fn without_hooks_a_snapshot_of_what_is_used_is_crash_consistent(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let taken = ctx.take("nightly", of_data([])).await?;
    is_complete(&taken, Consistency::Crash)?;
    assert_eq!(failure(&taken).map(|(why, _)| why).as_deref(), Some(reason::NO_HOOKS));
    Ok(())
}
