//! `boathook notifiers`: lists what pods declare.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{
    block_on,
    scope::{Shape, Where, pod_name},
};
use crate::{notifiers, pods::Choice};

const AFTER_HELP: &str = "\
Examples:
  boathook notifiers web-0
  boathook notifiers -l app=web -n shop

Exit codes:
  0    success, also if no pod declares a notifier
  1    failure, or there is no such pod
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Notifiers {
    /// The pod [default: every pod of the namespace]
    #[arg(value_parser = pod_name, conflicts_with_all = ["selector", "all_namespaces"])]
    pod: Option<String>,
    /// Only pods with these labels: app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    shape: Shape,
}

impl Notifiers {
    pub(crate) fn run(self) -> Result<ExitCode> {
        block_on(self.list())
    }

    async fn list(self) -> Result<ExitCode> {
        let (client, scope) = self.place.client().await?;
        let choice = match self.pod {
            Some(pod) => Choice::Named(pod),
            None => Choice::Matching { labels: self.selector, node: None },
        };
        notifiers::Notifiers { scope, choice, format: self.shape.format() }.run(&client).await?;
        Ok(ExitCode::SUCCESS)
    }
}
