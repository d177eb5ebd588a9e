//! `boathook controller`: the controllers, against the cluster of a kubeconfig.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use boathook_api::pod_notification::Executor;
use boathook_controllers::{Service, pod_notification, service};
use boathook_runtime::{Metrics, execution::Limits, identity, webhook::Reach};
use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::{connection::Connection, gates::FeatureGates, pages::PagesChoice, preflight, signals::Signals};
use crate::output;

/// After this time without becoming ready, a person is told what may be wrong.
const PATIENCE: Duration = Duration::from_secs(30);

const AFTER_HELP: &str = "\
Examples:
  boathook controller
  boathook controller --executor agent --webhook-service boathook-system/boathook-webhooks

The cluster must know Boathook's kinds: kubectl apply --server-side -f deploy/crds

Exit codes:
  0    ended by Ctrl-C or SIGTERM
  1    it could not start, or a part of it failed
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Controller {
    #[command(flatten)]
    connection: Connection,
    /// The namespace of the lease and of Boathook's own objects
    #[arg(long, value_name = "NAME", default_value = boathook_install::NAMESPACE)]
    namespace: String,
    /// The process that runs the handlers of notifications
    #[arg(long, value_enum, default_value_t = ExecutorChoice::Api)]
    executor: ExecutorChoice,
    /// The address of the admission webhooks [default: a free port on 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    webhook_listen: Option<SocketAddr>,
    /// The URL by which the API server reaches the webhooks, https://HOST:PORT [default: the address they listen on]
    #[arg(long, value_name = "URL", value_parser = Reach::url)]
    webhook_url: Option<Reach>,
    /// The Service by which the API server reaches the webhooks, as NAMESPACE/NAME[:PORT]
    #[arg(long, value_name = "SERVICE", value_parser = Reach::service, conflicts_with = "webhook_url")]
    webhook_service: Option<Reach>,
    #[command(flatten)]
    pages: PagesChoice,
    #[command(flatten)]
    choices: Choices,
    /// The process that starts this one, and without which it has nothing to do: it is killed with it
    #[arg(long, value_name = "PID", hide = true)]
    child_of: Option<i32>,
}

/// What `boathook controller` and `boathook up` let a person choose alike.
#[derive(Args, Clone, Debug)]
pub(crate) struct Choices {
    /// Feature gates to switch on or off: NAME=true|false,...; the only one is ContainerNotifier
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: FeatureGates,
    /// The most notifications that run at once on one node
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_per_node: u16,
    /// The most notifications that run at once in one namespace
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_per_namespace: u16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExecutorChoice {
    /// The controller, through the API server's exec; it cannot send signals
    Api,
    /// The agent of each node (`boathook agent`)
    Agent,
}

impl From<ExecutorChoice> for Executor {
    fn from(choice: ExecutorChoice) -> Self {
        match choice {
            ExecutorChoice::Api => Self::Api,
            ExecutorChoice::Agent => Self::Agent,
        }
    }
}

impl Choices {
    /// For webhooks on a free port of this host.
    pub(crate) fn options(&self, executor: Executor) -> service::Options {
        let limits = Limits { per_node: self.max_per_node.into(), per_namespace: self.max_per_namespace.into() };
        let enabled = self.feature_gates.container_notifier;
        service::Options {
            identity: identity(),
            namespace: boathook_install::NAMESPACE.to_owned(),
            pod_notifications: pod_notification::Options { executor, enabled, limits },
            webhook_listen: (Ipv4Addr::LOCALHOST, 0).into(),
            webhook_reach: None,
        }
    }
}

impl Controller {
    pub(crate) fn run(self) -> Result<ExitCode> {
        crate::log::to_stderr();
        self.child_of.map_or(Ok(()), end_with)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.context("failed to start")?.block_on(self.serve())
    }

    async fn serve(self) -> Result<ExitCode> {
        let mut signals = Signals::new()?;
        let client = self.connection.client().await?;
        let executor = self.executor.into();
        let mut options = self.choices.options(executor);
        options.namespace = self.namespace;
        options.webhook_reach = self.webhook_url.or(self.webhook_service);
        if let Some(listen) = self.webhook_listen {
            options.webhook_listen = listen;
        }
        let metrics = Arc::new(Metrics::default());
        let starting = async {
            preflight::check(&client, &options.namespace, executor, preflight::ROLES_LAG).await?;
            Ok::<_, anyhow::Error>(Service::start(client, options, Arc::clone(&metrics)).await?)
        };
        // An API server that does not answer is waited for.
        let mut service = tokio::select! {
            started = starting => started?,
            () = signals.received() => return Ok(ExitCode::SUCCESS),
        };
        let pages = self.pages.serve(metrics, service.figures(), service.is_ready()).await?;
        let ready = announce(service.ready());
        let outcome = tokio::select! {
            () = pages => Err(anyhow!("the server of the metrics and health pages ended")),
            () = signals.received() => Ok(ExitCode::SUCCESS),
            died = service.died() => Err(anyhow!(died)),
            never = ready => match never {},
        };
        service.stop().await;
        outcome
    }
}

/// Has this process killed when its parent ends, however that ends.
fn end_with(parent: i32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("failed to ask for a signal at the parent's end")?;
    // It may have ended before that was asked for.
    match getppid().map(Pid::as_raw_pid) {
        Some(now) if now == parent => Ok(()),
        _ => bail!("process {parent}, which started this one, has ended"),
    }
}

/// Says when it is ready, and what may be wrong if that takes long.
async fn announce(ready: impl Future<Output = ()>) -> std::convert::Infallible {
    let mut ready = std::pin::pin!(ready);
    if tokio::time::timeout(PATIENCE, &mut ready).await.is_err() {
        output::to_stderr(
            "not ready yet: another replica leads, or the API server cannot reach the webhooks: look at the warnings \
             above, and set --webhook-url or --webhook-service",
        );
        ready.await;
    }
    output::to_stdout("ready: leading, and the webhooks answer");
    std::future::pending().await
}
