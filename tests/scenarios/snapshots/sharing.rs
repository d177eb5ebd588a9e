//! Snapshots of one claim at once share one freeze.

use anyhow::{Result, ensure};
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{Consistency, Phase},
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, failed_for, is_complete, of_data, status},
        conditions::is_true,
        execution_hooks::{freezing, with},
    },
    storage::SilentStorage,
};

/// Two snapshots, `first` and `second`, of which the second follows the first: frozen, and the storage asked for both.
async fn two_that_share(ctx: &Ctx) -> Result<SilentStorage> {
    ctx.run_box_on_data().await?;
    ctx.create_template("quiet", freezing()).await?;
    let storage = ctx.silent_storage().await?;
    let spec = with(of_data([by("quiet")]), storage.fields());
    ctx.create_application_snapshot("first", spec.clone()).await?;
    ctx.in_phase("first", Phase::Cutting).await?;
    ctx.create_application_snapshot("second", spec).await?;
    for name in ["first", "second"] {
        storage.asked_for(name).await?;
    }
    let second: ApplicationSnapshot = ctx.api().get("second").await?;
    ensure!(is_true(&status(&second).conditions, condition::FROZEN), "{second:?}");
    assert_eq!(status(&second).shares_freeze_of.map(|first| first.name).as_deref(), Some("first"));
    Ok(storage)
}

pub(crate) async fn everything_stays_frozen_until_those_that_share_the_freeze_are_cut(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    let storage = two_that_share(&ctx).await?;
    storage.cuts("first").await?;
    let is_judged = |object: &ApplicationSnapshot| status(object).consistency.is_some();
    let judged: ApplicationSnapshot = ctx.watch_until(DEADLINE, "first", "is judged", is_judged).await?;
    assert_eq!(status(&judged).phase, Phase::Cutting);
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    storage.cuts("second").await?;
    for name in ["first", "second"] {
        is_complete(&ctx.over(name).await?, Consistency::Application)?;
        assert_eq!(ctx.consistency_mark(name).await?.as_deref(), Some("Application"));
    }
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn when_the_first_one_is_deleted_everything_is_thawed_and_nobody_is_called_consistent(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    let storage = two_that_share(&ctx).await?;
    let asked = storage.asked_for("second").await?;
    ctx.delete_and_see_gone::<ApplicationSnapshot>("first").await?;
    failed_for(&ctx.over("second").await?, reason::DELETED)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    // What comes late changes nothing.
    storage.cuts_late(&asked).await?;
    ctx.delete_and_see_gone::<ApplicationSnapshot>("second").await
}
