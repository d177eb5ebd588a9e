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
Exit codes:
  0    everything was frozen, and is thawed
  1    not everything could be frozen; what was is thawed
  2    the command line is wrong
  4    a PostAction failed: something is still frozen, and is thawed as soon as that succeeds
  130  ended by Ctrl-C; what was frozen is thawed. A second Ctrl-C does not wait for that";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Drill {
    /// A file with an ApplicationSnapshot, ExecutionHook or marked VolumeSnapshot; - is what comes in
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with_all = ["pvc", "selector", "template", "pod_selector", "container"]
    )]
    file: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How long to wait for the freeze, and for the thaw, for example 30s or 1h30m
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
            super::usage_error("say what to freeze with: --template NAME, or -f FILE");
        }
        let wanted = Wanted::Snapshot(Box::new(ApplicationSnapshot::new("drill", spec)));
        Ok(Manifest { templates: vec![], wanted: vec![wanted] })
    }
}
