//! `boathook demo`: the main job in one command.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::signals::Signals;
use crate::demo;

const AFTER_HELP: &str = "\
Examples:
  boathook demo
  boathook demo --keep    # then look around with kubectl

Exit codes:
  0    every step was shown and verified
  1    a step failed
  2    the command line is wrong
  130  ended by Ctrl-C; nothing is left behind";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Demo {
    /// Keep the cluster running after the last step until Ctrl-C, and print how to reach it
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
