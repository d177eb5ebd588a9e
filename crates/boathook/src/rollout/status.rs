//! `boathook rollout status`: a rollout followed through its stages to its end.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use boathook_api::DeploymentLifecycle;
use jiff::Timestamp;
use kube::{Client, runtime::watcher};
use tokio::time::{Instant, sleep_until};

use super::{
    deployment::{self, RawDeployment},
    verdict::{Seen, Verdict},
    view::View,
};
use crate::{
    mirror::Mirror,
    output::{
        self, Screen,
        duration::shown,
        format::{self, Format},
    },
    pods::Scope,
    server,
    waiting::{INTERRUPTED, NOBODY_LOOKED, PATIENCE, frames},
};

/// It has not ended, and nobody wanted to wait for that.
const UNDER_WAY: u8 = 3;

/// What a person asked for.
pub(crate) struct Status {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) wait: bool,
    pub(crate) timeout: Duration,
    pub(crate) format: Format,
}

/// Why watching ended.
enum End {
    Over,
    TimeOver,
    Interrupted,
}

impl Status {
    pub(crate) async fn run(self, client: &Client) -> Result<ExitCode> {
        let screen = if self.format.is_for_programs() { Screen::aside() } else { Screen::new() };
        let mut view = View::new(screen);
        let scope = Scope::Namespace(self.namespace.clone());
        let (deployment, lifecycle) = deployment::find(client, &scope, &self.name).await?;
        let seen = Seen::new(&deployment, &lifecycle)?;
        let verdict = seen.verdict();
        match (self.wait, is_over(&verdict)) {
            (true, false) => return self.follow(client, &mut view).await,
            // How it is told does not depend on who was faster.
            (true, true) => view.show(&seen, None)?,
            (false, _) => view.now(&seen, Timestamp::now())?,
        }
        view.verdict(&seen, &verdict)?;
        self.print_object(&lifecycle)?;
        Ok(code(&verdict))
    }

    async fn follow(&self, client: &Client, view: &mut View) -> Result<ExitCode> {
        let by_name = || watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let mut both = Both {
            deployments: Mirror::new(client, &self.namespace, by_name()),
            lifecycles: Mirror::new(client, &self.namespace, by_name()),
        };
        let deadline = Instant::now() + self.timeout;
        while !both.are_ready() {
            tokio::select! {
                changed = both.next() => changed?,
                () = sleep_until(deadline) => bail!("{} did not answer within {}", server::named(), shown(self.timeout)),
            }
        }
        let end = self.watch(&mut both, deadline, view).await;
        view.screen.clear();
        let end = end?;
        let (deployment, lifecycle) = both.get(&self.name)?;
        let seen = Seen::new(deployment, lifecycle)?;
        let code = match end {
            End::Over => {
                let verdict = seen.verdict();
                view.verdict(&seen, &verdict)?;
                code(&verdict)
            }
            End::TimeOver => {
                view.verdict(&seen, &seen.verdict())?;
                view.screen.note(&format!("error: the rollout has not ended within {}", shown(self.timeout)));
                view.left(&self.name, &self.namespace);
                ExitCode::FAILURE
            }
            End::Interrupted => {
                view.screen.note("interrupted");
                view.left(&self.name, &self.namespace);
                ExitCode::from(INTERRUPTED)
            }
        };
        self.print_object(lifecycle)?;
        Ok(code)
    }

    async fn watch(&self, both: &mut Both, deadline: Instant, view: &mut View) -> Result<End> {
        let mut frames = frames();
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let begun = Instant::now();
        let mut hinted = false;
        let (mut waiting_since, mut warned) = (None, false);
        loop {
            tokio::select! {
                changed = both.next() => changed?,
                _ = frames.tick() => {}
                interrupted = &mut interrupt => {
                    interrupted.context("failed to wait for Ctrl-C")?;
                    return Ok(End::Interrupted);
                }
                () = sleep_until(deadline) => return Ok(End::TimeOver),
            }
            let (deployment, lifecycle) = both.get(&self.name)?;
            let seen = Seen::new(deployment, lifecycle)?;
            view.show(&seen, Some(begun.elapsed()))?;
            let verdict = seen.verdict();
            if is_over(&verdict) {
                return Ok(End::Over);
            }
            view.progress(&seen, begun.elapsed());
            let untouched = matches!(verdict, Verdict::NotBegun(_)) && !seen.deployment.paused;
            if untouched && !hinted && begun.elapsed() > PATIENCE {
                hinted = true;
                view.screen.warn(seen.what_ends_first().as_deref().unwrap_or(NOBODY_LOOKED));
            }
            let Some(rollout) = seen.rollout().filter(|rollout| seen.waits_for_pods(rollout)) else {
                waiting_since = None;
                continue;
            };
            let waited = waiting_since.get_or_insert_with(Instant::now).elapsed();
            if !warned && waited > PATIENCE {
                warned = true;
                view.slow(&seen, rollout, waited);
            }
        }
    }

    /// For `-o json|yaml`.
    fn print_object(&self, object: &DeploymentLifecycle) -> Result<()> {
        let value = format::single(serde_json::to_value(object).context("failed to write the object")?);
        match self.format.text(&value)? {
            Some(text) => Ok(output::print(&text)?),
            None => Ok(()),
        }
    }
}

fn is_over(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Complete | Verdict::Failed(_) => true,
        Verdict::NotBegun(_) | Verdict::UnderWay => false,
    }
}

fn code(verdict: &Verdict) -> ExitCode {
    match verdict {
        Verdict::Complete => ExitCode::SUCCESS,
        Verdict::Failed(_) => ExitCode::FAILURE,
        Verdict::NotBegun(_) | Verdict::UnderWay => ExitCode::from(UNDER_WAY),
    }
}

/// The Deployment and its lifecycle, as they are now.
struct Both {
    deployments: Mirror<RawDeployment>,
    lifecycles: Mirror<DeploymentLifecycle>,
}

impl Both {
    fn are_ready(&self) -> bool {
        self.deployments.is_ready() && self.lifecycles.is_ready()
    }

    async fn next(&mut self) -> Result<()> {
        tokio::select! {
            changed = self.deployments.next() => changed,
            changed = self.lifecycles.next() => changed,
        }
    }

    fn get(&self, name: &str) -> Result<(&RawDeployment, &DeploymentLifecycle)> {
        let deployment = self.deployments.get(name);
        let deployment = deployment.with_context(|| format!("Deployment `{name}` was deleted meanwhile"))?;
        let lifecycle = self.lifecycles.get(name).with_context(|| {
            format!("DeploymentLifecycle `{name}` was deleted meanwhile: the rollout continues without its hooks")
        })?;
        Ok((deployment, lifecycle))
    }
}
