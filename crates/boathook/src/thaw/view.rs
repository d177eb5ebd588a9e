//! How a thaw went, for a person: a line for each container, and below it what a failed one had to say.

use anyhow::Result;
use boathook_api::{
    ExecutionHook, PodNotification,
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookActionStatus},
    pod_notification::UndoStatus,
    words::condition,
};
use kube::ResourceExt;

use super::outcome::Outcome;
use crate::{
    hooks::{State, state},
    output::{
        Colour, Screen,
        duration::shown,
        plain::one_line,
        table::{Columns, NOTHING},
    },
};

/// One container.
struct Line {
    cells: Vec<String>,
    colour: Colour,
    details: Vec<String>,
}

/// The column that is coloured.
const RESULT: usize = 2;

pub(super) fn show<'a>(
    hook: &ExecutionHook,
    children: impl Iterator<Item = &'a PodNotification>,
    outcome: Outcome,
    screen: &mut Screen,
) -> Result<()> {
    let children: Vec<_> = children.collect();
    let containers = hook.status.iter().flat_map(|status| &status.container_execution_hook_statuses);
    let lines: Vec<_> = containers.map(|container| line(container, &children)).collect();
    if !lines.is_empty() {
        let header = ["POD", "CONTAINER", "RESULT", "TRIES", "TIME"].map(str::to_owned).to_vec();
        let rows = lines.iter().map(|line| line.cells.as_slice());
        let columns = Columns::fitting([header.as_slice()].into_iter().chain(rows));
        screen.line(&columns.line(&header, |_, cell| cell.to_owned()))?;
        for line in &lines {
            let painted = columns.line(&line.cells, |place, cell| match place == RESULT {
                true => screen.painted(line.colour, cell),
                false => cell.to_owned(),
            });
            screen.line(&painted)?;
            for detail in &line.details {
                screen.text("  ", None, detail)?;
            }
        }
    }
    screen.text(&format!("executionhook.boathook.dev/{}: ", hook.name_any()), None, &said(hook, outcome))?;
    Ok(())
}

/// What became of the whole, and what to do.
fn said(hook: &ExecutionHook, outcome: Outcome) -> String {
    let window = hook.status.as_ref().and_then(|status| status.freeze_window.as_ref()?.duration.clone());
    match outcome {
        Outcome::Thawed if state(hook) == State::Refused => "nothing was frozen".to_owned(),
        Outcome::Thawed => window.map_or_else(|| "thawed".to_owned(), |window| format!("thawed after {window}")),
        Outcome::PodGone => format!("not thawed: {}", thawed_message(hook)),
        // Without a failed PostAction only the condition says why: the agent that is to run it is silent.
        Outcome::Failed if !has_failed_action(hook) && !thawed_message(hook).is_empty() => {
            format!("NOT thawed: {}", thawed_message(hook))
        }
        Outcome::Failed => "NOT thawed: Boathook retries until it succeeds; --force gives it up".to_owned(),
        Outcome::MayFreezeAgain => format!("thawed for now: {}", thawed_message(hook)),
        Outcome::Abandoned => "given up, and recorded as given up: make sure by hand that it is thawed".to_owned(),
        Outcome::Gone => {
            "deleted before its thaw was confirmed: check its pods and their Events, because they may still be \
                          frozen"
                .to_owned()
        }
        Outcome::Unconfirmed => {
            "thaw not confirmed: its node does not report. The pod may still run there, frozen: look at the node"
                .to_owned()
        }
    }
}

fn thawed_message(hook: &ExecutionHook) -> &str {
    let mut conditions = hook.status.iter().flat_map(|status| &status.conditions);
    conditions.find(|one| one.type_ == condition::THAWED).map(|thawed| thawed.message.as_str()).unwrap_or_default()
}

fn has_failed_action(hook: &ExecutionHook) -> bool {
    let mut containers = hook.status.iter().flat_map(|status| &status.container_execution_hook_statuses);
    containers.any(|record| record.post_action_status.as_ref().is_some_and(|post| post.action_succeed == Some(false)))
}

