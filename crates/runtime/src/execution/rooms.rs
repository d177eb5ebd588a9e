//! How many PodNotifications may run their handlers at once, on one node and in one namespace. Undos are never held up.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use boathook_api::PodNotification;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The most at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub per_node: usize,
    pub per_namespace: usize,
}

/// All the room there is. Whoever found none is told when some becomes free.
#[derive(Clone)]
pub struct Rooms(Arc<Inner>);

struct Inner {
    limits: Limits,
    nodes: Mutex<HashMap<String, Arc<Semaphore>>>,
    namespaces: Mutex<HashMap<String, Arc<Semaphore>>>,
    waiting: Mutex<Vec<Waiting>>,
    closed: AtomicBool,
    look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
}

struct Waiting {
    node: String,
    namespace: String,
    object: ObjectRef<PodNotification>,
}

/// Room for one. Dropped, it is free again.
pub struct Room {
    rooms: Rooms,
    node: String,
    namespace: String,
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Rooms {
    /// Objects that found no room are sent to `look_again` when it may be there.
    pub fn new(limits: Limits, look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>) -> Self {
        let (nodes, namespaces, waiting) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { limits, nodes, namespaces, waiting, closed: AtomicBool::new(false), look_again }))
    }

    /// From now on there is no room: this process is about to end.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }

    /// Room for one object on this node, or the object waits.
    pub fn take(&self, node: &str, object: &ObjectRef<PodNotification>) -> Option<Room> {
        if self.0.closed.load(Ordering::SeqCst) {
            return None;
        }
        let namespace = object.namespace.as_deref().unwrap_or_default();
        // It waits before it tries: room that becomes free in between is not missed.
        self.wait(node, namespace, object);
        let limits = self.0.limits;
        let on_node = semaphore(&self.0.nodes, node, limits.per_node).try_acquire_owned().ok()?;
        let in_namespace = semaphore(&self.0.namespaces, namespace, limits.per_namespace).try_acquire_owned().ok()?;
        self.lock_waiting().retain(|waiting| waiting.object != *object);
        let (rooms, node, namespace) = (self.clone(), node.to_owned(), namespace.to_owned());
        Some(Room { rooms, node, namespace, _permits: (on_node, in_namespace) })
    }

    fn wait(&self, node: &str, namespace: &str, object: &ObjectRef<PodNotification>) {
        let mut waiting = self.lock_waiting();
        if waiting.iter().all(|known| known.object != *object) {
            let (node, namespace, object) = (node.to_owned(), namespace.to_owned(), object.clone());
            waiting.push(Waiting { node, namespace, object });
        }
    }

    fn freed(&self, node: &str, namespace: &str) {
        let concerned = |waiting: &mut Waiting| waiting.node == node || waiting.namespace == namespace;
        for waiting in self.lock_waiting().extract_if(.., concerned) {
            // Nobody listens any more: everything ends.
            let _ = self.0.look_again.send(waiting.object);
        }
    }

    fn lock_waiting(&self) -> std::sync::MutexGuard<'_, Vec<Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // The permits go right after this; whoever is told looks at an object first.
        self.rooms.freed(&self.node, &self.namespace);
    }
}

fn semaphore(all: &Mutex<HashMap<String, Arc<Semaphore>>>, name: &str, most: usize) -> Arc<Semaphore> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    // One that nobody holds a part of is as good as a new one.
    all.retain(|known, semaphore| known == name || semaphore.available_permits() < most);
    Arc::clone(all.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> ObjectRef<PodNotification> {
        ObjectRef::new(name).within("default")
    }

    #[test]
    fn who_finds_no_room_is_told_when_there_is_some() {
        let (sender, mut told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 1, per_namespace: 9 }, sender);
        let first = rooms.take("a", &object("first")).unwrap();
        assert!(rooms.take("a", &object("second")).is_none());
        let other = rooms.take("b", &object("other")).unwrap();
        assert!(told.try_recv().is_err());
        drop(first);
        assert_eq!(told.try_recv().unwrap(), object("second"));
        assert!(rooms.take("a", &object("second")).is_some());
        drop(other);
    }

    #[test]
    fn a_namespace_has_its_own_limit() {
        let (sender, _told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 9, per_namespace: 1 }, sender);
        let _first = rooms.take("a", &object("first")).unwrap();
        assert!(rooms.take("b", &object("second")).is_none());
        assert!(rooms.take("b", &ObjectRef::new("third").within("other")).is_some());
    }
}
