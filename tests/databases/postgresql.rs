//! PostgreSQL, with its backup mode held in one session.

use anyhow::Result;
use boathook_api::pod_notification::Executor;
use boathook_tests::Ctx;

use crate::{database::Database, load};

const POSTGRESQL: Database = Database {
    name: "postgres",
    user: "postgres",
    prepare: "createdb harbour",
    client: "psql --no-psqlrc --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --dbname=harbour",
    check: "pg_amcheck --all --install-missing --heapallindexed 2>&1",
    end_session: "psql --no-psqlrc --dbname=postgres --command=\"\
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid()\"",
};

pub(crate) async fn what_postgresql_had_committed_is_in_every_snapshot(ctx: Ctx, _: Executor) -> Result<()> {
    POSTGRESQL.is_whole_in_every_snapshot(&ctx).await
}

/// Nobody waits meanwhile, so nothing but the verdict tells.
pub(crate) async fn a_backup_of_postgresql_that_is_lost_before_the_cut_fails_the_snapshot(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    POSTGRESQL.hold(&ctx).await?;
    load::goes_on(&ctx, &POSTGRESQL).await?;
    POSTGRESQL.lose(&ctx).await
}
