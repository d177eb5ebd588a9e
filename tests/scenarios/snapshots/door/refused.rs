//! What is refused, with the reason that the person's own tool shows; and that nothing stays frozen for it.

use anyhow::{Result, ensure};
use boathook_api::{
    ApplicationSnapshot,
    pod_notification::Executor,
    words::{GROUP, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, failed_for, of_data},
        execution_hooks::{shell_within, with},
        installation::Installation,
        people::refusal,
        recording::record,
    },
    snapshots::{VolumeSnapshot, is_ready, snapshot},
};
use kube::ResourceExt;
use serde_json::json;

use super::{SECONDS, annotated, intent_of, intents, labelled, quick, refused};

pub(crate) async fn why_it_could_not_be_frozen_is_what_the_person_is_told(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let fails = format!("{}; echo disk is full >&2; exit 7", record("freeze"));
    // It is tried until its time is over, and then there must be time to say so.
    let spec = with(quick(), json!({"preAction": shell_within(&fails, 8)}));
    ctx.create_template("fails", spec).await?;
    let told = refused(&ctx, &labelled("nightly", "fails")).await?;
    assert_eq!((told.code, told.reason.as_str()), (403, "Forbidden"), "{told:?}");
    let intent = intent_of(&ctx, "nightly").await?;
    let see = format!("kubectl describe applicationsnapshot {intent}");
    for words in ["volume-snapshots.boathook.dev", "hook `fails`", "pod `box`", "exit code 7", &see] {
        ensure!(told.message.contains(words), "no `{words}` in: {}", told.message);
    }
    // It stays, for a person to read.
    let failed = ctx.over(&intent).await?;
    failed_for(&failed, reason::HOOK_FAILED)?;
    let lines = ctx.recorded("box").await?;
    ensure!(lines.last().is_some_and(|line| line == "thaw"), "{lines:?}");
    assert_eq!(ctx.api::<VolumeSnapshot>().get_opt("nightly").await?.map(|one| one.name_any()), None);
    ctx.delete_and_see_gone::<ApplicationSnapshot>(&intent).await
}

pub(crate) async fn what_cannot_be_done_is_refused_before_anything_is_frozen(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    let spec = with(quick(), json!({"preAction": shell_within(&record("freeze"), 60)}));
    ctx.create_template("slow", spec).await?;
    let twice = "[{executionHookTemplateName: quick}, {executionHookTemplateName: quick}]";
    let both = format!("{} s", 2 * SECONDS);
    let mut of_no_class = labelled("nightly", "quick");
    of_no_class.spec.volume_snapshot_class_name = Some("fats".to_owned());
    let cases = [
        (of_no_class, 403, vec!["VolumeSnapshotClass `fats` not found"]),
        (labelled("nightly", "slow"), 403, vec!["`slow`", "60 s", "actionTimeoutSeconds", "ApplicationSnapshot"]),
        (annotated("nightly", twice), 403, vec![both.as_str(), "actionTimeoutSeconds"]),
        (labelled("nightly", "absent"), 403, vec!["ExecutionHookTemplate `absent` not found", "create it"]),
        (annotated("nightly", "quick"), 422, vec!["boathook.dev/execution-hook-infos", "[{executionHookTemplateName"]),
        (annotated("nightly", "[{template: quick}]"), 422, vec!["entry 0", "`template`"]),
    ];
    for (marked, code, words) in cases {
        let told = refused(&ctx, &marked).await?;
        assert_eq!(told.code, code, "{told:?}");
        for word in words {
            ensure!(told.message.contains(word), "no `{word}` in: {}", told.message);
        }
    }
    assert_eq!(intents(&ctx).await?, [""; 0]);
    let spec = with(of_data([by("quick")]), json!({"volumeSnapshotClassName": "fats"}));
    failed_for(&ctx.take("weekly", spec).await?, reason::SNAPSHOT_CLASS_NOT_FOUND)?;
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

pub(crate) async fn who_may_not_create_hooks_marks_no_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    let user = ctx.person("starbuck")?;
    user.may("snapshots", "snapshot.storage.k8s.io", "volumesnapshots", &["create"]).await?;
    user.in_force(async || user.create(&snapshot("plain", "data")).await).await?;
    let told = refusal(user.create(&labelled("nightly", "quick")).await)?;
    ensure!(told.contains("`create executionhooks`") && told.contains("starbuck"), "{told}");
    assert_eq!(intents(&ctx).await?, [""; 0]);
    assert_eq!(ctx.recorded("box").await?, [""; 0]);

    // Neither commands nor snapshots of Boathook's own: the template is somebody else's.
    user.may("hooks", GROUP, "executionhooks", &["create"]).await?;
    user.in_force(async || user.create(&labelled("nightly", "quick")).await).await?;
    ctx.over(&intent_of(&ctx, "nightly").await?).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn with_boathook_down_plain_snapshots_are_taken_and_marked_ones_refused(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    controller.kill().await?;
    ctx.create(&snapshot("plain", "data")).await?;
    ctx.watch_until(DEADLINE, "plain", "is ready to use", is_ready).await?;
    let told = refused(&ctx, &labelled("nightly", "quick")).await?;
    ensure!(told.message.contains("volume-snapshots.boathook.dev"), "{told:?}");
    assert_eq!(ctx.api::<VolumeSnapshot>().get_opt("nightly").await?.map(|one| one.name_any()), None);
    installation.bury_leader().await
}
