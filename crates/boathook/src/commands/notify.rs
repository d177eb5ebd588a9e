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
Exit codes:
  0    at least one pod was notified, and all of them succeeded
  1    no pod was notified, or a pod failed, had not ended in time, or could not be told
  2    the command line is wrong
  130  ended by Ctrl-C; what was begun goes on";

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
    /// The notifier, as `boathook notifiers` lists it
    notifier: String,
    /// The Running pods with these labels, as kubectl writes them: app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// The Running pods on this node
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Tell at most N pods at a time; the next one when one has ended [default: all at once]
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
            usage_error("--parallelism needs --wait: the next pod is told when one has ended");
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
