//! A snapshot's hooks: in their order, where the claims are used; and what happens when one does not freeze.

use anyhow::{Result, ensure};
use boathook_api::{
    ExecutionHook,
    application_snapshot::{Consistency, Phase},
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, failed_for, failure, is_complete, of_data, status},
        conditions::said,
        execution_hooks::{freezing, freezing_as, mains, shell_within, with},
        recording::{record, recorder_on},
    },
    claims::claim,
    pods::pod,
    snapshots::VolumeSnapshot,
};
use kube::api::ListParams;
use serde_json::{Value, json};

/// What never freezes.
fn failing() -> Value {
    let fails = format!("{}; echo no >&2; exit 3", record("freeze"));
    with(freezing(), json!({"preAction": shell_within(&fails, 10)}))
}

pub(crate) async fn hooks_freeze_in_order_and_thaw_in_reverse(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    for name in ["first", "second", "third"] {
        ctx.create_template(name, freezing_as(&format!("-{name}"))).await?;
    }
    let taken = ctx.take("nightly", of_data([by("first"), by("second"), by("third")])).await?;
    is_complete(&taken, Consistency::Application)?;
    let frozen = ["freeze-first", "freeze-second", "freeze-third"];
    let thawed = ["thaw-third", "thaw-second", "thaw-first"];
    assert_eq!(ctx.recorded("box").await?, [frozen, thawed].concat());
    assert_eq!(ctx.restored_record("nightly").await?, frozen);
    Ok(())
}

/// Not the pods that do not mount it, and not the containers either.
pub(crate) async fn without_a_target_the_containers_that_mount_the_claim_are_meant(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    ctx.run_pod(pod("elsewhere", ctx.images().shell).idle().build()).await?;
    for name in ["a", "b"] {
        // The second container is made before the claim is mounted in the first.
        let pod = pod(name, ctx.images().shell).idle().also("side").mount_claim("data", "/log");
        ctx.run_pod(pod.env_from_field("POD", "metadata.name").build()).await?;
    }
    ctx.create_template("quiet", freezing_as("-$POD")).await?;
    let taken = ctx.take("nightly", of_data([by("quiet")])).await?;
    is_complete(&taken, Consistency::Application)?;
    let parts = status(&taken).hooks.remove(0).containers;
    let mut parts: Vec<_> = parts.into_iter().map(|part| (part.pod_name, part.container_name)).collect();
    parts.sort();
    let mains = ["a", "b"].map(|pod| (pod.to_owned(), "main".to_owned()));
    assert_eq!(parts, mains);
    let mut lines = ctx.recorded("a").await?;
    lines[..2].sort();
    lines[2..].sort();
    assert_eq!(lines, ["freeze-a", "freeze-b", "thaw-a", "thaw-b"]);
    Ok(())
}

pub(crate) async fn a_hook_that_does_not_freeze_fails_the_snapshot_and_nothing_is_cut(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("outer", freezing_as("-outer")).await?;
    ctx.create_template("failing", failing()).await?;
    ctx.create_template("never", freezing_as("-never")).await?;
    let failed = ctx.take("nightly", of_data([by("outer"), by("failing"), by("never")])).await?;
    failed_for(&failed, reason::HOOK_FAILED)?;
    let (_, message) = failure(&failed).unwrap_or_default();
    ensure!(message.contains("`failing`") && message.contains("`box`"), "it does not say where: {message}");
    let mut lines = ctx.recorded("box").await?;
    lines.dedup();
    assert_eq!(lines, ["freeze-outer", "freeze", "thaw", "thaw-outer"]);
    let snapshots = ctx.api::<VolumeSnapshot>().list(&ListParams::default()).await?.items;
    ensure!(snapshots.is_empty(), "something was cut: {snapshots:?}");
    // The one that failed stays, for a person to read.
    let names = status(&failed).execution_hook_names;
    ctx.gone::<ExecutionHook>(&names[0]).await?;
    assert_eq!(ctx.hooks_there().await?, [names[1].clone()]);
    Ok(())
}

/// Whoever may create hooks can read how the next one will be called.
pub(crate) async fn a_hook_that_somebody_else_made_first_fails_the_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let slow = format!("{}; until [ -e log/go ]; do sleep 0.1; done", record("freeze"));
    ctx.create_template("slow", with(freezing(), json!({"preAction": shell_within(&slow, 60)}))).await?;
    ctx.create_template("quiet", freezing_as("-quiet")).await?;
    ctx.create_template("harmless", json!({"preAction": shell_within("true", 60)})).await?;
    ctx.create_application_snapshot("nightly", of_data([by("slow"), by("quiet")])).await?;
    let second = ctx.hook_name("nightly", 1).await?;
    ctx.records("box", "freeze").await?;
    ctx.freeze(&second, with(mains(["box"]), by("harmless"))).await?;
    ctx.shell("box", "touch log/go").await?;
    let failed = ctx.over("nightly").await?;
    failed_for(&failed, reason::HOOK_FAILED)?;
    let (_, message) = failure(&failed).unwrap_or_default();
    ensure!(message.contains(&second) && message.contains("delete it"), "it does not say what to do: {message}");
    let mut lines = ctx.recorded("box").await?;
    // Whoever was ended midway is thawed once more.
    lines.dedup();
    assert_eq!(lines, ["freeze", "thaw"]);
    let snapshots = ctx.api::<VolumeSnapshot>().list(&ListParams::default()).await?.items;
    ensure!(snapshots.is_empty(), "something was cut: {snapshots:?}");
    Ok(())
}

