//! `boathook thaw`: asks for the thaw now.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Args;

use super::{block_on, scope::Here};
use crate::{output::duration, subject::Name, thaw};

const AFTER_HELP: &str = "\
Examples:
  boathook thaw nightly -n shop
  boathook thaw hook/nightly-0 --timeout 5m

Exit codes:
  0    thawed, or nothing was frozen; with --force also if the thaw was given up
  1    the thaw failed and is retried until it succeeds, is not confirmed, or was given up
  2    the command line is wrong
  130  ended by Ctrl-C; the thaw continues";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Thaw {
    /// An ExecutionHook, or an ApplicationSnapshot with all its hooks; hook/NAME or snapshot/NAME if both exist
    #[arg(value_parser = Name::parse)]
    name: Name,
    /// Try once, then give up and record it: the application may stay frozen until you thaw it by hand
    #[arg(long, conflicts_with = "no_wait")]
    force: bool,
    /// With --force: do not ask for confirmation
    #[arg(long, requires = "force")]
    yes: bool,
    /// Only request the thaw, without waiting for it
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for each hook, for example 30s or 1h30m
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    place: Here,
}

impl Thaw {
    pub(crate) fn run(self) -> Result<ExitCode> {
        block_on(async {
            let (client, namespace) = self.place.client().await?;
            let Self { name, force, yes, no_wait, timeout, place: _ } = self;
            thaw::Thaw { namespace, name, force, yes, wait: !no_wait, timeout }.run(&client).await
        })
    }
}
