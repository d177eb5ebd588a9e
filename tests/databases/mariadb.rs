//! MariaDB, with `FLUSH TABLES WITH READ LOCK` held in one session.

use anyhow::Result;
use boathook_api::pod_notification::Executor;
use boathook_tests::{Ctx, DEADLINE, poll::Look};

use crate::{database::Database, load};

const MARIADB: Database = Database {
    name: "mariadb",
    user: "mysql",
    prepare: "mariadb --execute='CREATE DATABASE harbour'",
    client: "mariadb --batch --skip-column-names --unbuffered --database=harbour",
    check: "mariadb-check --all-databases --extended --silent",
    end_session: "for id in $(mariadb --batch --skip-column-names --execute='\
        SELECT id FROM information_schema.processlist WHERE db IS NULL AND id <> CONNECTION_ID()'); \
        do mariadb --execute=\"KILL $id\" || true; done",
};

pub(crate) async fn what_mariadb_had_committed_is_in_every_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    MARIADB.is_whole_in_every_snapshot(&ctx).await
}

pub(crate) async fn a_lock_of_mariadb_that_is_lost_before_the_cut_fails_the_snapshot(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    MARIADB.hold(&ctx).await?;
    every_writer_waits(&ctx).await?;
    MARIADB.lose(&ctx).await
}

async fn every_writer_waits(ctx: &Ctx) -> Result<()> {
    let waiting =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'harbour' AND state LIKE 'Waiting%lock'";
    ctx.poll_until(DEADLINE, "every writer waits for the lock", async || {
        let waiting = MARIADB.ask(ctx, MARIADB.name, waiting).await?;
        let all = waiting.trim() == load::WRITERS.len().to_string();
        Ok(if all { Look::Done(()) } else { Look::NotYet(format!("{waiting} of them")) })
    })
    .await
}
