//! `boathook plan`: what would happen, and nothing does.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::{
    block_on,
    scope::{Here, Shape},
    usage_error,
};
use crate::{manifest, plan};

const AFTER_HELP: &str = "\
Examples:
  boathook plan -f snapshot.yaml -n shop
  kubectl get executionhooktemplate mysql -o yaml | boathook plan -f -

Exit codes:
  0    it would work; the output lists the risks
  1    it would fail; the output lists the reasons
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Plan {
    /// A file of ApplicationSnapshots, ExecutionHooks, marked VolumeSnapshots, and ExecutionHookTemplates, which count
    /// as if they existed; - reads stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<String>,
    /// Not supported: a plan is made from a file.
    #[arg(hide = true, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

/// How it is written: the parser would also show the argument that exists only for a better error.
pub(super) fn usage(called_as: &str) -> String {
    format!("{called_as} plan [OPTIONS] --file <FILE>")
}

impl Plan {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (Some(file), None) = (&self.file, &self.name) else {
            usage_error("plan reads a manifest, not the name of an object: boathook plan -f FILE (- reads stdin)");
        };
        block_on(async {
            let manifest = manifest::read(file)?;
            let manifest = manifest::parse(&manifest).with_context(|| format!("`{file}`"))?;
            let (client, namespace) = self.place.client().await?;
            plan::Plan { namespace, manifest, format: self.shape.format() }.run(&client).await
        })
    }
}
