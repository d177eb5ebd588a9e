//! The database that is frozen, snapshotted and thawed, in a pod; and what is asked of it and of its copies.
//! `crates/logbook` says what it does.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{
    Ctx, DEADLINE,
    claims::claim,
    exec::exec,
    images::LOGBOOK,
    pods::{self, PodBuilder, pod},
    snapshots::{self, VolumeSnapshot},
};

/// Freezes it, as a hook's command.
pub const FREEZE: [&str; 3] = [LOGBOOK, "freeze", DIR];

/// Thaws it, as a hook's command.
pub const THAW: [&str; 3] = [LOGBOOK, "thaw", DIR];

/// Holds it frozen, as a hook's command that is held: `READY`, `RELEASE`.
pub const HOLD: [&str; 3] = [LOGBOOK, "hold", DIR];

/// The book, from the directory that its container starts in.
const DIR: &str = "data";

/// As it says of itself.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub frozen: bool,
    /// By a command, in milliseconds since 1970 of its own clock.
    pub frozen_since_millis: Option<u64>,
    /// How many sessions hold it frozen.
    pub holders: usize,
    pub records: u64,
}

/// What a copy of it is like.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Report {
    /// Those that are whole.
    pub records: u64,
    pub torn: bool,
    /// What is wrong, if it is torn.
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    pub offset: u64,
    pub what: String,
}

/// A pod that writes in this claim.
pub fn writer(ctx: &Ctx, name: &str, claim: &str) -> PodBuilder {
    pod(name, ctx.images().logbook).command([LOGBOOK, "serve", DIR]).mount_claim(claim, "/data")
}

/// Makes a claim and a pod that writes in it, both of this name, and waits until it does.
pub async fn serve(ctx: &Ctx, name: &str) -> Result<()> {
    ctx.create(&claim(name).build()).await?;
    ctx.create(&writer(ctx, name, name).build()).await?;
    ctx.watch_until(DEADLINE, name, "is ready", pods::is_ready).await?;
    ctx.follow_log_until(DEADLINE, name, "serving").await?;
    Ok(())
}

/// Runs [`FREEZE`] or [`THAW`].
pub async fn tell(ctx: &Ctx, pod: &str, command: [&str; 3]) -> Result<()> {
    exec(command).in_pod(ctx, pod).await?.success().map(drop)
}

pub async fn status(ctx: &Ctx, pod: &str) -> Result<Status> {
    let said = exec([LOGBOOK, "status", DIR, "-o", "json"]).in_pod(ctx, pod).await?.success()?;
    serde_json::from_str(&said).with_context(|| format!("no status: {said}"))
}

/// Restores the snapshot, into a claim and a pod of its name, and reads the copy.
pub async fn verify_restored(ctx: &Ctx, snapshot: &str) -> Result<Report> {
    ctx.watch_until::<VolumeSnapshot>(DEADLINE, snapshot, "is ready to use", snapshots::is_ready).await?;
    ctx.create(&claim(snapshot).restored_from(snapshot).build()).await?;
    // There is nothing else in the image that keeps a container going.
    let reader = pod(snapshot, ctx.images().logbook).command([LOGBOOK, "serve", "idle", "--pace", "1"]);
    ctx.create(&reader.scratch("idle", "/idle").mount_claim(snapshot, "/copy").build()).await?;
    ctx.watch_until(DEADLINE, snapshot, "is ready", pods::is_ready).await?;
    let outcome = exec([LOGBOOK, "verify", "copy", "-o", "json"]).in_pod(ctx, snapshot).await?;
    let report: Report = serde_json::from_slice(&outcome.stdout).with_context(|| format!("no report: {outcome}"))?;
    match (outcome.exit_code()?, report.torn) {
        (0, false) | (1, true) => Ok(report),
        _ => bail!("the exit code is not what the report says: {outcome}"),
    }
}
