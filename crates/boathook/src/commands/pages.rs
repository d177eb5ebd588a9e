//! Where metrics and health checks are served: flags that controller and agent share.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Result;
use boathook_runtime::{Metrics, health::Pages};
use clap::Args;
use futures::future::{self, BoxFuture, FutureExt};

#[derive(Args, Clone, Debug)]
pub(crate) struct PagesChoice {
    /// Serve /metrics on this address [default: not served]
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
    /// Serve /healthz and /readyz on this address [default: not served]
    #[arg(long, value_name = "ADDRESS")]
    health_listen: Option<SocketAddr>,
}

impl PagesChoice {
    /// Listens, and returns what serves, for ever.
    pub(crate) async fn serve(
        &self,
        metrics: Arc<Metrics>,
        figures: impl Fn() + Send + Sync + 'static,
        ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<BoxFuture<'static, ()>> {
        let (of_metrics, of_health) = (Pages::default().metrics(metrics, figures), Pages::default().health(ready));
        let wanted = [(self.metrics_listen, of_metrics), (self.health_listen, of_health)];
        let mut serving: Vec<BoxFuture<'static, ()>> = vec![future::pending().boxed()];
        for (address, pages) in wanted {
            if let Some(address) = address {
                serving.push(pages.bind(address).await?.1.boxed());
            }
        }
        Ok(future::select_all(serving).map(|_| ()).boxed())
    }
}
