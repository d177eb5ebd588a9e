//! The PodNotifications that this process has just made, until the watch tells of them: else they would be counted as
//! not there, and more pods told at once than allowed.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use boathook_api::PodNotification;
use kube::ResourceExt;

/// A watch that is later than this has lost them: they were deleted again before it told of them.
const PATIENCE: Duration = Duration::from_secs(60);

/// When each was made, by namespace and name.
type Children = HashMap<(Option<String>, String), (Instant, PodNotification)>;

/// All of them, of all Notifications.
#[derive(Default)]
pub struct Made(Mutex<Children>);

impl Made {
    pub(super) fn remember(&self, child: PodNotification) {
        self.lock().insert((child.namespace(), child.name_any()), (Instant::now(), child));
    }

    /// Those of one Notification that are not among the ones that the watch knows.
    pub(super) fn besides(&self, parent: &str, known: &[PodNotification]) -> Vec<PodNotification> {
        let mut made = self.lock();
        made.retain(|_, (when, child)| {
            let seen = known
                .iter()
                .any(|known| (known.namespace(), known.name_any()) == (child.namespace(), child.name_any()));
            !seen && when.elapsed() < PATIENCE
        });
        let of_parent = |child: &&PodNotification| child.owner_references().iter().any(|owner| owner.uid == parent);
        made.values().map(|(_, child)| child).filter(of_parent).cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Children> {
        // A map is whole between two writes, also when a panic came in between.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use serde_json::json;

    use super::*;

    fn child(name: &str, parent: &str) -> PodNotification {
        let owner = json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "Notification", "name": "n", "uid": parent});
        let spec = serde_json::from_value(json!({"podName": "db-0", "notifier": "reload"})).unwrap();
        let mut child = PodNotification::new(name, spec);
        child.meta_mut().owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
        child
    }

    #[test]
    fn what_was_made_is_known_until_the_watch_knows_it() {
        let made = Made::default();
        made.remember(child("one", "a"));
        made.remember(child("two", "b"));
        let names = |children: Vec<PodNotification>| children.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
        assert_eq!(names(made.besides("a", &[])), ["one"]);
        assert_eq!(names(made.besides("a", &[child("one", "a")])), [""; 0]);
        assert_eq!(names(made.besides("a", &[])), [""; 0]);
        assert_eq!(names(made.besides("b", &[])), ["two"]);
    }
}
