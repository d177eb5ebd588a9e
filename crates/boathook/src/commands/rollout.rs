//! `boathook rollout`: hooks at the stages of rollouts.

use std::process::ExitCode;

use anyhow::{Context, Result};
use boathook_api::deployment_lifecycle::{Requested, Stage};
use clap::{Args, Subcommand, ValueEnum};

use super::{
    block_on,
    scope::{Here, Shape, Waiting},
};
use crate::{
    manifest,
    rollout::{self, deployment_name},
};

#[derive(Args)]
pub(crate) struct Rollout {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Follows a rollout through its stages, with how each hook went, to its end
    Status(Status),
    /// Lists the rollouts of a Deployment: what became of each, and of its hooks
    History(History),
    /// Says what a change would run and hold at each stage, in which pod, whether you may, and what is risky; nothing
    /// is done
    Rehearse(Rehearse),
    /// Has the hook of a stage that runs or failed run again, in a new pod
    Retry(Request),
    /// Goes on without the hook of a stage that runs or failed
    Skip(Request),
}

const AFTER_STATUS: &str = "\
Exit codes:
  0    the rollout is complete, post included
  1    it was aborted or is stuck, or had not ended in time
  2    the command line is wrong
  3    with --no-wait: it has not ended
  130  ended by Ctrl-C; the rollout goes on";

const AFTER_REHEARSE: &str = "\
Exit codes:
  0    it would work; what is risky is said
  1    it would fail, and it is said why
  2    the command line is wrong";

/// A stage may take ten minutes, by Kubernetes' default of `progressDeadlineSeconds`, and there are three.
const STATUS_TIMEOUT: &str = "1h";

#[derive(Args)]
#[command(
    after_help = AFTER_STATUS,
    mut_arg("wait", |wait| wait.help("Follow it to its end; false: say how it stands")),
    mut_arg("timeout", |timeout| timeout.default_value(STATUS_TIMEOUT)),
)]
struct Status {
    /// The Deployment
    #[arg(value_name = "DEPLOYMENT", value_parser = deployment_name)]
    name: String,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

#[derive(Args)]
struct History {
    /// The Deployment
    #[arg(value_name = "DEPLOYMENT", value_parser = deployment_name)]
    name: String,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

#[derive(Args)]
#[command(after_help = AFTER_REHEARSE)]
struct Rehearse {
    /// A file of YAML documents: a changed Deployment, a DeploymentLifecycle, or both (the other one is then taken from
    /// the cluster); - is what comes in
    #[arg(short, long, value_name = "FILE")]
    file: String,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

#[derive(Args)]
struct Request {
    /// The Deployment
    #[arg(value_name = "DEPLOYMENT", value_parser = deployment_name)]
    name: String,
    /// The stage
    #[arg(long, value_enum)]
    stage: AtStage,
    #[command(flatten)]
    place: Here,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AtStage {
    Pre,
    Mid,
    Post,
}

impl From<AtStage> for Stage {
    fn from(stage: AtStage) -> Self {
        match stage {
            AtStage::Pre => Self::Pre,
            AtStage::Mid => Self::Mid,
            AtStage::Post => Self::Post,
        }
    }
}

impl Rollout {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.what {
            What::Status(status) => block_on(status.run()),
            What::History(history) => block_on(history.run()),
            What::Rehearse(rehearse) => block_on(rehearse.run()),
            What::Retry(request) => block_on(request.run(Requested::Retry)),
            What::Skip(request) => block_on(request.run(Requested::Skip)),
        }
    }
}

impl Status {
    async fn run(self) -> Result<ExitCode> {
        let (client, namespace) = self.place.client().await?;
        let (wait, timeout, format) = (self.waiting.wait(), self.waiting.timeout(), self.shape.format());
        rollout::Status { namespace, name: self.name, wait, timeout, format }.run(&client).await
    }
}

impl History {
    async fn run(self) -> Result<ExitCode> {
        let (client, namespace) = self.place.client().await?;
        rollout::History { namespace, name: self.name, format: self.shape.format() }.run(&client).await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Rehearse {
    async fn run(self) -> Result<ExitCode> {
        let text = manifest::read(&self.file)?;
        let documents = rollout::parse(&text).with_context(|| format!("`{}`", self.file))?;
        let (client, namespace) = self.place.client().await?;
        rollout::Rehearse { namespace, documents, format: self.shape.format() }.run(&client).await
    }
}

impl Request {
    async fn run(self, what: Requested) -> Result<ExitCode> {
        let (client, namespace) = self.place.client().await?;
        rollout::Request { namespace, name: self.name, stage: self.stage.into(), what }.run(&client).await?;
        Ok(ExitCode::SUCCESS)
    }
}
