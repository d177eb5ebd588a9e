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

const AFTER_SNAPSHOT: &str = "\
Examples:
  boathook snapshot create nightly --pvc data --template mysql
  boathook snapshot list -A";

const AFTER_LIST: &str = "\
Examples:
  boathook snapshot list
  boathook snapshot list -A -o wide

Exit codes:
  0    success, also if there are no snapshots
  1    failure
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_SNAPSHOT)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Freeze an application, take snapshots of its volumes, and always thaw it
    Create(Box<Create>),
    /// List snapshots with their phase, their consistency, and how long they froze
    List(List),
}

const AFTER_HELP: &str = "\
Examples:
  boathook snapshot create nightly --pvc data --template mysql
  boathook snapshot create nightly -l app=db --template proxy --template mysql -n shop
  boathook snapshot create nightly --pvc data --template mysql --no-wait

Write an ApplicationSnapshot to give each hook its own pods: see docs/snapshots.md.

Exit codes:
  0    the snapshot is complete, and as consistent as requested
  1    it failed, or did not end in time
  2    the command line is wrong
  3    it is complete, but only crash-consistent in spite of its hooks
  4    it is complete, but a PostAction failed: the application is still frozen, and Boathook retries the thaw
  130  ended by Ctrl-C; the snapshot and its thaw continue";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
struct Create {
    /// The name of the ApplicationSnapshot and of its VolumeSnapshot (NAME-CLAIM if there are several)
    name: String,
    #[command(flatten)]
    target: Target,
    /// What happens if a hook fails
    #[arg(long, value_enum, default_value_t = OnFailure::Fail, value_name = "WHAT")]
    on_hook_failure: OnFailure,
    /// How to treat a running pod that mounts a claim and that no hook covers
    #[arg(long, value_enum, default_value_t = OtherPods::MustBeCovered, value_name = "WHAT")]
    other_pods: OtherPods,
    /// How long the storage may take for the snapshots, in whole seconds [default: 60s]
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
    /// The snapshot fails, and no VolumeSnapshot is created
    Fail,
    /// The VolumeSnapshots are created anyway, marked as only crash-consistent
    CrashConsistent,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OtherPods {
    /// The snapshot is only crash-consistent
    MustBeCovered,
    /// You vouch that a hook freezes its data from elsewhere, for example through an operator or a proxy
    Vouched,
}

#[derive(Args)]
#[command(after_help = AFTER_LIST)]
struct List {
    /// Only snapshots with these labels: app=web,tier!=cache
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
