//! How it went with one pod, in words: a line for each container, and below it what a failed one had to say.

use std::time::Duration;

use boathook_api::pod_notification::{
    ContainerNotificationStatus, ErrorType, NotificationError, PodNotificationStatus, State,
};

use super::round::Ended;
use crate::output::{
    Colour,
    duration::shown,
    plain::{count, in_words, one_line},
    table::NOTHING,
};

/// Of a failed handler's output. All that was kept of it is in the object.
const SHOWN_LINES: usize = 20;

/// How it went, for the count at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Succeeded,
    Failed,
    /// The controller found no container that declares the notifier.
    NothingToDo,
}

/// One container's line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) container: String,
    pub(super) result: &'static str,
    pub(super) colour: Colour,
    pub(super) exit: String,
    pub(super) time: String,
    /// Below it.
    pub(super) details: Vec<String>,
}

pub(super) fn report(ended: &Ended) -> (Verdict, Vec<Line>) {
    let failed = |why: String| (Verdict::Failed, vec![Line { details: vec![why], ..bare("FAILED", Colour::Bad) }]);
    let object = match ended {
        Ended::Object(object) => object,
        Ended::NotCreated { why, .. } => return failed(one_line(why)),
        Ended::Deleted { .. } => return failed("its PodNotification was deleted before it ended".to_owned()),
    };
    let status = object.status.clone().unwrap_or_default();
    let mut lines: Vec<_> = status.containers.iter().filter(|record| is_told(record)).map(of_container).collect();
    match status.state {
        State::Succeeded if lines.is_empty() => {
            let why = message_of_completion(&status);
            (Verdict::NothingToDo, vec![Line { details: vec![why], ..bare("none", Colour::Odd) }])
        }
        State::Succeeded => (Verdict::Succeeded, lines),
        State::New | State::Failed => {
            if lines.is_empty() {
                let details = status.error.iter().map(error_text).collect();
                lines.push(Line { details, ..bare("FAILED", Colour::Bad) });
            }
            (Verdict::Failed, lines)
        }
    }
}

/// Whether its executor cannot run such a handler.
pub(super) fn is_unsupported(ended: &Ended) -> bool {
    let status = ended.object().status.as_ref();
    let of_pod = status.and_then(|status| status.error.as_ref());
    let of_containers = status.into_iter().flat_map(|status| &status.containers).filter_map(|one| one.error.as_ref());
    of_pod.into_iter().chain(of_containers).any(|error| error.kind == ErrorType::Unsupported)
}

fn bare(result: &'static str, colour: Colour) -> Line {
    let nothing = || NOTHING.to_owned();
    Line { container: nothing(), result, colour, exit: nothing(), time: nothing(), details: vec![] }
}

/// Whether anything is known of this container alone.
fn is_told(record: &ContainerNotificationStatus) -> bool {
    record.succeeded.is_some() || record.error.is_some()
}

fn of_container(record: &ContainerNotificationStatus) -> Line {
    let (result, colour) = match (record.succeeded, &record.error) {
        (Some(true), _) => ("ok", Colour::Good),
        (None, Some(NotificationError { kind: ErrorType::OutcomeUnknown, .. })) => ("UNKNOWN", Colour::Bad),
        (Some(false) | None, _) => ("FAILED", Colour::Bad),
    };
    let mut details: Vec<_> = record.error.iter().map(error_text).collect();
    if record.succeeded != Some(true) {
        details.extend(tail(record.output.as_deref().unwrap_or_default()));
    }
    let exit = record.exit_code.map_or_else(|| NOTHING.to_owned(), |code| code.to_string());
    let time = took(record).map_or_else(|| NOTHING.to_owned(), shown);
    Line { container: record.name.clone(), result, colour, exit, time, details }
}

fn took(record: &ContainerNotificationStatus) -> Option<Duration> {
    let (start, end) = (record.start_time.as_ref()?, record.complete_time.as_ref()?);
    end.0.duration_since(start.0).try_into().ok()
}

