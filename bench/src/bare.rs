//! The floor: the same execs through the API server, and nothing else.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::AttachParams};

use crate::pods::{COMMAND, Place};

/// Milliseconds of each.
pub(crate) async fn exec(place: &Place, count: usize, at_once: usize) -> Result<Vec<f64>> {
    let api: &Api<Pod> = &Api::namespaced(place.client.clone(), &place.namespace);
    let one = |number: usize| async move {
        let begun = Instant::now();
        let how = AttachParams::default().stdin(false).stdout(true).stderr(true);
        let mut process = api.exec(place.pod(number), [COMMAND], &how).await.context("failed to exec")?;
        let status = process.take_status().context("an exec has a status")?.await.context("no status came")?;
        ensure!(status.status.as_deref() == Some("Success"), "{status:?}");
        anyhow::Ok(begun.elapsed().as_secs_f64() * 1000.0)
    };
    stream::iter((0..count).map(one)).buffer_unordered(at_once).try_collect().await
}
