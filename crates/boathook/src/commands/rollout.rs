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

const AFTER_HELP: &str = "\
Examples:
  boathook rollout status shop
  boathook rollout rehearse -f shop.yaml
  boathook rollout retry shop --stage pre";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Rollout {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Follow a rollout and its hooks to the end
    Status(Status),
    /// List the rollouts of a Deployment with the results of their hooks
    History(History),
    /// Show what a change would hold and run at each stage, your rights, and the risks; changes nothing
    Rehearse(Rehearse),
    /// Run the hook of a running or failed stage again, in a new pod
    #[command(after_help = AFTER_RETRY)]
    Retry(Request),
    /// Continue without the hook of a running or failed stage
    #[command(after_help = AFTER_SKIP)]
    Skip(Request),
}

const AFTER_STATUS: &str = "\
Examples:
  boathook rollout status shop
  boathook rollout status deployment/shop --no-wait -o yaml -n shop

Exit codes:
  0    the rollout is complete, including post
  1    it was aborted, made no progress, or did not end in time
  2    the command line is wrong
  3    with --no-wait: it has not ended
  130  ended by Ctrl-C; the rollout continues";

const AFTER_HISTORY: &str = "\
Examples:
  boathook rollout history shop
  boathook rollout history shop -o wide -n shop

Exit codes:
  0    success
  1    failure, or there is no such Deployment with hooks
  2    the command line is wrong";

const AFTER_RETRY: &str = "\
Examples:
  boathook rollout retry shop --stage pre

Exit codes:
  0    the retry is requested
  1    failure, or the stage is neither running nor failed
  2    the command line is wrong";

const AFTER_SKIP: &str = "\
Examples:
  boathook rollout skip shop --stage mid -n shop

Exit codes:
  0    the skip is requested
  1    failure, or the stage is neither running nor failed
  2    the command line is wrong";

const AFTER_REHEARSE: &str = "\
Examples:
  boathook rollout rehearse -f shop.yaml
  kustomize build . | boathook rollout rehearse -f - -n shop

Exit codes:
  0    it would work; the output lists the risks
  1    it would fail; the output lists the reasons
  2    the command line is wrong";

/// A stage may take ten minutes, by Kubernetes' default of `progressDeadlineSeconds`, and there are three.
const STATUS_TIMEOUT: &str = "1h";

#[derive(Args)]
#[command(
    after_help = AFTER_STATUS,
    mut_arg("wait", |wait| wait.help("Follow the rollout to its end; false: print how it stands now")),
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
#[command(after_help = AFTER_HISTORY)]
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
    /// A file with a Deployment, a DeploymentLifecycle, or both; a missing one is read from the cluster; - reads stdin
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
    /// The stage of the hook
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
