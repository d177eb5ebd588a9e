//! What is let through: frozen and called so if it is marked; and never touched if it is not, or will not be stored.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::Consistency,
    pod_notification::Executor,
    volume_snapshot::VolumeSnapshotContent,
    words::{EXECUTION_HOOK_NAMES, EXECUTION_HOOK_TEMPLATE_LABEL},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, is_complete, status},
        execution_hooks::{mains, with},
        recording::record,
    },
    snapshots::{VolumeSnapshot, is_ready, snapshot},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{annotated, freezing_by, intent_of, intents, labelled, quick, refused};

pub(crate) async fn a_marked_snapshot_is_held_until_it_is_frozen(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    let mut generated = labelled("", "quick");
    generated.metadata.name = None;
    generated.metadata.generate_name = Some("nightly-".to_owned());
    let marked = [
        annotated("by-annotation", "- executionHookTemplateName: quick"),
        annotated("by-json", &json!([with(by("quick"), mains(["box"]))]).to_string()),
        labelled("by-label", "quick"),
        generated,
    ];
    let mut expected: Vec<String> = Vec::new();
    for marked in marked {
        let stored = ctx.create(&marked).await?;
        expected.push("freeze".to_owned());
        let lines = ctx.recorded("box").await?;
        ensure!(lines.starts_with(&expected), "it was stored before it was frozen: {lines:?}");
        let name = stored.name_any();
        let taken = ctx.over(&intent_of(&ctx, &name).await?).await?;
        is_complete(&taken, Consistency::Application)?;
        assert_eq!(ctx.restored_record(&name).await?, expected, "the copy of `{name}` was not cut while frozen");
        expected.push("thaw".to_owned());
        assert_eq!(ctx.recorded("box").await?, expected);
        let said: VolumeSnapshot = ctx.api().get(&name).await?;
        assert_eq!(ctx.consistency_mark(&name).await?.as_deref(), Some("Application"));
        assert_eq!(said.annotations().get(EXECUTION_HOOK_NAMES), Some(&status(&taken).execution_hook_names.join(",")));
    }
    Ok(())
}

/// Nobody has to tidy up after a tool that knows nothing of Boathook.
pub(crate) async fn what_was_done_for_a_marked_snapshot_goes_with_it(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    ctx.create(&labelled("nightly", "quick")).await?;
    let intent = intent_of(&ctx, "nightly").await?;
    is_complete(&ctx.over(&intent).await?, Consistency::Application)?;
    let is_let_go = |object: &ApplicationSnapshot| object.finalizers().is_empty();
    ctx.watch_until(DEADLINE, &intent, "is let go", is_let_go).await?;
    ctx.delete_and_see_gone::<VolumeSnapshot>("nightly").await?;
    ctx.gone::<ApplicationSnapshot>(&intent).await?;
    assert_eq!(ctx.hooks_there().await?, [""; 0]);
    Ok(())
}

pub(crate) async fn two_marked_snapshots_at_once_share_one_freeze(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    let waits = format!("{}; until [ -e log/go ]; do sleep 0.1; done", record("freeze"));
    ctx.create_template("waits", freezing_by(&waits)).await?;
    let (one, other) = (labelled("one", "waits"), labelled("other", "waits"));
    let let_go = async {
        let follows = |object: &ApplicationSnapshot| status(object).shares_freeze_of.is_some();
        let mut all = ctx.watch::<ApplicationSnapshot>("").await?;
        all.until(DEADLINE, "one follows the other", |seen| seen.now.values().any(follows)).await?;
        ctx.shell("box", "touch log/go").await
    };
    let (first, second, let_go) = tokio::join!(ctx.create(&one), ctx.create(&other), let_go);
    first.and(second).and(let_go.map(drop))?;
    for name in ["one", "other"] {
        let taken = ctx.over(&intent_of(&ctx, name).await?).await?;
        is_complete(&taken, Consistency::Application)?;
    }
    // The driver of the real cluster keeps the newest snapshot of a volume only.
    let newest = newest(&ctx, ["one", "other"]).await?;
    assert_eq!(ctx.restored_record(newest).await?, ["freeze"], "`{newest}` was not cut while frozen");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn what_will_not_be_stored_freezes_nothing(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    ctx.create(&snapshot("there", "data")).await?;
    let again = refused(&ctx, &labelled("there", "quick")).await?;
    assert_eq!((again.code, again.reason.as_str()), (409, "AlreadyExists"), "{again:?}");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    ctx.api().create(&dry, &labelled("dry", "quick")).await.context("a dry run was refused")?;
    assert_eq!(intents(&ctx).await?, [""; 0]);
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

pub(crate) async fn a_mark_that_is_added_later_does_nothing(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    ctx.create(&snapshot("plain", "data")).await?;
    let mark = Patch::Merge(json!({"metadata": {"labels": {EXECUTION_HOOK_TEMPLATE_LABEL: "quick"}}}));
    ctx.api::<VolumeSnapshot>().patch("plain", &PatchParams::default(), &mark).await?;
    ctx.watch_until(DEADLINE, "plain", "is ready to use", is_ready).await?;
    // Whoever has done the next one has passed by this one.
    ctx.create(&labelled("marked", "quick")).await?;
    ctx.over(&intent_of(&ctx, "marked").await?).await?;
    assert_eq!(intents(&ctx).await?, ["marked"]);
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    assert_eq!(ctx.consistency_mark("plain").await?, None);
    Ok(())
}

/// The one of these snapshots that was cut last.
async fn newest<const N: usize>(ctx: &Ctx, names: [&'static str; N]) -> Result<&'static str> {
    let contents: Api<VolumeSnapshotContent> = Api::all(ctx.client());
    let mut cut = Vec::new();
    for name in names {
        let uid = ctx.api::<VolumeSnapshot>().get(name).await?.uid().context("an object has a UID")?;
        let content = contents.get(&format!("snapcontent-{uid}")).await?;
        cut.push((content.status.and_then(|status| status.creation_time), name));
    }
    cut.into_iter().max().map(|(_, name)| name).context("there is none")
}