/// The PodNotification knows more than the hook's copy of it; but what has succeeded stays so, and the hook may have been
/// heard of first.
fn line(container: &ContainerExecutionHookStatus, children: &[&PodNotification]) -> Line {
    let child = children.iter().find(|child| child.spec.pod_uid.as_deref() == Some(&container.pod_uid));
    let records = child.and_then(|child| child.status.as_ref()).into_iter().flat_map(|status| &status.containers);
    let undo = records.filter(|record| record.name == container.container_name).find_map(|record| record.undo.clone());
    let copy = container.post_action_status.as_ref();
    let thawed = copy.filter(|copy| copy.action_succeed == Some(true)).cloned();
    let action = thawed.or_else(|| undo.as_ref().map(action)).or_else(|| copy.cloned()).unwrap_or_default();
    let (result, colour) = match action.action_succeed {
        Some(true) => ("thawed", Colour::Good),
        Some(false) => ("FAILED", Colour::Bad),
        None if container.pre_action_status.is_none() => ("not frozen", Colour::Good),
        None => (NOTHING, Colour::Odd),
    };
    let took = action.action_timestamp.as_ref().zip(action.complete_timestamp.as_ref());
    let took = took.and_then(|(start, end)| end.0.duration_since(start.0).try_into().ok()).map(shown);
    let tries = action.attempts.map(|attempts| attempts.to_string());
    let nothing = || NOTHING.to_owned();
    let output = undo.and_then(|undo| undo.output).filter(|_| action.action_succeed == Some(false));
    let printed = output.iter().flat_map(|output| output.lines()).map(|line| format!("| {}", one_line(line)));
    Line {
        cells: vec![
            container.pod_name.clone(),
            container.container_name.clone(),
            result.to_owned(),
            tries.unwrap_or_else(nothing),
            took.unwrap_or_else(nothing),
        ],
        colour,
        details: action.error.iter().map(|error| one_line(&error.message)).chain(printed).collect(),
    }
}

fn action(undo: &UndoStatus) -> ExecutionHookActionStatus {
    use boathook_api::execution_hook::HookError;
    let error = undo.error.as_ref();
    ExecutionHookActionStatus {
        action_timestamp: undo.start_time.clone(),
        complete_timestamp: undo.complete_time.clone(),
        action_succeed: undo.succeeded,
        attempts: undo.attempts,
        error: error.map(|error| HookError { time: error.timestamp.clone(), message: error.message.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::tests::Sheet;

    #[test]
    fn each_container_has_its_line() {
        let start = "2026-01-01T00:00:00.000000Z";
        let end = "2026-01-01T00:00:01.240000Z";
        let hook: ExecutionHook = serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook", "metadata": {"name": "nightly-0"},
            "spec": {"executionHookTemplateName": "mysql"},
            "status": {"containerExecutionHookStatuses": [
                {"podName": "a", "podUID": "1", "containerName": "main", "preActionStatus": {}, "postActionStatus": {
                    "actionTimestamp": start, "completeTimestamp": end, "actionSucceed": true, "attempts": 1}},
                {"podName": "b", "podUID": "2", "containerName": "main", "preActionStatus": {}},
            ]},
        }))
        .unwrap();
        let error = json!({"type": "HandlerFailed", "message": "ended with exit code 3", "timestamp": end});
        let undo = json!({"action": {"exec": {"command": ["unquiesce"]}}, "startTime": start, "completeTime": end,
            "succeeded": false, "attempts": 4, "output": "locked\n", "error": error});
        let child: PodNotification = serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "PodNotification", "metadata": {"name": "x"},
            "spec": {"podName": "b", "podUID": "2", "notifier": "freeze"},
            "status": {"state": "Succeeded", "containers": [{"name": "main", "undo": undo}]},
        }))
        .unwrap();
        let results = Sheet::default();
        let mut screen = Screen::on_paper(&results, &Sheet::default());
        show(&hook, [&child].into_iter(), Outcome::Failed, &mut screen).unwrap();
        let wanted = "
POD   CONTAINER   RESULT   TRIES   TIME
a     main        thawed   1       1.2s
b     main        FAILED   4       1.2s
  ended with exit code 3
  | locked
executionhook.boathook.dev/nightly-0: NOT thawed: Boathook retries until it succeeds; --force gives it up
";
        assert_eq!(results.text(), wanted.trim_start());
    }

    #[test]
    fn what_the_hook_says_is_thawed_is_not_doubted_by_older_news() {
        let container = serde_json::from_value(json!({"podName": "a", "podUID": "1", "containerName": "main",
            "preActionStatus": {}, "postActionStatus": {"actionSucceed": true, "attempts": 2}}));
        let older: PodNotification = serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "PodNotification", "metadata": {"name": "x"},
            "spec": {"podName": "a", "podUID": "1", "notifier": "freeze"},
            "status": {"state": "Succeeded", "containers": [{"name": "main", "undo": {"attempts": 1}}]},
        }))
        .unwrap();
        assert_eq!(line(&container.unwrap(), &[&older]).cells, ["a", "main", "thawed", "2", NOTHING]);
    }
}