fn error_text(error: &NotificationError) -> String {
    format!("{}: {}", in_words(&error.kind), one_line(&error.message))
}

fn message_of_completion(status: &PodNotificationStatus) -> String {
    let said = status.conditions.iter().find(|condition| condition.type_ == boathook_api::words::condition::COMPLETE);
    said.map_or_else(String::new, |said| one_line(&said.message))
}

/// The last lines of an output.
fn tail(output: &str) -> Vec<String> {
    let lines: Vec<_> = output.lines().collect();
    let left_out = lines.len().saturating_sub(SHOWN_LINES);
    let cut = (left_out > 0).then(|| format!("| ({} before these: see -o yaml)", count(left_out, "line")));
    let shown = lines.iter().skip(left_out).map(|line| format!("| {}", one_line(line)).trim_end().to_owned());
    cut.into_iter().chain(shown).collect()
}

#[cfg(test)]
mod tests {
    use boathook_api::PodNotification;
    use serde_json::{Value, json};

    use super::*;

    fn reported(status: Value) -> (Verdict, Vec<Line>) {
        let object: PodNotification = serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "PodNotification", "metadata": {"name": "a"},
            "spec": {"podName": "a", "notifier": "reload"}, "status": status,
        }))
        .unwrap();
        report(&Ended::Object(object))
    }

    const START: &str = "2026-01-01T00:00:00.000000Z";
    const END: &str = "2026-01-01T00:00:01.240000Z";

    fn error(kind: &str) -> Value {
        json!({"type": kind, "message": "it says why", "timestamp": END})
    }

    #[test]
    fn each_container_has_its_line() {
        let (verdict, lines) = reported(json!({"state": "Failed", "error": error("HandlerFailed"), "containers": [
            {"name": "main", "startTime": START, "completeTime": END, "succeeded": true, "exitCode": 0,
                "output": "not shown"},
            {"name": "side", "startTime": START, "completeTime": END, "succeeded": false, "exitCode": 3,
                "output": "one\ntw\x1bo\n", "error": error("HandlerFailed")},
            {"name": "lost", "startTime": START, "error": error("OutcomeUnknown")},
        ]}));
        assert_eq!(verdict, Verdict::Failed);
        let shown: Vec<_> =
            lines.iter().map(|line| (line.container.as_str(), line.result, &*line.exit, &*line.time)).collect();
        assert_eq!(
            shown,
            [("main", "ok", "0", "1.2s"), ("side", "FAILED", "3", "1.2s"), ("lost", "UNKNOWN", "-", "-")]
        );
        assert!(lines[0].details.is_empty());
        assert_eq!(lines[1].details, ["HandlerFailed: it says why", "| one", "| tw\\u{1b}o"]);
    }

    #[test]
    fn what_failed_as_a_whole_has_one_line() {
        let containers = json!([{"name": "main"}]);
        let (verdict, lines) =
            reported(json!({"state": "Failed", "error": error("Revoked"), "containers": containers}));
        assert_eq!((verdict, lines.len(), lines[0].container.as_str()), (Verdict::Failed, 1, "-"));
        assert_eq!(lines[0].details, ["Revoked: it says why"]);
        let condition = json!({"type": "Complete", "status": "True", "reason": "NoMatchingNotifier",
            "message": "no container declares it", "lastTransitionTime": END});
        let (verdict, lines) = reported(json!({"state": "Succeeded", "conditions": [condition]}));
        assert_eq!((verdict, lines[0].result), (Verdict::NothingToDo, "none"));
        assert_eq!(lines[0].details, ["no container declares it"]);
    }

    #[test]
    fn of_a_long_output_the_end_is_shown() {
        let output: String = (1..=23).map(|number| format!("{number}\n")).collect();
        let shown = tail(&output);
        assert_eq!((shown.len(), shown[0].as_str()), (SHOWN_LINES + 1, "| (3 lines before these: see -o yaml)"));
        assert_eq!((shown[1].as_str(), shown[20].as_str()), ("| 4", "| 23"));
    }
}
