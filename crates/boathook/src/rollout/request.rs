//! `boathook rollout retry|skip`: a person helps a stage along, and that is recorded.

use anyhow::{Context, Result, bail};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Requested, Rollout, RolloutRequest, Stage, StageState},
    words::ROLLOUT_REQUEST,
};
use boathook_decide::deployment_lifecycle::{Deployment, Strategy, hook_mistake};
use kube::Client;
use serde_json::json;

use super::{
    deployment,
    progress::{Progress, has_yet_to_pass},
    stages::word,
    verdict::Seen,
};
use crate::{cli::called_as, objects, output::Screen, pods::Scope, unique};

/// What a person asked for.
pub(crate) struct Request {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) stage: Stage,
    pub(crate) what: Requested,
}

impl Request {
    pub(crate) async fn run(self, client: &Client) -> Result<()> {
        let Self { namespace, name, stage, what } = &self;
        let scope = Scope::Namespace(namespace.clone());
        let (deployment, lifecycle) = deployment::find(client, &scope, name).await?;
        let seen = Seen::new(&deployment, &lifecycle)?;
        if let Some(why) = refusal(&seen, *stage) {
            bail!("{why}");
        }
        let request = RolloutRequest { id: unique::word(), stage: *stage, what: *what };
        let text = serde_json::to_string(&request).context("failed to write the request")?;
        // If the rollout has gone on meanwhile, the controller refuses it.
        let change = json!({"metadata": {"annotations": {ROLLOUT_REQUEST: text}}});
        objects::merge::<DeploymentLifecycle>(client, &scope, name, &change).await?;
        let mut screen = Screen::new();
        let asked = match what {
            Requested::Retry => "retry",
            Requested::Skip => "skip",
        };
        screen.line(&format!("deploymentlifecycle.boathook.dev/{name}: {asked} of {stage} requested"))?;
        if let Some(rollout) = seen.rollout() {
            screen.text("  ", None, &what_follows(*what, *stage, rollout, &seen.deployment))?;
        }
        screen.text("  ", None, &format!("to follow it: {} rollout status {name} -n {namespace}", called_as()))?;
        Ok(())
    }
}

/// Why nothing can be asked of this stage.
fn refusal(seen: &Seen<'_>, stage: Stage) -> Option<String> {
    let name = &seen.deployment.name;
    let Some(rollout) = seen.rollout() else {
        return Some(format!(
            "{stage} of Deployment `{name}` is neither running nor failed: its rollout has not begun"
        ));
    };
    let how = match rollout.stage(stage).map(|record| record.state) {
        Some(StageState::Running | StageState::Failed) => return None,
        Some(StageState::Succeeded) => "it has succeeded".to_owned(),
        Some(StageState::Ignored) => "it failed, and the failure was ignored".to_owned(),
        Some(StageState::Skipped) => "it was skipped".to_owned(),
        None if rollout.hooks.hook(stage).is_none() => "this rollout has no such hook".to_owned(),
        Some(StageState::Superseded) => "a newer template replaced it".to_owned(),
        None => "the rollout has not reached it".to_owned(),
    };
    let open = open(rollout).map(|(stage, state)| format!("; {stage} is {}", word(state)));
    Some(format!("{stage} of Deployment `{name}` is neither running nor failed: {how}{}", open.unwrap_or_default()))
}

/// The stage of which something can be asked.
fn open(rollout: &Rollout) -> Option<(Stage, StageState)> {
    let mut stages = rollout.stages.iter().map(|record| (record.stage, record.state));
    stages.find(|(_, state)| matches!(state, StageState::Running | StageState::Failed))
}

