//! Who is still to be told, who is being told, and who has been: never more at once than was asked for.

use std::collections::{BTreeMap, VecDeque};

use boathook_api::PodNotification;
use kube::ResourceExt;

/// A PodNotification's namespace and name.
pub(super) type Key = (String, String);

pub(super) fn key(object: &PodNotification) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// How it went with one pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ended {
    /// As it ended.
    Object(PodNotification),
    /// The API server would not have it.
    NotCreated { object: PodNotification, why: String },
    /// Somebody deleted it before it ended.
    Deleted { object: PodNotification },
}

impl Ended {
    pub(super) fn object(&self) -> &PodNotification {
        match self {
            Self::Object(object) | Self::NotCreated { object, .. } | Self::Deleted { object } => object,
        }
    }
}

pub(super) struct Round {
    waiting: VecDeque<PodNotification>,
    /// As they were last seen.
    under_way: BTreeMap<Key, PodNotification>,
    at_once: usize,
    total: usize,
}

impl Round {
    pub(super) fn new(requests: Vec<PodNotification>, at_once: Option<usize>) -> Self {
        let total = requests.len();
        Self { waiting: requests.into(), under_way: BTreeMap::new(), at_once: at_once.unwrap_or(usize::MAX), total }
    }

    /// The next to create, if there is room for it. From now on it is under way.
    pub(super) fn next(&mut self) -> Option<PodNotification> {
        if self.under_way.len() >= self.at_once {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.under_way.insert(key(&next), next.clone());
        Some(next)
    }

    /// An object as the API server has it now; if it has ended, that is returned, once.
    pub(super) fn seen(&mut self, object: PodNotification) -> Option<Ended> {
        let known = self.under_way.get_mut(&key(&object))?;
        if !object.status.as_ref().is_some_and(|status| status.state.is_terminal()) {
            *known = object;
            return None;
        }
        self.under_way.remove(&key(&object));
        Some(Ended::Object(object))
    }

    pub(super) fn deleted(&mut self, object: PodNotification) -> Option<Ended> {
        self.under_way.remove(&key(&object))?;
        Some(Ended::Deleted { object })
    }

    pub(super) fn not_created(&mut self, key: &Key, why: String) -> Option<Ended> {
        let object = self.under_way.remove(key)?;
        Some(Ended::NotCreated { object, why })
    }

    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    pub(super) fn under_way(&self) -> impl Iterator<Item = &PodNotification> {
        self.under_way.values()
    }

    /// How many have not been created.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn ended(&self) -> usize {
        self.total - self.waiting.len() - self.under_way.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, state: &str) -> PodNotification {
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "PodNotification",
            "metadata": {"namespace": "sea", "name": name}, "spec": {"podName": name, "notifier": "reload"},
            "status": {"state": state},
        }))
        .unwrap()
    }

    fn three(at_once: Option<usize>) -> Round {
        Round::new(["a", "b", "c"].map(|name| object(name, "New")).into(), at_once)
    }

    #[test]
    fn no_more_are_under_way_than_was_asked_for() {
        let mut round = three(Some(2));
        assert!(round.next().is_some() && round.next().is_some() && round.next().is_none());
        assert_eq!(round.seen(object("a", "New")), None);
        assert!(round.next().is_none());
        assert_eq!(round.seen(object("a", "Failed")), Some(Ended::Object(object("a", "Failed"))));
        assert_eq!(round.next().map(|next| next.name_any()).as_deref(), Some("c"));
        assert_eq!((round.ended(), round.waiting(), round.is_over()), (1, 0, false));
        assert!(three(None).next().is_some());
    }

    #[test]
    fn an_end_is_told_once_and_strangers_never() {
        let mut round = three(None);
        while round.next().is_some() {}
        assert!(round.seen(object("a", "Succeeded")).is_some());
        assert_eq!(round.seen(object("a", "Succeeded")), None);
        assert_eq!(round.seen(object("stranger", "Succeeded")), None);
        assert!(round.deleted(object("b", "New")).is_some());
        assert!(round.not_created(&key(&object("c", "New")), "no".to_owned()).is_some());
        assert!(round.is_over());
        assert_eq!(round.deleted(object("a", "Succeeded")), None);
    }
}
