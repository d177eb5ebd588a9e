//! Whoever begins a snapshot looks at the others of its namespace first, and nobody else begins one there meanwhile.
//!
//! Who has to wait for that is looked at again later, and holds nothing up: neither a lock, nor one of the few objects
//! that are looked at at once. So a namespace that is slow to look at keeps nobody waiting elsewhere.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
};

use boathook_api::ApplicationSnapshot;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc;

pub(super) type LookAgain = mpsc::UnboundedSender<ObjectRef<ApplicationSnapshot>>;

/// By namespace: where somebody has the turn, and who waits for it.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<String, HashSet<ObjectRef<ApplicationSnapshot>>>>);

/// Over when it is dropped: then those that wait are looked at again.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    namespace: String,
    look_again: &'a LookAgain,
}

impl Turns {
    /// The turn in this object's namespace; or, if somebody else has it, the object is looked at again afterwards.
    pub(super) fn take<'a>(&'a self, object: &ApplicationSnapshot, look_again: &'a LookAgain) -> Option<Turn<'a>> {
        let object = ObjectRef::from_obj(object);
        let namespace = object.namespace.clone().unwrap_or_default();
        match self.lock().entry(namespace.clone()) {
            Entry::Occupied(mut taken) => {
                taken.get_mut().insert(object);
                None
            }
            Entry::Vacant(free) => {
                free.insert(HashSet::new());
                Some(Turn { turns: self, namespace, look_again })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashSet<ObjectRef<ApplicationSnapshot>>>> {
        // A map is whole between two writes, also when a panic came in between.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = self.turns.lock().remove(&self.namespace);
        for object in waiting.into_iter().flatten() {
            // Nobody listens any more: everything ends.
            let _ = self.look_again.send(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use boathook_api::application_snapshot::{ApplicationSnapshotSpec, SnapshotSource};

    use super::*;

    fn snapshot(namespace: &str, name: &str) -> ApplicationSnapshot {
        let spec = ApplicationSnapshotSpec::new(SnapshotSource::default(), vec![]);
        let mut snapshot = ApplicationSnapshot::new(name, spec);
        snapshot.metadata.namespace = Some(namespace.to_owned());
        snapshot
    }

    #[test]
    fn a_turn_holds_up_its_own_namespace_alone_and_who_waits_for_it_is_looked_at_again() {
        let (turns, (tell, mut told)) = (Turns::default(), mpsc::unbounded_channel());
        let (slow, waits, other) = (snapshot("slow", "a"), snapshot("slow", "b"), snapshot("other", "a"));
        let turn = turns.take(&slow, &tell).expect("nobody has it");
        for _ in 0..2 {
            assert!(turns.take(&waits, &tell).is_none(), "somebody else begins there");
        }
        drop(turns.take(&other, &tell).expect("that one is elsewhere"));
        assert!(told.try_recv().is_err(), "the turn is not over");
        drop(turn);
        assert_eq!(told.try_recv().ok(), Some(ObjectRef::from_obj(&waits)));
        assert!(told.try_recv().is_err(), "once is enough");
        assert!(turns.take(&waits, &tell).is_some());
        assert!(turns.lock().is_empty(), "nothing is remembered for ever");
    }
}
