//! A database in a pod, as its recipe says; snapshots of it, and what is started on their copies.

use anyhow::{Result, ensure};
use boathook_api::{application_snapshot::Consistency, words::reason};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots::{by, failed_for, is_complete},
        execution_hooks::with,
    },
    exec::exec,
    snapshots::{VolumeSnapshot, is_ready},
};
use serde_json::{Value, json};

use crate::{load, recipe};

/// How many snapshots are taken one after the other, while it is written to.
const SNAPSHOTS: usize = 3;

/// One of the page's.
pub(crate) struct Database {
    /// Of its pod, its container and its template. Its claim is `NAME-data`.
    pub(crate) name: &'static str,
    /// Whom its package has made for it.
    pub(crate) user: &'static str,
    /// A line for a shell that makes an empty database `harbour`.
    pub(crate) prepare: &'static str,
    /// Runs the statements of its stdin there, and prints each value as soon as it is known, on a line.
    pub(crate) client: &'static str,
    /// Looks at every table and index, and prints what is wrong.
    pub(crate) check: &'static str,
    /// Ends the session of the hook in the server.
    pub(crate) end_session: &'static str,
}

impl Database {
    /// Each of its snapshots, restored and started, has all that was committed before it, none of it half.
    pub(crate) async fn is_whole_in_every_snapshot(&self, ctx: &Ctx) -> Result<()> {
        self.start(ctx).await?;
        load::begin(ctx, self).await?;
        for number in 1..=SNAPSHOTS {
            let before = load::noted(ctx, self).await?;
            let name = format!("{}-{number}", self.name);
            is_complete(&ctx.take(&name, self.snapshot()).await?, Consistency::Application)?;
            let after = load::noted(ctx, self).await?;
            self.restore(ctx, &name).await?;
            load::is_whole(ctx, self, &name, &before, &after).await?;
            let wrong = shell(ctx, &name, self.check).await?;
            ensure!(wrong.is_empty(), "the copy is not as it should be: {wrong}");
        }
        Ok(())
    }

    /// Started, written to, and held by the hook of the snapshot `lost`, which the storage does not cut.
    pub(crate) async fn hold(&self, ctx: &Ctx) -> Result<()> {
        self.start(ctx).await?;
        load::begin(ctx, self).await?;
        let storage = ctx.silent_storage().await?;
        let spec = with(self.snapshot(), storage.fields());
        ctx.create_application_snapshot("lost", spec).await?;
        storage.asked_for("lost").await.map(drop)
    }

    /// The session of the hook ends in the server: that fails the snapshot, and whoever waited goes on.
    pub(crate) async fn lose(&self, ctx: &Ctx) -> Result<()> {
        shell(ctx, self.name, self.end_session).await?;
        failed_for(&ctx.over("lost").await?, reason::SESSION_LOST)?;
        ctx.gone::<VolumeSnapshot>("lost").await?;
        load::goes_on(ctx, self).await
    }

    async fn start(&self, ctx: &Ctx) -> Result<()> {
        let Self { name, user, .. } = self;
        recipe::create(ctx, &recipe::run_as(recipe::file(&format!("{name}.yaml"))?, user)?).await?;
        recipe::create(ctx, recipe::file(&format!("{name}-hook.yaml"))?).await?;
        ctx.ready(name).await?;
        shell(ctx, name, self.prepare).await.map(drop)
    }

    /// Starts it on a copy, in a claim and a pod of the snapshot's name.
    async fn restore(&self, ctx: &Ctx, snapshot: &str) -> Result<()> {
        ctx.watch_until::<VolumeSnapshot>(DEADLINE, snapshot, "is ready to use", is_ready).await?;
        let nightly = format!("{}-nightly", self.name);
        let file = recipe::file(&format!("{nightly}.yaml"))?.replace(&nightly, snapshot);
        recipe::create(ctx, &recipe::run_as(&file, self.user)?).await?;
        ctx.ready(snapshot).await.map(drop)
    }

    /// A snapshot of its claim, with the hook of its recipe.
    fn snapshot(&self) -> Value {
        let claim = format!("{}-data", self.name);
        json!({"source": {"persistentVolumeClaimName": claim}, "executionHookInfos": [by(self.name)]})
    }

    /// What these statements return.
    pub(crate) async fn ask(&self, ctx: &Ctx, pod: &str, statements: &str) -> Result<String> {
        exec(["sh", "-c", self.client]).stdin(statements.as_bytes()).in_pod(ctx, pod).await?.success()
    }
}

/// What this line for a shell prints in the pod's only container.
pub(crate) async fn shell(ctx: &Ctx, pod: &str, line: &str) -> Result<String> {
    exec(["sh", "-c", line]).in_pod(ctx, pod).await?.success()
}
