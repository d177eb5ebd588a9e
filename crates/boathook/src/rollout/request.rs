//! `boathook rollout retry|skip`: a person helps a stage along, and that is recorded.

use anyhow::{Context, Result, bail};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Requested, Rollout, RolloutRequest, Stage, StageState},
    words::ROLLOUT_REQUEST,
};
use boathook_decide::deployment_lifecycle::{Deployment, Strategy};
use kube::Client;
use serde_json::json;

use super::{deployment, stages::word, verdict::Seen};
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
        screen.line(&format!("deploymentlifecycle.boathook.dev/{name}: asked to {asked} {stage}"))?;
        screen.text("  ", None, &what_follows(*what, *stage, &seen.deployment))?;
        screen.text("  ", None, &format!("to follow it: {} rollout status {name} -n {namespace}", called_as()))?;
        Ok(())
    }
}

/// Why nothing can be asked of this stage.
fn refusal(seen: &Seen<'_>, stage: Stage) -> Option<String> {
    let name = &seen.deployment.name;
    let Some(rollout) = seen.rollout() else {
        return Some(format!("{stage} of Deployment `{name}` neither runs nor failed: its rollout has not begun"));
    };
    let how = match rollout.stage(stage).map(|record| record.state) {
        Some(StageState::Running | StageState::Failed) => return None,
        Some(StageState::Succeeded) => "it has succeeded".to_owned(),
        Some(StageState::Ignored) => "it failed, and that was ignored".to_owned(),
        Some(StageState::Skipped) => "it was skipped".to_owned(),
        None if rollout.hooks.hook(stage).is_none() => "this rollout has no such hook".to_owned(),
        None => "the rollout has not come to it".to_owned(),
    };
    let open = open(rollout).map(|(stage, state)| format!("; {stage} is {}", word(state)));
    Some(format!("{stage} of Deployment `{name}` neither runs nor failed: {how}{}", open.unwrap_or_default()))
}

/// The stage of which something can be asked.
fn open(rollout: &Rollout) -> Option<(Stage, StageState)> {
    let mut stages = rollout.stages.iter().map(|record| (record.stage, record.state));
    stages.find(|(_, state)| matches!(state, StageState::Running | StageState::Failed))
}

fn what_follows(what: Requested, stage: Stage, deployment: &Deployment) -> String {
    let strategy = deployment.strategy;
    match (what, stage, strategy) {
        (Requested::Retry, _, _) => {
            let seconds = deployment.progress_deadline_seconds;
            format!(
                "a new pod runs it, and has {seconds} s (progressDeadlineSeconds); what is held stays held until then"
            )
        }
        (Requested::Skip, Stage::Pre, Strategy::Recreate) => {
            "the old version ends, then the rollout goes on as if pre had passed".to_owned()
        }
        (Requested::Skip, Stage::Pre, Strategy::RollingUpdate) | (Requested::Skip, Stage::Mid, _) => {
            format!("the new version is let in, as if {stage} had passed")
        }
        (Requested::Skip, Stage::Post, _) => "the rollout is complete, as if post had passed".to_owned(),
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
            (Stage::Pre, "pre of Deployment `web` neither runs nor failed: it has succeeded; post is running"),
            (
                Stage::Mid,
                "mid of Deployment `web` neither runs nor failed: this rollout has no such hook; post is running",
            ),
        ] {
            assert_eq!(refused("Post", stages.clone(), stage).as_deref(), Some(words));
        }
        let early = refused("Pre", json!([]), Stage::Post).unwrap();
        assert!(early.ends_with("the rollout has not come to it"), "{early}");
        let before = lifecycle("Aborted", json!({"status": {"rollout": {"target": "other"}}}));
        let told = refusal(&Seen::new(&deployment(json!({})), &before).unwrap(), Stage::Pre).unwrap();
        assert!(told.ends_with("its rollout has not begun"), "{told}");
    }
}
