//! How far a rollout has come, and what runs. That a stage is recorded does not say that it was reached: a hook that cannot
//! run is recorded as failed before anything is touched. What runs is known by the Deployment's own counts.

use boathook_api::deployment_lifecycle::{Rollout, RolloutPhase, Stage};
use boathook_decide::deployment_lifecycle::{Deployment, Strategy};

/// What is known to have happened to the versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The old one was told to end.
    pub(super) drains: bool,
    /// It has ended.
    pub(super) drained: bool,
    /// The new one was let in.
    pub(super) opened: bool,
}

impl Progress {
    pub(super) fn of(rollout: &Rollout, deployment: &Deployment) -> Self {
        let recreates = deployment.strategy == Strategy::Recreate;
        let has_pod = |stage| rollout.stage(stage).is_some_and(|record| record.pod.is_some());
        match rollout.phase {
            RolloutPhase::Pre => Self::default(),
            RolloutPhase::Mid => {
                let drained = has_pod(Stage::Mid);
                Self { drains: drained || recreates, drained, opened: false }
            }
            RolloutPhase::Rolling | RolloutPhase::Post | RolloutPhase::Complete => {
                Self { drains: recreates, drained: recreates, opened: true }
            }
            // Where its failed stage is, if it had come to that. A pod that was asked for by a retry may never have been.
            RolloutPhase::Aborted => {
                let Deployment { status_replicas, updated_replicas, replicas, .. } = *deployment;
                let old_is_gone = status_replicas <= updated_replicas;
                let new_is_there = updated_replicas > 0 || replicas == 0;
                let opened = has_pod(Stage::Post) && old_is_gone && new_is_there;
                // The pod of mid is created after the drain; the Deployment's counts may be older than its failure.
                let mid_had_a_pod = rollout.stage(Stage::Mid).is_some_and(|record| record.pod_uid.is_some());
                let drained = mid_had_a_pod || old_is_gone && has_pod(Stage::Mid) || opened && recreates;
                Self { drains: drained, drained, opened }
            }
        }
    }
}

/// Which version serves after an abort.
pub(super) fn what_runs(rollout: &Rollout, deployment: &Deployment) -> String {
    let Progress { drained, opened, .. } = Progress::of(rollout, deployment);
    let text = match (deployment.status_replicas, deployment.updated_replicas) {
        (0, _) if opened => "nothing runs: the new version is let in, and has no pods",
        (0, _) | (_, 0) if drained => "NOTHING RUNS: the old version has ended, and the new one is held",
        (0, _) => "nothing runs: the new version is held, and no other has pods",
        (all, new) if all == new => "the new version serves",
        (_, 0) => "the old version serves, as before; the new one is held",
        (all, new) => {
            return format!("both versions serve: {new} of {all} pods are of the new one, and the rest is held");
        }
    };
    text.to_owned()
}

/// Whether a stage has a hook that has not passed yet.
pub(super) fn has_yet_to_pass(rollout: &Rollout, stage: Stage) -> bool {
    rollout.hooks.hook(stage).is_some() && rollout.stage(stage).is_none_or(|record| !record.state.has_passed())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::verdict::tests::{deployment, lifecycle},
        *,
    };

    /// A rollout that was aborted at this stage, whose record has a pod or none.
    fn aborted(stage: &str, pod: Option<&str>) -> Rollout {
        let record = json!({"stage": stage, "state": "Failed", "pod": pod, "pods": 0, "failures": 0,
            "startTime": "2026-01-01T00:00:01.000000Z"});
        lifecycle("Aborted", json!({"status": {"rollout": {"stages": [record]}}})).status.unwrap().rollout.unwrap()
    }

    fn counts(strategy: &str, all: i32, new: i32) -> Deployment {
        let counts =
            json!({"spec": {"strategy": {"type": strategy}}, "status": {"replicas": all, "updatedReplicas": new}});
        deployment(counts).seen().unwrap()
    }

    #[test]
    fn a_hook_that_cannot_run_fails_while_the_old_version_serves() {
        for stage in ["Mid", "Post"] {
            // By a retry a pod is named that is never made.
            for pod in [None, Some("web-x")] {
                let (rollout, serves) = (aborted(stage, pod), counts("Recreate", 3, 0));
                assert_eq!(Progress::of(&rollout, &serves), Progress::default(), "{stage} {pod:?}");
                assert_eq!(what_runs(&rollout, &serves), "the old version serves, as before; the new one is held");
            }
            let first = what_runs(&aborted(stage, None), &counts("Recreate", 0, 0));
            assert_eq!(first, "nothing runs: the new version is held, and no other has pods");
        }
        let never_let_in = Progress::of(&aborted("Post", Some("web-x")), &counts("Recreate", 0, 0));
        assert!(!never_let_in.opened, "{never_let_in:?}");
    }

    #[test]
    fn what_runs_is_what_the_deployment_counts_whatever_its_strategy_is_now() {
        for strategy in ["Recreate", "RollingUpdate"] {
            for (stage, all, new, words) in [
                ("Mid", 0, 0, "NOTHING RUNS: the old version has ended"),
                ("Mid", 3, 3, "the new version serves"),
                ("Post", 3, 3, "the new version serves"),
                ("Pre", 3, 0, "the old version serves"),
                ("Pre", 4, 1, "both versions serve: 1 of 4 pods are of the new one"),
            ] {
                let told = what_runs(&aborted(stage, Some("web-x")), &counts(strategy, all, new));
                assert!(told.starts_with(words), "{strategy} {stage} {all} {new}: {told}");
            }
        }
        let mut scaled_to_none = counts("Recreate", 0, 0);
        scaled_to_none.replicas = 0;
        let told = what_runs(&aborted("Post", Some("web-x")), &scaled_to_none);
        assert_eq!(told, "nothing runs: the new version is let in, and has no pods");
    }

    #[test]
    fn a_pod_of_mid_outweighs_outdated_replica_counts() {
        let mut ran = aborted("Mid", Some("web-x"));
        ran.stages[0].pod_uid = Some("1-2-3".to_owned());
        let behind = counts("Recreate", 2, 0);
        assert!(what_runs(&ran, &behind).starts_with("NOTHING RUNS"), "{}", what_runs(&ran, &behind));
        assert!(Progress::of(&ran, &behind).drained);
    }

    #[test]
    fn an_early_failure_that_was_skipped_has_drained_nothing() {
        let mut skipped = aborted("Mid", None);
        (skipped.phase, skipped.stages[0].state) =
            (RolloutPhase::Pre, boathook_api::deployment_lifecycle::StageState::Skipped);
        assert_eq!(Progress::of(&skipped, &counts("Recreate", 3, 0)), Progress::default());
        skipped.phase = RolloutPhase::Mid;
        let draining = Progress { drains: true, drained: false, opened: false };
        assert_eq!(Progress::of(&skipped, &counts("Recreate", 3, 0)), draining);
        let passes: Vec<_> = Stage::ALL.into_iter().filter(|stage| has_yet_to_pass(&skipped, *stage)).collect();
        assert_eq!(passes, [Stage::Pre, Stage::Post]);
    }
}
