//! What people do today: `xargs -P` with `kubectl exec`.

use std::{path::Path, process::Stdio, time::Instant};

use anyhow::{Context, Result, ensure};
use tokio::{io::AsyncWriteExt, process::Command};

use super::AT_ONCE;
use crate::{
    pods::{COMMAND, Place},
    programs::Programs,
};

/// Milliseconds of each; of all together only xargs knows, so each counts as its share of the time.
pub(super) async fn exec(place: &Place, programs: &Programs, kubeconfig: &Path, count: usize) -> Result<Vec<f64>> {
    let begun = Instant::now();
    let mut xargs = Command::new("xargs")
        .arg(format!("-P{AT_ONCE}"))
        .arg("-I{}")
        .arg(&programs.kubectl)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--namespace", &place.namespace, "exec", "{}", "--", COMMAND])
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("failed to start xargs")?;
    let pods: String = (0..count).map(|number| format!("{}\n", place.pod(number))).collect();
    let mut stdin = xargs.stdin.take().context("stdin is a pipe")?;
    stdin.write_all(pods.as_bytes()).await.context("failed to name the pods to xargs")?;
    drop(stdin);
    let status = xargs.wait().await.context("failed to wait for xargs")?;
    ensure!(status.success(), "kubectl exec failed ({status})");
    // As many at once as there are at most: so long did each take on average.
    let each = begun.elapsed().as_secs_f64() * 1000.0 * AT_ONCE.min(count) as f64 / count as f64;
    Ok(vec![each; count])
}
