//! `boathook notify`: tells pods to do what their authors declared.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{
    block_on,
    scope::{Shape, Waiting, Where, pod_name},
    usage_error,
};
use crate::{notify, pods::Choice};

const AFTER_HELP: &str = "\
Examples:
  boathook notify web-0 reload
  boathook notify -l app=web --parallelism 1 reload
  boathook notify --node worker-1 -A flush

Notifiers that send signals need the node agent: `boathook up --agent`, or `boathook agent` on each node.

Exit codes:
  0    at least one pod was notified, and every notified pod succeeded
  1    no pod was notified, or a pod failed or did not end in time
  2    the command line is wrong
  130  ended by Ctrl-C; the started notifications continue";

#[derive(Args)]
#[command(allow_missing_positional = true, after_help = AFTER_HELP)]
pub(crate) struct Notify {
    /// The pod
    #[arg(
        value_parser = pod_name,
        required_unless_present_any = ["selector", "node"],
        conflicts_with_all = ["selector", "node", "all_namespaces"]
    )]
    pod: Option<String>,
    /// The name of the notifier, as `boathook notifiers` lists it
    notifier: String,
    /// Notify the running pods with these labels: app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// Notify the running pods on this node
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Notify at most N pods at a time [default: all at once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    parallelism: Option<u16>,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    shape: Shape,
}

/// The ways to write it.
pub(super) fn usage(called_as: &str) -> String {
    let ways = ["POD NOTIFIER", "-l SELECTOR [--node NAME] NOTIFIER", "--node NAME NOTIFIER"];
    ways.map(|way| format!("{called_as} notify [OPTIONS] {way}")).join("\n       ")
}

impl Notify {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.parallelism.is_some() && !self.waiting.wait() {
            usage_error("--parallelism needs --wait: the next pod is notified when one has ended");
        }
        block_on(self.notify())
    }

    async fn notify(self) -> Result<ExitCode> {
        let (client, scope) = self.place.client().await?;
        let choice = match self.pod {
            Some(pod) => Choice::Named(pod),
            None => Choice::Matching { labels: self.selector, node: self.node },
        };
        let notify = notify::Notify {
            scope,
            choice,
            notifier: self.notifier,
            wait: self.waiting.wait(),
            parallelism: self.parallelism.map(usize::from),
            timeout: self.waiting.timeout(),
            format: self.shape.format(),
        };
        notify.run(&client).await
    }
}
