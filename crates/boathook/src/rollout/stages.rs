//! How the stages of a rollout went, in a few words each.

use std::time::Duration;

use boathook_api::deployment_lifecycle::{LifecycleHook, Rollout, Stage, StageRecord, StageState};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use crate::output::{
    Colour,
    duration::shown,
    plain::{command, one_line},
    table::NOTHING,
};

/// One word for how it stands.
pub(super) fn word(state: StageState) -> &'static str {
    match state {
        StageState::Running => "running",
        StageState::Succeeded => "ok",
        StageState::Ignored => "ignored",
        StageState::Failed => "FAILED",
        StageState::Skipped => "skipped",
        StageState::Superseded => "superseded",
    }
}

pub(super) fn colour(state: StageState) -> Option<Colour> {
    match state {
        StageState::Running | StageState::Superseded => None,
        StageState::Succeeded => Some(Colour::Good),
        StageState::Ignored | StageState::Skipped => Some(Colour::Odd),
        StageState::Failed => Some(Colour::Bad),
    }
}

/// What became of a stage, or that there is nothing to say of it.
pub(super) fn result(rollout: &Rollout, stage: Stage) -> &'static str {
    match (rollout.stage(stage), rollout.hooks.hook(stage)) {
        (Some(record), _) => word(record.state),
        (None, Some(_)) if !rollout.phase.is_terminal() => "to come",
        (None, _) => NOTHING,
    }
}

/// The command of a hook, as one would type it.
pub(super) fn command_text(hook: &LifecycleHook) -> String {
    let run = &hook.exec_new_pod;
    match (run.command.is_empty(), run.args.is_empty()) {
        (true, true) => "the image's own command".to_owned(),
        (true, false) => format!("the image's own command with {}", command(&run.args)),
        (false, _) => command(&[run.command.as_slice(), run.args.as_slice()].concat()),
    }
}

/// How long it took, or has taken.
pub(super) fn took(start: &MicroTime, end: Option<&MicroTime>, now: Timestamp) -> Duration {
    let end = end.map_or(now, |end| end.0);
    end.duration_since(start.0).try_into().unwrap_or_default()
}

/// A row for each stage that has a hook, below its titles.
pub(super) fn table(rollout: &Rollout, now: Timestamp) -> Vec<Vec<String>> {
    let header = ["STAGE", "RESULT", "TIME", "FAILURES", "POD", "HOOK"].map(str::to_owned).to_vec();
    let rows = Stage::ALL.into_iter().filter_map(|stage| {
        let record = rollout.stage(stage);
        let hook = rollout.hooks.hook(stage);
        if record.is_none() && hook.is_none() {
            return None;
        }
        let nothing = || NOTHING.to_owned();
        let time = |record: &StageRecord| shown(took(&record.start_time, record.complete_time.as_ref(), now));
        Some(vec![
            stage.to_string(),
            result(rollout, stage).to_owned(),
            record.map_or_else(nothing, time),
            record.map_or_else(nothing, |record| record.failures.to_string()),
            record.and_then(|record| record.pod.clone()).unwrap_or_else(nothing),
            hook.map_or_else(nothing, command_text),
        ])
    });
    std::iter::once(header).chain(rows).collect()
}

/// What a stage has to say besides: its message, who helped it along, and the end of what it wrote.
pub(super) fn details(record: &StageRecord) -> Vec<String> {
    let by = record.requested_by.as_deref().map(|who| match record.state {
        StageState::Skipped => format!("skipped by {}", one_line(who)),
        StageState::Running
        | StageState::Succeeded
        | StageState::Ignored
        | StageState::Failed
        | StageState::Superseded => format!("retried by {}", one_line(who)),
    });
    let message = record.message.as_deref().filter(|message| !message.is_empty()).map(one_line);
    by.into_iter().chain(message).chain(log(record)).collect()
}

/// The end of what it wrote, if it failed.
pub(super) fn log(record: &StageRecord) -> impl Iterator<Item = String> {
    record.log_tail.iter().flat_map(|tail| tail.lines()).map(|line| format!("| {}", one_line(line)))
}
