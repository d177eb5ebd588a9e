//! The steps of a rollout, as far as they are known to have been made: a pure look at what is recorded of it.

use std::time::Duration;

use boathook_api::deployment_lifecycle::{Rollout, RolloutPhase, Stage, StageRecord, StageState};
use boathook_decide::deployment_lifecycle::Deployment;
use jiff::Timestamp;

use super::{
    progress::Progress,
    stages::{colour, command_text, log, took, word},
};
use crate::output::{Colour, duration::shown, plain::one_line, steps::Step};

pub(super) fn steps(rollout: &Rollout, deployment: &Deployment) -> Vec<Step> {
    if rollout.phase == RolloutPhase::Complete && rollout.stages.is_empty() {
        // Adopted or cancelled: nothing was held.
        return vec![];
    }
    let id = rollout.start_time.0;
    let plain = |word: &'static str, text: String| Step::new(format!("{id} {word} {text}"), word, None, text);
    if rollout.resumed {
        let resumed = plain("resumed", format!("{} was let in before: only post is left", version(rollout)));
        return [vec![resumed], of_stage(rollout, Stage::Post)].concat();
    }
    let Progress { drains, drained, opened } = Progress::of(rollout, deployment);
    let serves = if deployment.status_replicas > deployment.updated_replicas { "; the old version serves" } else { "" };
    let held = plain("held", format!("{}{serves}", version(rollout)));
    // Its revision may become known later.
    let mut steps = vec![Step { key: format!("{id} held"), ..held }];
    steps.extend(of_stage(rollout, Stage::Pre));
    // The first version has no old version to drain.
    let is_first = rollout.revision.as_deref() == Some(FIRST_REVISION);
    if drains && !is_first {
        steps.push(plain("draining", "the old version ends, the new one is held".to_owned()));
    }
    if drained && !is_first {
        steps.push(plain("drained", "no version runs".to_owned()));
    }
    steps.extend(of_stage(rollout, Stage::Mid));
    if opened {
        steps.push(plain("rolling", "the new version is let in".to_owned()));
    }
    if rollout.phase == RolloutPhase::Rolling && deployment.updated_replicas > 0 {
        let Deployment { updated_replicas, replicas, .. } = deployment;
        steps.push(plain("rolling", format!("{updated_replicas} of {replicas} new pods")));
    }
    steps.extend(of_stage(rollout, Stage::Post));
    steps
}

/// The revision of a Deployment's first version.
pub(super) const FIRST_REVISION: &str = "1";

/// How a version is named: its revision may not be known yet.
pub(super) fn version(rollout: &Rollout) -> String {
    match &rollout.revision {
        Some(revision) => format!("revision {revision}"),
        None => "the new version".to_owned(),
    }
}

fn of_stage(rollout: &Rollout, stage: Stage) -> Vec<Step> {
    let Some(record) = rollout.stage(stage) else { return vec![] };
    let begun = record.start_time.0;
    let step = |what: &str, text: String, colour| {
        Step::new(format!("{} {stage} {begun} {what}", rollout.start_time.0), stage.as_str(), colour, text)
    };
    let mut steps = Vec::new();
    if let Some(pod) = &record.pod {
        let what = rollout.hooks.hook(stage).map(command_text).unwrap_or_default();
        let by = record.requested_by.as_deref().filter(|_| record.state != StageState::Skipped);
        let by = by.map(|who| format!(", retried by {}", one_line(who))).unwrap_or_default();
        steps.push(step(pod, format!("{what} (pod {pod}{by})"), None));
    }
    match record.state {
        StageState::Running => {
            let told = record.message.as_deref().map(one_line).filter(|message| !message.is_empty());
            steps.extend(told.map(|message| step(&message, message.clone(), Some(Colour::Odd))));
        }
        StageState::Succeeded | StageState::Skipped | StageState::Superseded => {
            steps.push(step(word(record.state), end_text(record), colour(record.state)));
        }
        StageState::Ignored | StageState::Failed => {
            let end = step(word(record.state), end_text(record), colour(record.state));
            steps.push(Step { details: log(record).collect(), ..end });
        }
    }
    steps
}

fn end_text(record: &StageRecord) -> String {
    let time = shown(took(&record.start_time, record.complete_time.as_ref(), Timestamp::UNIX_EPOCH));
    let why = record.message.as_deref().map(one_line).filter(|why| !why.is_empty());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    match record.state {
        StageState::Running | StageState::Succeeded => format!("ok in {time}"),
        StageState::Ignored => format!("FAILED after {time}, and the rollout continues{why}"),
        StageState::Failed => format!("FAILED after {time}{why}"),
        StageState::Superseded => format!("ended after {time}: a newer template replaced it"),
        StageState::Skipped => match &record.requested_by {
            Some(who) => format!("skipped by {}", one_line(who)),
            None => "skipped".to_owned(),
        },
    }
}

