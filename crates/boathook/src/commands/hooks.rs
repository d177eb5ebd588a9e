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

#[derive(Args)]
pub(crate) struct Hooks {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Lists hooks: which are frozen, for how long, which could not be thawed
    List(List),
    /// Says all that is known of a hook: what it runs, where, and how it went in each container
    Describe(Describe),
}

#[derive(Args)]
struct List {
    /// The hooks with these labels, as kubectl writes them
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    shape: Shape,
}

#[derive(Args)]
struct Describe {
    /// The hook [default: every hook of the namespace]
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
