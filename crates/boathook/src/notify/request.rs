//! The PodNotifications of one `boathook notify`: one for each pod, all found by one label.

use boathook_api::{
    PodNotification,
    pod_notification::{DEFAULT_START_DEADLINE_SECONDS, PodNotificationSpec, Retry},
    words::NOTIFY_LABEL,
};
use kube::core::ObjectMeta;

use crate::{pods::FoundPod, unique};

/// How long they are kept after their end: long enough to look at, short enough not to pile up.
const KEPT_SECONDS: i32 = 600;

/// The longest part of a name that is the pod's.
const LONGEST_POD: usize = 180;

/// The longest part of a name that is the notifier's.
const LONGEST_NOTIFIER: usize = 60;

/// One run of the command: a word that no other run has.
#[derive(Clone, Debug)]
pub(crate) struct Run(String);

impl Run {
    pub(crate) fn new() -> Self {
        Self(unique::word())
    }

    /// Selects what this run has made.
    pub(crate) fn selector(&self) -> String {
        format!("{NOTIFY_LABEL}={}", self.0)
    }

    /// What tells this pod to run that notifier. Another pod under the same name is not meant.
    pub(crate) fn request(&self, pod: &FoundPod, notifier: &str) -> PodNotification {
        let metadata = ObjectMeta {
            name: Some(self.name(&pod.name, notifier)),
            namespace: Some(pod.namespace.clone()),
            labels: Some([(NOTIFY_LABEL.to_owned(), self.0.clone())].into()),
            ..ObjectMeta::default()
        };
        let spec = PodNotificationSpec {
            pod_name: pod.name.clone(),
            pod_uid: Some(pod.uid.clone()),
            notifier: Some(notifier.to_owned()),
            action: None,
            containers: None,
            start_deadline_seconds: DEFAULT_START_DEADLINE_SECONDS,
            retry: Retry::Never,
            undo: None,
            undo_requested: false,
            ttl_seconds_after_finished: Some(KEPT_SECONDS),
        };
        PodNotification { metadata, spec, status: None }
    }

    /// `POD-NOTIFIER-RUN`, as far as a name may be long and have such letters. Pods of one owner differ at the end of
    /// their names, so the end is what is kept.
    fn name(&self, pod: &str, notifier: &str) -> String {
        let bare = notifier.rsplit('/').next().unwrap_or_default().to_ascii_lowercase().replace(['_', '.'], "-");
        let bare: String = bare.chars().take(LONGEST_NOTIFIER).collect();
        let end = pod.len().saturating_sub(LONGEST_POD);
        let pod = pod.get(end..).unwrap_or_default().trim_start_matches(['-', '.']);
        format!("{pod}-{}-{}", bare.trim_matches('-'), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_pod_and_notifier_and_are_names() {
        let run = Run("x2x4x5".to_owned());
        assert_eq!(run.name("db-0", "lockTables"), "db-0-locktables-x2x4x5");
        assert_eq!(run.name("db-0", "example.com/Flush_2.x"), "db-0-flush-2-x-x2x4x5");
        let long = |end: &str| run.name(&format!("{}{end}", "a".repeat(250)), &"b".repeat(63));
        assert!(long("-0").len() <= 253);
        assert_ne!(long("-0"), long("-1"));
        let cut_at_a_dash = format!("{}-{}", "a".repeat(9), "b".repeat(LONGEST_POD - 1));
        assert!(run.name(&cut_at_a_dash, "c").starts_with('b'));
    }

    #[test]
    fn no_two_runs_are_alike() {
        assert_ne!(Run::new().selector(), Run::new().selector());
    }
}
