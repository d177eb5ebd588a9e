//! Exec: what the status at the end of a command's streams says. Both places end with the same `Status`.

use boathook_api::pod_notification::ErrorType;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use crate::outcome::Attempt;

/// By these words a kubelet or runtime says that there is no running container to run a command in.
const NOT_RUNNING: &[&str] = &[
    "container not found",
    "container is in CONTAINER_",
    "container not running",
    "container is not running",
    "cannot exec in a stopped",
    "is in stopped state",
    "process not running for container",
];

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Exit(i32),
    /// It was not run, in the words of whoever was to run it.
    Refused(String),
}

impl Verdict {
    pub(crate) fn of(status: &Status) -> Self {
        if status.status.as_deref() == Some("Success") {
            return Self::Exit(0);
        }
        let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
        let mut codes = causes.filter(|cause| cause.reason.as_deref() == Some("ExitCode"));
        let code = codes.find_map(|cause| cause.message.as_deref()?.parse().ok());
        match code {
            // A failure that says 0 contradicts itself: what it says in words is kept.
            Some(code) if code != 0 => Self::Exit(code),
            Some(_) | None => Self::Refused(
                status.message.clone().unwrap_or_else(|| "the container runtime gave no reason".to_owned()),
            ),
        }
    }

    pub(crate) fn into_attempt(self, command: &[String]) -> Attempt {
        match self {
            Self::Exit(0) => Attempt { exit_code: Some(0), ..Attempt::succeeded() },
            Self::Exit(code) => {
                let message = format!("{} ended with exit code {code}", shown(command));
                Attempt { exit_code: Some(code), ..Attempt::failed(ErrorType::HandlerFailed, message) }
            }
            Self::Refused(words) => refused(command, &words),
        }
    }
}

/// A command that was not run, and why.
pub(crate) fn refused(command: &[String], words: &str) -> Attempt {
    let kind = match NOT_RUNNING.iter().any(|known| words.contains(known)) {
        true => ErrorType::ContainerNotRunning,
        false => ErrorType::HandlerFailed,
    };
    Attempt::failed(kind, format!("{} could not be run: {words}", shown(command)))
}

/// A command in a message: enough of it to know which one.
pub(crate) fn shown(command: &[String]) -> String {
    const ENOUGH: usize = 100;
    let whole = command.join(" ");
    match whole.char_indices().nth(ENOUGH) {
        Some((cut, _)) => format!("`{}...`", &whole[..cut]),
        None => format!("`{whole}`"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Outcome;

    fn verdict(status: serde_json::Value) -> Verdict {
        Verdict::of(&serde_json::from_value(status).unwrap())
    }

    fn failure(attempt: Attempt) -> (ErrorType, String) {
        let Outcome::Failed(failure) = attempt.outcome else { panic!("not a failure: {attempt:?}") };
        (failure.kind, failure.message)
    }

    #[test]
    fn only_the_word_success_is_success() {
        assert_eq!(verdict(json!({"status": "Success"})), Verdict::Exit(0));
        assert!(matches!(verdict(json!({})), Verdict::Refused(_)));
        let zero = json!({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "0"}]}});
        assert!(matches!(verdict(zero), Verdict::Refused(_)));
    }

    #[test]
    fn an_exit_code_is_told_with_the_command() {
        let seven = json!({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}});
        assert_eq!(verdict(seven.clone()), Verdict::Exit(7));
        let attempt = verdict(seven).into_attempt(&["sh".to_owned(), "-c".to_owned()]);
        assert_eq!(attempt.exit_code, Some(7));
        assert_eq!(failure(attempt), (ErrorType::HandlerFailed, "`sh -c` ended with exit code 7".to_owned()));
    }

    #[test]
    fn what_was_not_run_has_no_exit_code_and_the_runtimes_words() {
        let refused = |message: &str| {
            let attempt = verdict(json!({"status": "Failure", "message": message})).into_attempt(&["a".to_owned()]);
            assert_eq!(attempt.exit_code, None);
            failure(attempt)
        };
        let (kind, message) = refused("exec: \"a\": executable file not found in $PATH");
        assert_eq!(kind, ErrorType::HandlerFailed);
        assert!(message.starts_with("`a` could not be run: exec"), "{message}");
        assert_eq!(refused("container not found (\"main\")").0, ErrorType::ContainerNotRunning);
    }

    #[test]
    fn a_long_command_is_cut_at_a_character() {
        assert_eq!(shown(&["é".repeat(200)]), format!("`{}...`", "é".repeat(100)));
    }
}