pub(crate) async fn a_freeze_that_takes_too_long_is_taken_back(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let slow = format!("{}; sleep 8", record("freeze"));
    ctx.create_template("slow", with(freezing(), json!({"preAction": shell_within(&slow, 60)}))).await?;
    let failed = ctx.take("nightly", with(of_data([by("slow")]), json!({"freezeTimeoutSeconds": 4}))).await?;
    failed_for(&failed, reason::FREEZE_TIMED_OUT)?;
    let lines = ctx.recorded("box").await?;
    // On a busy machine it may be ended before it has begun.
    let taken_back = lines == ["freeze", "thaw"] || lines == ["thaw"];
    ensure!(lines.is_empty() || taken_back, "{lines:?}");
    Ok(())
}

pub(crate) async fn what_may_be_crash_consistent_is_cut_all_the_same_and_says_so(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("failing", failing()).await?;
    let crash = json!({"onHookFailure": "CrashConsistent"});
    let taken = ctx.take("nightly", with(of_data([by("failing")]), crash.clone())).await?;
    is_complete(&taken, Consistency::Crash)?;
    assert_eq!(failure(&taken).map(|(reason, _)| reason).as_deref(), Some(reason::HOOK_FAILED));
    assert_eq!(ctx.consistency_mark("nightly").await?.as_deref(), Some("Crash"));
    assert_eq!(ctx.recorded("box").await?.last().map(String::as_str), Some("thaw"));

    let taken = ctx.take("weekly", with(of_data([by("missing")]), crash)).await?;
    is_complete(&taken, Consistency::Crash)?;
    Ok(())
}

pub(crate) async fn what_cannot_be_cut_is_refused_before_anything_is_frozen(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let missing = json!({"source": {"persistentVolumeClaimName": "gone"}, "executionHookInfos": [by("quiet")]});
    failed_for(&ctx.take("no-claim", missing).await?, reason::CLAIM_NOT_FOUND)?;
    let none = json!({"source": {"selector": {"matchLabels": {"app": "db"}}}, "executionHookInfos": [by("quiet")]});
    failed_for(&ctx.take("no-claims", none).await?, reason::CLAIM_NOT_FOUND)?;
    failed_for(&ctx.take("no-template", of_data([by("mysql")])).await?, reason::TEMPLATE_NOT_FOUND)?;
    ctx.create(&boathook_tests::snapshots::snapshot("taken", "data")).await?;
    failed_for(&ctx.take("taken", of_data([by("quiet")])).await?, reason::SNAPSHOT_EXISTS)?;
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

pub(crate) async fn two_snapshots_of_one_claim_come_one_after_the_other(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    // With equal hooks they would share one freeze.
    for name in ["quiet", "still"] {
        ctx.create_template(name, freezing()).await?;
    }
    let storage = ctx.silent_storage().await?;
    let spec = with(of_data([by("quiet")]), storage.fields());
    ctx.create_application_snapshot("first", spec).await?;
    ctx.in_phase("first", Phase::Cutting).await?;
    ctx.create_application_snapshot("second", of_data([by("still")])).await?;
    let waits = |object: &boathook_api::ApplicationSnapshot| {
        said(&status(object).conditions, condition::FROZEN).is_some_and(|(_, why)| why == reason::WAITING)
    };
    ctx.watch_until(DEADLINE, "second", "waits", waits).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    storage.cuts("first").await?;
    is_complete(&ctx.over("second").await?, Consistency::Application)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw", "freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn several_claims_are_frozen_together_and_cut_at_once(ctx: Ctx, _: Executor) -> Result<()> {
    for name in ["data", "wal"] {
        ctx.create(&claim(name).label("app", "db").build()).await?;
    }
    ctx.run_pod(recorder_on(&ctx, "data", "box").mount_claim("wal", "/wal").build()).await?;
    let in_both = |word: &str| format!("{}; echo {word} >> wal/lines", record(word));
    let spec = json!({
        "preAction": shell_within(&in_both("freeze"), 60),
        "postAction": shell_within(&in_both("thaw"), 60),
        "expirationSeconds": 3600,
    });
    ctx.create_template("quiet", spec).await?;
    let source = json!({"selector": {"matchLabels": {"app": "db"}}});
    let taken = ctx.take("nightly", json!({"source": source, "executionHookInfos": [by("quiet")]})).await?;
    is_complete(&taken, Consistency::Application)?;
    for (claim, record) in ["data", "wal"].into_iter().zip(status(&taken).snapshots) {
        let name = format!("nightly-{claim}");
        assert_eq!((record.persistent_volume_claim_name.as_str(), &record.volume_snapshot_name), (claim, &name));
        assert_eq!(ctx.restored_record(&name).await?, ["freeze"], "{name}");
        assert_eq!(ctx.consistency_mark(&name).await?.as_deref(), Some("Application"));
    }
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}
