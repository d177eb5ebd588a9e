//! `boathook plan`: what would happen, and nothing does.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::{
    block_on,
    scope::{Here, Shape},
};
use crate::{manifest, plan};

const AFTER_HELP: &str = "\
Exit codes:
  0    it would work; what is risky is said
  1    it would fail, and it is said why
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Plan {
    /// A file of YAML documents: ApplicationSnapshots, ExecutionHooks, ExecutionHookTemplates (which count as if they
    /// were there) and marked VolumeSnapshots; - is what comes in
    #[arg(short, long, value_name = "FILE")]
    file: String,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

impl Plan {
    pub(crate) fn run(self) -> Result<ExitCode> {
        block_on(async {
            let manifest = manifest::read(&self.file)?;
            let manifest = manifest::parse(&manifest).with_context(|| format!("`{}`", self.file))?;
            let (client, namespace) = self.place.client().await?;
            plan::Plan { namespace, manifest, format: self.shape.format() }.run(&client).await
        })
    }
}
