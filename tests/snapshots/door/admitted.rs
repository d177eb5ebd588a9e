//! What is let through: frozen and called so if it is marked; and never touched if it is not, or will not be stored.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::Consistency,
    pod_notification::Executor,
    words::{EXECUTION_HOOK_NAMES, EXECUTION_HOOK_TEMPLATE_LABEL},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, is_complete, status},
        execution_hooks::{mains, with},
    },
    snapshots::{VolumeSnapshot, is_ready, snapshot},
};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{annotated, intent_of, intents, labelled, quick, refused};

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

pub(crate) async fn two_marked_snapshots_at_once_are_both_frozen(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quick", quick()).await?;
    let (one, other) = (labelled("one", "quick"), labelled("other", "quick"));
    let (first, second) = tokio::join!(ctx.create(&one), ctx.create(&other));
    first.and(second)?;
    for name in ["one", "other"] {
        let taken = ctx.over(&intent_of(&ctx, name).await?).await?;
        is_complete(&taken, Consistency::Application)?;
        let copy = ctx.restored_record(name).await?;
        ensure!(copy.last().is_some_and(|line| line == "freeze"), "`{name}` was not cut while frozen: {copy:?}");
    }
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
