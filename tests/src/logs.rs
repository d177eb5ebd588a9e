//! Following a container's log until it says something.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::{AsyncReadExt, TryStreamExt, io::AsyncBufReadExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;

use crate::{Ctx, report};

/// Far more than a pod of a scenario ever says.
const CAP: u64 = 1 << 20;

impl Ctx {
    /// Follows the log of the pod's only container, which must have started, until a line is equal to `wanted`.
    pub async fn follow_log_until(&self, deadline: Duration, pod: &str, wanted: &str) -> Result<()> {
        let mut seen = Vec::new();
        let following = async {
            let parameters = LogParams { follow: true, ..LogParams::default() };
            let log = self.api::<Pod>().log_stream(pod, &parameters).await.context("failed to open the log")?;
            let mut lines = futures::io::BufReader::new(log.take(CAP)).lines();
            while let Some(line) = lines.try_next().await.context("failed to read the log")? {
                if line == wanted {
                    return Ok(());
                }
                seen.push(line);
            }
            bail!("the log has ended")
        };
        let error = match tokio::time::timeout(deadline, following).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => anyhow!("nothing more came within {deadline:?}"),
        };
        let events = report::events_in(&self.client(), self.namespace()).await;
        let what = format!("waited in vain until the log of pod `{pod}` says `{wanted}`");
        Err(anyhow!("{what}: {error:#}\n--- it said\n{}\n{events}", seen.join("\n")))
    }
}
