//! `boathook snapshot`: takes application-consistent snapshots, and lists them.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{self, ApplicationSnapshotSpec, OnHookFailure},
};
use clap::{Args, Subcommand, ValueEnum};

use super::{
    block_on,
    scope::{Here, Shape, Waiting, Where},
    target::Target,
};
use crate::{listing, output::duration, snapshot};

#[derive(Args)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Freezes an application, cuts snapshots of its volumes, and thaws it, whatever happens
    Create(Box<Create>),
    /// Lists snapshots: how far they have come, how consistent they are, how long it was frozen for them
    List(List),
}

const AFTER_HELP: &str = "\
Exit codes:
  0    the snapshot is complete, and as consistent as was asked for
  1    it failed, or had not ended in time
  2    the command line is wrong
  3    it is complete, but only crash-consistent, though there were hooks
  4    it is complete, but a PostAction failed: something is still frozen, and is thawed as soon as that succeeds
  130  ended by Ctrl-C; the snapshot goes on, and so does its thaw

Several hooks with targets of their own are written as an ApplicationSnapshot: see docs/snapshots.md.";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
struct Create {
    /// The name of the ApplicationSnapshot, and of the VolumeSnapshot (NAME-CLAIM if there are several)
    name: String,
    #[command(flatten)]
    target: Target,
    /// What to do if it cannot be frozen
    #[arg(long, value_enum, default_value_t = OnFailure::Fail, value_name = "WHAT")]
    on_hook_failure: OnFailure,
    /// What a running pod counts for that mounts a claim and is covered by no hook
    #[arg(long, value_enum, default_value_t = OtherPods::MustBeCovered, value_name = "WHAT")]
    other_pods: OtherPods,
    /// How long the cut may take, in whole seconds [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    cut_timeout: Option<i32>,
    /// The VolumeSnapshotClass [default: the cluster's]
    #[arg(long, value_name = "NAME")]
    snapshot_class: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnFailure {
    /// Nothing is cut
    Fail,
    /// Cut anyway, and say so
    CrashConsistent,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OtherPods {
    /// It makes the snapshot crash-consistent
    MustBeCovered,
    /// You state that a hook freezes its data from elsewhere, for example through an operator or a proxy
    Vouched,
}

#[derive(Args)]
struct List {
    /// The snapshots with these labels, as kubectl writes them
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    shape: Shape,
}

impl Snapshot {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.what {
            What::Create(create) => block_on(create.run()),
            What::List(list) => block_on(list.run()),
        }
    }
}

impl Create {
    async fn run(self) -> Result<ExitCode> {
        let mut spec = ApplicationSnapshotSpec::new(self.target.source(), self.target.infos());
        spec.volume_snapshot_class_name = self.snapshot_class;
        spec.cut_timeout_seconds = self.cut_timeout.unwrap_or(spec.cut_timeout_seconds);
        spec.on_hook_failure = match self.on_hook_failure {
            OnFailure::Fail => OnHookFailure::Fail,
            OnFailure::CrashConsistent => OnHookFailure::CrashConsistent,
        };
        spec.other_pods = match self.other_pods {
            OtherPods::MustBeCovered => application_snapshot::OtherPods::MustBeCovered,
            OtherPods::Vouched => application_snapshot::OtherPods::Vouched,
        };
        let (client, namespace) = self.place.client().await?;
        let (wait, timeout) = (self.waiting.wait(), self.waiting.timeout());
        let format = self.shape.format();
        snapshot::Create { namespace, name: self.name, spec, wait, timeout, format }.run(&client).await
    }
}

impl List {
    async fn run(self) -> Result<ExitCode> {
        let (client, scope) = self.place.client().await?;
        let list = listing::List { scope, labels: self.selector, format: self.shape.format() };
        list.run::<ApplicationSnapshot>(&client).await?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A duration that an object has in whole seconds.
fn seconds(given: &str) -> Result<i32, String> {
    let duration: Duration = duration::parse(given)?;
    let whole = i32::try_from(duration.as_secs()).ok().filter(|_| duration.subsec_nanos() == 0);
    whole.ok_or_else(|| format!("`{given}`: write whole seconds, for example 90s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_whole() {
        assert_eq!(seconds("1m30s"), Ok(90));
        assert!(seconds("1500ms").unwrap_err().contains("whole seconds"));
        assert!(seconds("9999999h").is_err());
    }
}
