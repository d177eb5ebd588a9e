//! What may go wrong though a rollout would work: a pure look at its stages.

use std::time::Duration;

use boathook_api::deployment_lifecycle::{FailurePolicy, Stage};

use super::stage::Staged;
use crate::output::{
    duration::shown,
    plain::{names, one_line},
};

/// From here on a retry is long: Kubernetes' default of `progressDeadlineSeconds`.
const LONG_SECONDS: i32 = 600;

pub(super) fn risks(stages: &[Staged]) -> Vec<String> {
    stages.iter().flat_map(of_stage).collect()
}

fn of_stage(staged: &Staged) -> Vec<String> {
    let Staged { stage, failure_policy, timeout_seconds, unknown_volumes, unmounted_volumes, .. } = staged;
    let mut risks = Vec::new();
    match (stage, failure_policy) {
        (Stage::Mid, FailurePolicy::Retry | FailurePolicy::Abort) => risks.push(
            "mid stops everything: no version serves until it has passed; if it fails for good, no version runs until \
             you retry it, skip it, or roll out another version"
                .to_owned(),
        ),
        (Stage::Mid, FailurePolicy::Ignore) => {
            risks.push("mid stops everything until it has ended; if it fails, the new version starts anyway".to_owned())
        }
        (Stage::Post, FailurePolicy::Abort) => {
            risks.push("a failed post fails the rollout, although the new version serves".to_owned());
        }
        (Stage::Pre, FailurePolicy::Ignore) => {
            risks.push("a failed pre is ignored: it cannot veto the rollout".to_owned());
        }
        (Stage::Pre, FailurePolicy::Retry | FailurePolicy::Abort)
        | (Stage::Post, FailurePolicy::Retry | FailurePolicy::Ignore) => {}
    }
    if *failure_policy == FailurePolicy::Retry && *timeout_seconds >= LONG_SECONDS {
        let longest = shown(Duration::from_secs(u64::try_from(*timeout_seconds).unwrap_or_default()));
        risks.push(format!(
            "{stage} is retried for {longest} before it fails for good: set the Deployment's \
             progressDeadlineSeconds, or write `failurePolicy: Abort`"
        ));
    }
    for (volumes, what) in [
        (unknown_volumes, "which the template lacks: they are ignored"),
        (unmounted_volumes, "which its container does not mount: the hook cannot see them"),
    ] {
        if !volumes.is_empty() {
            let all = one_line(&names(volumes.iter().map(String::as_str)));
            risks.push(format!("{stage} names volumes {all}, {what}"));
        }
    }
    risks
}
