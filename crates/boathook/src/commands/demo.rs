//! `boathook demo`: the main job in one command.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::signals::Signals;
use crate::demo;

const AFTER_HELP: &str = "\
Exit codes:
  0    everything was shown and verified
  1    something was not
  2    the command line is wrong
  130  ended by Ctrl-C; nothing is left";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Demo {
    /// Leave the cluster up after the last step, until Ctrl-C, and say how to look at it
    #[arg(long)]
    keep: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<ExitCode> {
        crate::log::to_stderr();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.context("failed to start")?.block_on(async {
            let mut signals = Signals::new()?;
            demo::play(self.keep, signals.received()).await
        })
    }
}