/// What is being waited for, for the line that is painted over.
pub(super) fn waiting_for(rollout: &Rollout, deployment: &Deployment, said: &str, since: Duration) -> String {
    let text = match rollout.phase {
        RolloutPhase::Rolling => {
            let Deployment { updated_replicas, available_replicas, replicas, .. } = deployment;
            format!("the new version is let in: {updated_replicas} of {replicas} pods, {available_replicas} available")
        }
        RolloutPhase::Mid if deployment.status_replicas > 0 => {
            format!("the old version ends: {} pods left", deployment.status_replicas)
        }
        _ => said.to_owned(),
    };
    format!("{text} ({}s)", since.as_secs())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::verdict::tests::{deployment, lifecycle},
        *,
    };

    fn told(phase: &str, stages: Value, deployment_has: Value) -> Vec<String> {
        let lifecycle = lifecycle(phase, json!({"status": {"rollout": {"stages": stages}}}));
        let rollout = lifecycle.status.unwrap().rollout.unwrap();
        let deployment = deployment(deployment_has).seen().unwrap();
        let steps = steps(&rollout, &deployment);
        let mut keys: Vec<_> = steps.iter().map(|step| &step.key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), steps.len(), "{steps:?}");
        let text = |step: &Step| [&[format!("{}: {}", step.word, step.text)], step.details.as_slice()].concat();
        steps.iter().flat_map(text).collect()
    }

    fn stage(stage: &str, state: &str, more: Value) -> Value {
        let mut record = json!({"stage": stage, "state": state, "pod": format!("web-{}-x", stage.to_lowercase()), "pods": 1,
            "failures": 0, "startTime": "2026-01-01T00:00:01.000000Z"});
        if state != "Running" {
            record["completeTime"] = json!("2026-01-01T00:00:03.500000Z");
        }
        for (key, value) in more.as_object().unwrap() {
            record[key] = value.clone();
        }
        record
    }

    #[test]
    fn a_whole_rollout_is_told_from_its_end_alone() {
        let stages = ["Pre", "Mid", "Post"].map(|name| stage(name, "Succeeded", json!({})));
        let wanted = [
            "held: revision 2",
            "pre: test now (pod web-pre-x)",
            "pre: ok in 2.5s",
            "draining: the old version ends, the new one is held",
            "drained: no version runs",
            "mid: migrate now (pod web-mid-x)",
            "mid: ok in 2.5s",
            "rolling: the new version is let in",
            "post: tell now (pod web-post-x)",
            "post: ok in 2.5s",
        ];
        assert_eq!(told("Complete", json!(stages), json!({})), wanted);
        let rolling = json!({"spec": {"strategy": {"type": "RollingUpdate"}}, "status": {"updatedReplicas": 2}});
        let told = told("Rolling", json!([stages[0]]), rolling);
        assert_eq!(told[3..], ["rolling: the new version is let in", "rolling: 2 of 3 new pods"]);
    }

    #[test]
    fn a_failure_says_why_and_what_it_wrote() {
        let failed = stage("Pre", "Failed", json!({"message": "exit code 1", "logTail": "one\n\x1b[2J"}));
        let told_of = told("Aborted", json!([failed]), json!({"status": {"updatedReplicas": 0}}));
        assert_eq!(told_of[0], "held: revision 2; the old version serves");
        assert_eq!(told_of[2..], ["pre: FAILED after 2.5s: exit code 1", "| one", "| \\u{1b}[2J"]);
        let retried = stage("Mid", "Running", json!({"message": "mid has failed 2 times: it is tried again"}));
        let told_of = told("Mid", json!([retried]), json!({}));
        assert_eq!(
            told_of[2..],
            [
                "drained: no version runs",
                "mid: migrate now (pod web-mid-x)",
                "mid: mid has failed 2 times: it is tried again"
            ]
        );
        let skipped = stage("Post", "Skipped", json!({"requestedBy": "jane"}));
        assert_eq!(told("Complete", json!([skipped]), json!({})).last().unwrap(), "post: skipped by jane");
    }

    #[test]
    fn of_one_that_was_let_in_before_only_post_is_told() {
        let stages = json!([stage("Post", "Succeeded", json!({}))]);
        let status = json!({"rollout": {"stages": stages, "resumed": true}});
        let rollout = lifecycle("Complete", json!({"status": status})).status.unwrap().rollout.unwrap();
        let steps = steps(&rollout, &deployment(json!({})).seen().unwrap());
        let words: Vec<_> = steps.iter().map(|step| step.word).collect();
        assert_eq!(words, ["resumed", "post", "post"]);
    }

    #[test]
    fn one_that_was_adopted_has_no_steps() {
        assert_eq!(told("Complete", json!([]), json!({})), Vec::<String>::new());
    }
}
