//! What an executor is given, in short; and running it from either place.

use std::time::Duration;

use anyhow::{Context, Result};
use boathook_actions::{ApiServer, Cancel, Ended, Failure, Outcome, Place, Target, Work, place::cri::Options};
use boathook_api::{
    ExecAction, Probe, Signal,
    action::{Deed, Output, ValidAction},
    pod_notification::{ErrorType, Retry},
};
use boathook_process::{arguments, processes};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;

use crate::{
    Ctx, DEADLINE,
    pods::{PodBuilder, is_ready},
};

/// Where an action is carried out from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    ApiServer,
    Node,
}

/// Both, for what holds wherever it is carried out from.
pub const EITHER: [From; 2] = [From::ApiServer, From::Node];

/// A command, and the seconds it may take.
pub fn command<const N: usize>(command: [&str; N], seconds: u64) -> Work {
    let command = command.map(str::to_owned).into();
    of(Deed::Exec(ExecAction { command, hold: false }), seconds)
}

/// A script for `sh`, and the seconds it may take.
pub fn script(script: &str, seconds: u64) -> Work {
    command(["sh", "-c", script], seconds)
}

pub fn signal(name: &str) -> Result<Work> {
    Ok(of(Deed::Signal(name.parse::<Signal>()?), 60))
}

pub fn of(deed: Deed, seconds: u64) -> Work {
    let action = ValidAction { deed, timeout: Duration::from_secs(seconds), output: Output::Tail };
    Work { action, probe: None, retry: Retry::Never }
}

/// The same, with a probe as a pod's author writes one.
pub fn probed(work: Work, probe: Value) -> Result<Work> {
    let probe: Probe = serde_json::from_value(probe).context("not a probe")?;
    Ok(Work { probe: Some(probe), ..work })
}

impl Ctx {
    /// Creates the pod, and returns it when it is ready.
    pub async fn running(&self, pod: PodBuilder) -> Result<Pod> {
        let pod = self.create(&pod.build()).await?;
        self.watch_until(DEADLINE, &pod.name_any(), "is ready", is_ready).await
    }

    /// Runs it in the pod's container `main`.
    pub async fn carry_out(&self, from: From, pod: &Pod, work: &Work) -> Result<Ended> {
        self.carry_out_unless(from, pod, work, Cancel::new()).await
    }

    /// The same, unless it is cancelled.
    pub async fn carry_out_unless(&self, from: From, pod: &Pod, work: &Work, cancel: Cancel) -> Result<Ended> {
        match from {
            From::ApiServer => {
                Ok(Place::Api(ApiServer::new(self.client())).run(&self.main_of(pod)?, work, cancel).await)
            }
            From::Node => self.run_on_node(pod, Options::default(), (self.main_of(pod)?, work.clone(), cancel)).await,
        }
    }

    /// The pod's container `main`.
    pub fn main_of(&self, pod: &Pod) -> Result<Target> {
        Ok(Target {
            namespace: self.namespace().to_owned(),
            pod: pod.name_any(),
            pod_uid: pod.uid().context("the pod has no UID")?,
            container: "main".to_owned(),
        })
    }
}

/// Why it failed. An error if it did not.
pub fn failure(ended: &Ended) -> Result<(ErrorType, &str)> {
    match &ended.outcome {
        Outcome::Failed(Failure { kind, message }) => Ok((*kind, message)),
        Outcome::Succeeded | Outcome::Unknown(_) => anyhow::bail!("not a failure: {ended:?}"),
    }
}

/// Who on this machine sleeps for so many seconds: a number of its own for each scenario finds what it started.
pub fn sleepers(seconds: &str) -> Result<Vec<i32>> {
    let alive = processes()?.into_iter().filter(|process| !process.ended).map(|process| process.identity.pid);
    let sleeps =
        |pid: &i32| arguments(*pid).is_some_and(|words| words.ends_with(&["sleep".to_owned(), seconds.to_owned()]));
    Ok(alive.filter(sleeps).collect())
}

/// Seconds that nobody else sleeps for.
pub fn own_seconds(scenario: u32) -> String {
    format!("{}{scenario:03}", std::process::id() + 1_000_000)
}
