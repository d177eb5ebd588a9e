//! The floor: the same execs through the API server, and nothing else.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::AttachParams};

use super::{
    AT_ONCE,
    pods::{COMMAND, Place},
};

pub(super) async fn exec(place: &Place, count: usize) -> Result<Vec<f64>> {
    let api: &Api<Pod> = &Api::namespaced(place.client.clone(), &place.namespace);
    let one = |number: usize| async move {
        let begun = Instant::now();
        let how = AttachParams::default().stdin(false).stdout(true).stderr(true);
        let mut process = api.exec(place.pod(number), [COMMAND], &how).await.context("failed to exec")?;
        let status = process.take_status().context("an exec has a status")?.await.context("no status came")?;
        ensure!(status.status.as_deref() == Some("Success"), "{status:?}");
        anyhow::Ok(begun.elapsed().as_secs_f64() * 1000.0)
    };
    stream::iter((0..count).map(one)).buffer_unordered(AT_ONCE).try_collect().await
}
