//! Volumes and their snapshots.
//!
//! Their paths are named from the directory that a container starts in, `/`: on a machine that does not permit
//! namespaces the embedded cluster's containers have a directory, but no root of their own.

use anyhow::{Context, Result};
use boathook_tests::{
    Ctx, DEADLINE,
    claims::claim,
    exec::exec,
    pods::{self, pod},
    snapshots::{self, VolumeSnapshot, snapshot},
};

pub(crate) async fn a_claim_is_snapshotted_and_restored_byte_for_byte(ctx: Ctx) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    ctx.create(&pod("writer", ctx.images().shell).idle().mount_claim("data", "/data").build()).await?;
    ctx.watch_until(DEADLINE, "writer", "is ready", pods::is_ready).await?;
    let write = "head -c 5000000 /dev/urandom >data/log && sync";
    exec(["sh", "-c", write]).in_pod(&ctx, "writer").await?.success()?;
    let written = checksum(&ctx, "writer").await?;

    ctx.create(&snapshot("cut", "data")).await?;
    let cut: VolumeSnapshot = ctx.watch_until(DEADLINE, "cut", "is ready to use", snapshots::is_ready).await?;
    cut.status.and_then(|status| status.creation_time).context("a snapshot is ready that has no creation time")?;

    // What the source becomes afterwards must not show in the copy.
    let change = "echo late >>data/log && echo late >data/late && sync";
    exec(["sh", "-c", change]).in_pod(&ctx, "writer").await?.success()?;
    ctx.create(&claim("copy").restored_from("cut").build()).await?;
    ctx.create(&pod("reader", ctx.images().shell).idle().mount_claim("copy", "/data").build()).await?;
    ctx.watch_until(DEADLINE, "reader", "is ready", pods::is_ready).await?;

    assert_eq!(checksum(&ctx, "reader").await?, written, "the restored bytes are those of the cut");
    assert_ne!(checksum(&ctx, "writer").await?, written, "the source has changed since");
    let late = exec(["test", "-e", "data/late"]).in_pod(&ctx, "reader").await?;
    assert_eq!(late.exit_code()?, 1, "a file written after the cut is in the copy");
    Ok(())
}

/// Of the log in the volume that the pod has mounted.
async fn checksum(ctx: &Ctx, pod: &str) -> Result<String> {
    exec(["sha256sum", "data/log"]).in_pod(ctx, pod).await?.success()
}
