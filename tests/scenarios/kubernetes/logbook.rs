//! The database that hooks freeze: torn in a copy that nobody asked it for, whole in one that it was frozen for.

use anyhow::{Result, ensure};
use boathook_tests::{
    Ctx, DEADLINE,
    logbook::{self, FREEZE, THAW},
    poll::Look,
    snapshots::snapshot,
};

/// Of so many copies under load one is torn, far more than surely.
const COPIES: usize = 5;

pub(crate) async fn a_copy_under_load_is_torn_and_one_of_a_frozen_book_is_whole(ctx: Ctx) -> Result<()> {
    logbook::serve(&ctx, "writer").await?;
    let mut torn = false;
    for name in (1..=COPIES).map(|copy| format!("plain-{copy}")) {
        ctx.create(&snapshot(&name, "writer")).await?;
        torn = logbook::verify_restored(&ctx, &name).await?.torn;
        if torn {
            break;
        }
    }
    ensure!(torn, "none of {COPIES} copies under load is torn");

    logbook::tell(&ctx, "writer", FREEZE).await?;
    let frozen = logbook::status(&ctx, "writer").await?;
    ctx.create(&snapshot("frozen", "writer")).await?;
    let copy = logbook::verify_restored(&ctx, "frozen").await?;
    assert_eq!((copy.records, copy.torn), (frozen.records, false), "{copy:?}");
    assert_eq!(logbook::status(&ctx, "writer").await?, frozen, "a frozen book does not change");

    logbook::tell(&ctx, "writer", THAW).await?;
    ctx.poll_until(DEADLINE, "the thawed book goes on", async || {
        let status = logbook::status(&ctx, "writer").await?;
        Ok(if status.records > frozen.records { Look::Done(()) } else { Look::NotYet(format!("{status:?}")) })
    })
    .await
}
