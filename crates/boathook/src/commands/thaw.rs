//! `boathook thaw`: asks for the thaw now.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Args;

use super::{block_on, scope::Here};
use crate::{output::duration, subject::Name, thaw};

const AFTER_HELP: &str = "\
Exit codes:
  0    thawed, or there was nothing to thaw; with --force also if it was given up
  1    something is not thawed, which is tried again until it succeeds; or is not known to be, or was given up
  2    the command line is wrong
  130  ended by Ctrl-C; the thaw goes on";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Thaw {
    /// An ExecutionHook, or an ApplicationSnapshot: all of its hooks, in reverse (hook/NAME or snapshot/NAME if both
    /// have that name)
    #[arg(value_parser = Name::parse)]
    name: Name,
    /// Try once, give up what cannot be thawed, and record that: it may stay frozen until somebody thaws it by hand
    #[arg(long, conflicts_with = "no_wait")]
    force: bool,
    /// With --force: do not ask whether that is meant
    #[arg(long, requires = "force")]
    yes: bool,
    /// Only ask for the thaw, and do not wait for it
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
