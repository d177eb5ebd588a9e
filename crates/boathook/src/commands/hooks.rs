//! `boathook hooks`: lists and describes ExecutionHooks.

use std::process::ExitCode;

use anyhow::Result;
use boathook_api::ExecutionHook;
use clap::{Args, Subcommand};

use super::{
    block_on,
    scope::{Here, Shape, Where},
};
use crate::{hooks, listing};

const AFTER_HELP: &str = "\
Examples:
  boathook hooks list -A
  boathook hooks describe nightly-0 -n shop";

const AFTER_LIST: &str = "\
Examples:
  boathook hooks list
  boathook hooks list -A -o json

Exit codes:
  0    success, also if there are no hooks
  1    failure
  2    the command line is wrong";

const AFTER_DESCRIBE: &str = "\
Examples:
  boathook hooks describe
  boathook hooks describe nightly-0 -n shop

Exit codes:
  0    success
  1    failure, or there is no such hook
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Hooks {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List hooks with their state, the reason, and how long they froze
    List(List),
    /// Show a hook in full: its commands, its containers, the results, its conditions
    Describe(Describe),
}

#[derive(Args)]
#[command(after_help = AFTER_LIST)]
struct List {
    /// Only hooks with these labels: app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    shape: Shape,
}

#[derive(Args)]
#[command(after_help = AFTER_DESCRIBE)]
struct Describe {
    /// The ExecutionHook [default: every hook of the namespace]
    name: Option<String>,
    #[command(flatten)]
    place: Here,
}

impl Hooks {
    pub(crate) fn run(self) -> Result<ExitCode> {
        block_on(async {
            match self.what {
                What::List(List { selector, place, shape }) => {
                    let (client, scope) = place.client().await?;
                    let list = listing::List { scope, labels: selector, format: shape.format() };
                    list.run::<ExecutionHook>(&client).await?;
                }
                What::Describe(Describe { name, place }) => {
                    let (client, namespace) = place.client().await?;
                    hooks::Describe { namespace, name }.run(&client).await?;
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
