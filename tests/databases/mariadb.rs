//! MariaDB, with `FLUSH TABLES WITH READ LOCK` held in one session.

use anyhow::Result;
use boathook_api::pod_notification::Executor;
use boathook_tests::Ctx;

use crate::database::Database;

const MARIADB: Database = Database {
    name: "mariadb",
    user: "mysql",
    prepare: "mariadb --execute='CREATE DATABASE harbour'",
    client: "mariadb --batch --skip-column-names --unbuffered --database=harbour",
    check: "mariadb-check --all-databases --extended --silent",
    end_session: "mariadb --batch --skip-column-names --execute=\"\
        SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE db IS NULL AND user = 'mysql' \
        AND id <> CONNECTION_ID()\" | mariadb --force",
};

pub(crate) async fn what_mariadb_had_committed_is_in_every_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    MARIADB.is_whole_in_every_snapshot(&ctx).await
}

pub(crate) async fn a_lock_of_mariadb_that_is_lost_before_the_cut_fails_the_snapshot(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    MARIADB.fails_when_its_session_is_lost(&ctx).await
}
