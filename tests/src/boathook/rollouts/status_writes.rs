//! What Boathook writes into the Deployment's status: how its rollout stands, and again, unchanged, to wake the Deployment
//! controller. Neither without end.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use boathook_api::{deployment_lifecycle::RolloutPhase, words::condition};
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentCondition},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

use super::{
    history::{is_hook, is_live},
    story::Now,
};
use crate::{
    boathook::lifecycles::{phase, rollout},
    deployments::is_rolled_out,
};

/// Each stage is told, and each may have to wake the Deployment controller a few times, ever more rarely. While users write
/// faster than rollouts begin, what is told of several is counted for one.
const MOST: usize = 40;

/// It may have had something to do when it was looked at; and once more after each change of the leader.
const MOST_IN_VAIN: usize = 10;

/// What was written for one rollout.
#[derive(Default)]
struct Written {
    in_all: usize,
    /// To wake the Deployment controller when that had nothing to do.
    in_vain: usize,
}

/// What was written so far, by the rollout that was under way.
#[derive(Default)]
pub(super) struct StatusWrites {
    written: BTreeMap<Option<MicroTime>, Written>,
}

impl StatusWrites {
    pub(super) fn take(&mut self, before: &Now, deployment: &Deployment) -> Result<()> {
        let (known, told) = (before.deployment.as_ref().and_then(told), told(deployment));
        if before.deployment.is_none() || known == told {
            return Ok(());
        }
        let rollout = before.lifecycle.as_ref().and_then(rollout).map(|rollout| rollout.start_time.clone());
        let written = self.written.entry(rollout).or_default();
        written.in_all += 1;
        written.in_vain += usize::from(has_nothing_to_do(before) && said(known) == said(told));
        let Written { in_all, in_vain } = *written;
        ensure!(in_all <= MOST, "its status was written {in_all} times for one rollout");
        ensure!(in_vain <= MOST_IN_VAIN, "the Deployment controller was woken {in_vain} times in vain");
        Ok(())
    }
}

fn told(deployment: &Deployment) -> Option<&DeploymentCondition> {
    deployment.status.as_ref()?.conditions.as_ref()?.iter().find(|one| one.type_ == condition::LIFECYCLE)
}

/// Without when.
fn said(condition: Option<&DeploymentCondition>) -> Option<(&str, Option<&String>, Option<&String>)> {
    condition.map(|one| (one.status.as_str(), one.reason.as_ref(), one.message.as_ref()))
}

/// The Deployment controller has seen everything, and a hook runs, or everything is rolled out, or nothing more will be.
fn has_nothing_to_do(now: &Now) -> bool {
    let Some(deployment) = &now.deployment else { return false };
    let seen = deployment.status.as_ref().and_then(|status| status.observed_generation);
    let over = match now.lifecycle.as_ref().and_then(phase) {
        Some(RolloutPhase::Post | RolloutPhase::Complete) => is_rolled_out(deployment),
        Some(RolloutPhase::Aborted) => true,
        Some(RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Rolling) | None => false,
    };
    let hook_runs = || now.pods.values().any(|pod| is_hook(pod) && is_live(pod));
    seen >= deployment.metadata.generation && (over || hook_runs())
}
