//! `boathook drill`: freezes and thaws, without a cut.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use boathook_api::{ApplicationSnapshot, application_snapshot::ApplicationSnapshotSpec};
use clap::Args;

use super::{
    block_on,
    scope::{Here, Shape},
    signals::Signals,
    target::Target,
};
use crate::{
    drill,
    manifest::{self, Manifest, Wanted},
    output::duration,
};

const AFTER_HELP: &str = "\
Examples:
  boathook drill --pvc data --template mysql
  boathook drill -f snapshot.yaml --timeout 2m -n shop

Exit codes:
  0    every hook was frozen and thawed
  1    a hook could not be frozen; the frozen ones are thawed again
  2    the command line is wrong
  4    the thaw of a hook is not confirmed; Boathook retries it until it succeeds
  130  ended by Ctrl-C; the frozen hooks are thawed. A second Ctrl-C stops waiting for the thaw";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Drill {
    /// A file with one ApplicationSnapshot, ExecutionHook or marked VolumeSnapshot; - reads stdin
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with_all = ["pvc", "selector", "template", "pod_selector", "container"]
    )]
    file: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How long to wait for the freeze, and again for the thaw, for example 30s or 1h30m
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

impl Drill {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let manifest = self.manifest()?;
        block_on(async {
            let signals = Signals::new()?;
            let (client, namespace) = self.place.client().await?;
            let (timeout, format) = (self.timeout, self.shape.format());
            drill::Drill { namespace, manifest, timeout, format }.run(&client, signals).await
        })
    }

    fn manifest(&self) -> Result<Manifest> {
        if let Some(file) = &self.file {
            return manifest::parse(&manifest::read(file)?).with_context(|| format!("`{file}`"));
        }
        let spec = ApplicationSnapshotSpec::new(self.target.source(), self.target.infos());
        if spec.execution_hook_infos.is_empty() {
            super::usage_error("name the hook with --template NAME, or a manifest with -f FILE");
        }
        let wanted = Wanted::Snapshot(Box::new(ApplicationSnapshot::new("drill", spec)));
        Ok(Manifest { templates: vec![], wanted: vec![wanted] })
    }
}