fn what_follows(what: Requested, stage: Stage, rollout: &Rollout, deployment: &Deployment) -> String {
    // A hook that cannot run has failed before its stage, and those before it have not run.
    let first = Stage::ALL.into_iter().find(|earlier| *earlier < stage && has_yet_to_pass(rollout, *earlier));
    if what == Requested::Retry {
        let seconds = deployment.progress_deadline_seconds;
        // Both the hook and the template stay as they are for the whole rollout.
        let mistake = rollout.hooks.hook(stage).and_then(|hook| hook_mistake(deployment, stage, hook));
        return match (mistake, first) {
            (Some(mistake), _) => format!("no pod can run it, so {stage} fails again: {mistake}"),
            (None, Some(first)) => {
                format!("{first} runs first, then a new pod runs {stage}; what is held stays held until then")
            }
            (None, None) => format!(
                "a new pod runs it, and has {seconds} s (progressDeadlineSeconds); what is held stays held until then"
            ),
        };
    }
    if let Some(first) = first {
        return format!("{first} runs first, then the rollout goes on as if {stage} had passed");
    }
    let recreates = deployment.strategy == Strategy::Recreate;
    match stage {
        Stage::Pre if recreates => "the old version ends, then the rollout goes on as if pre had passed".to_owned(),
        Stage::Mid if recreates && deployment.status_replicas > deployment.updated_replicas => {
            "the old version ends, then the new one is let in, as if mid had passed".to_owned()
        }
        Stage::Pre | Stage::Mid => format!("the new version is let in, as if {stage} had passed"),
        Stage::Post if Progress::of(rollout, deployment).opened => {
            "the rollout is complete, as if post had passed".to_owned()
        }
        Stage::Post => "the new version is let in, and post is left out then".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::verdict::tests::{deployment, lifecycle},
        *,
    };

    fn refused(phase: &str, stages: Value, stage: Stage) -> Option<String> {
        let lifecycle = lifecycle(phase, json!({"status": {"rollout": {"stages": stages, "hooks": {"mid": null}}}}));
        refusal(&Seen::new(&deployment(json!({})), &lifecycle).unwrap(), stage)
    }

    #[test]
    fn only_a_stage_that_runs_or_failed_is_helped_along() {
        let record = |stage: &str, state: &str| {
            json!({"stage": stage, "state": state, "pods": 1,
            "startTime": "2026-01-01T00:00:00.000000Z"})
        };
        assert_eq!(refused("Pre", json!([record("Pre", "Running")]), Stage::Pre), None);
        assert_eq!(refused("Aborted", json!([record("Pre", "Failed")]), Stage::Pre), None);
        let stages = json!([record("Pre", "Succeeded"), record("Post", "Running")]);
        for (stage, words) in [
            (Stage::Pre, "pre of Deployment `web` is neither running nor failed: it has succeeded; post is running"),
            (
                Stage::Mid,
                "mid of Deployment `web` is neither running nor failed: this rollout has no such hook; post is running",
            ),
        ] {
            assert_eq!(refused("Post", stages.clone(), stage).as_deref(), Some(words));
        }
        let early = refused("Pre", json!([]), Stage::Post).unwrap();
        assert!(early.ends_with("the rollout has not reached it"), "{early}");
        let before = lifecycle("Aborted", json!({"status": {"rollout": {"target": "other"}}}));
        let told = refusal(&Seen::new(&deployment(json!({})), &before).unwrap(), Stage::Pre).unwrap();
        assert!(told.ends_with("its rollout has not begun"), "{told}");
    }

    #[test]
    fn retry_promises_a_pod_only_if_one_can_be_made() {
        let told = |stages: Value, container: &str| {
            let mid = json!({"failurePolicy": "Abort", "execNewPod": {"containerName": container, "command": ["a"]}});
            let rollout = json!({"stages": stages, "hooks": {"mid": mid}});
            let lifecycle = lifecycle("Aborted", json!({"status": {"rollout": rollout}}));
            let seen = Seen::new(&deployment(json!({})), &lifecycle).unwrap();
            what_follows(Requested::Retry, Stage::Mid, seen.rollout().unwrap(), &seen.deployment)
        };
        let record = |stage: &str, state: &str| json!({"stage": stage, "state": state, "pods": 1, "startTime": "2026-01-01T00:00:00.000000Z"});
        let reached = json!([record("Pre", "Succeeded"), record("Mid", "Failed")]);
        assert!(told(reached.clone(), "web").starts_with("a new pod runs it, and has 600 s"));
        let unknown = told(reached, "nope");
        let wanted = "no pod can run it, so mid fails again: the Deployment's pod template has no container `nope` (it has `web`)";
        assert!(unknown.starts_with(wanted), "{unknown}");
        let early = told(json!([record("Mid", "Failed")]), "web");
        assert!(early.starts_with("pre runs first, then a new pod runs mid"), "{early}");
    }

    #[test]
    fn what_follows_a_skip_depends_on_how_far_it_came() {
        let told = |phase: &str, stages: Value, stage: Stage, all: i32, new: i32| {
            let lifecycle = lifecycle(phase, json!({"status": {"rollout": {"stages": stages}}}));
            let counts = json!({"status": {"replicas": all, "updatedReplicas": new}});
            let seen = Seen::new(&deployment(counts), &lifecycle).unwrap();
            what_follows(Requested::Skip, stage, seen.rollout().unwrap(), &seen.deployment)
        };
        let record = |stage: &str, state: &str, pod: Option<&str>| json!({"stage": stage, "state": state, "pod": pod, "pods": 1, "startTime": "2026-01-01T00:00:00.000000Z"});
        let early = |stage: &str| json!([record(stage, "Failed", None)]);
        let first = "pre runs first, then the rollout goes on as if";
        assert_eq!(told("Aborted", early("Mid"), Stage::Mid, 3, 0), format!("{first} mid had passed"));
        assert_eq!(told("Aborted", early("Post"), Stage::Post, 3, 0), format!("{first} post had passed"));

        let (pre, mid) = (record("Pre", "Succeeded", Some("a")), record("Mid", "Succeeded", Some("b")));
        let ran = json!([pre, record("Mid", "Failed", Some("b"))]);
        assert_eq!(told("Aborted", ran, Stage::Mid, 0, 0), "the new version is let in, as if mid had passed");
        let not_drained = json!([pre, record("Mid", "Failed", None)]);
        let drains = "the old version ends, then the new one is let in, as if mid had passed";
        assert_eq!(told("Aborted", not_drained, Stage::Mid, 3, 0), drains);
        let post = json!([pre, mid, record("Post", "Running", Some("c"))]);
        assert_eq!(told("Post", post, Stage::Post, 3, 3), "the rollout is complete, as if post had passed");
    }
}
