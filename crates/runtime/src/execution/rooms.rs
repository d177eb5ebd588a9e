//! How many PodNotifications may run their handlers at once, on one node and in one namespace. Undos need no room, and
//! while one begins there is no room for further handlers on its node; a handler that has room already waits with its start.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use boathook_api::PodNotification;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::{mpsc, watch};

use crate::Lease;

/// The most at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub per_node: usize,
    pub per_namespace: usize,
}

/// An undo keeps new handlers of its node from starting for at most this long: one that hangs must not stop everything else.
const LONGEST_HOLD: Duration = Duration::from_secs(5);

/// All the room there is. Whoever found none is told when some becomes free.
#[derive(Clone)]
pub struct Rooms(Arc<Inner>);

struct Inner {
    limits: Limits,
    state: Mutex<State>,
    look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    /// Wakes the handlers that wait with their start.
    undo_ended: watch::Sender<()>,
    /// Handlers start only while this process holds the lease. Absent: it needs none.
    lease: Option<Lease>,
}

#[derive(Default)]
struct State {
    taken: Taken,
    /// The longest first.
    waiting: Vec<(Spot, ObjectRef<PodNotification>)>,
    /// Those that have waited, were told that there is room, and have not come since.
    told: HashSet<ObjectRef<PodNotification>>,
    /// There is no room any more.
    closed: bool,
    /// The undos that have begun and not ended: the UIDs of their objects, by node. Without a name: the node is unknown.
    undos: HashMap<String, HashSet<String>>,
}

/// How many run, by node and by namespace.
#[derive(Clone, Default)]
struct Taken {
    nodes: HashMap<String, usize>,
    namespaces: HashMap<String, usize>,
}

/// Where one runs.
#[derive(Clone)]
struct Spot {
    node: String,
    namespace: String,
}

/// Room for one. Dropped, it is free again.
pub struct Room {
    rooms: Rooms,
    spot: Spot,
}

impl Taken {
    /// Takes one, if both limits allow.
    fn take(&mut self, spot: &Spot, limits: Limits) -> bool {
        let on_node = self.nodes.entry(spot.node.clone()).or_default();
        let in_namespace = self.namespaces.entry(spot.namespace.clone()).or_default();
        let free = *on_node < limits.per_node && *in_namespace < limits.per_namespace;
        if free {
            *on_node += 1;
            *in_namespace += 1;
        }
        free
    }

    fn give_back(&mut self, spot: &Spot) {
        for (counts, name) in [(&mut self.nodes, &spot.node), (&mut self.namespaces, &spot.namespace)] {
            if let Some(count) = counts.get_mut(name) {
                *count = count.saturating_sub(1);
            }
            counts.retain(|_, count| *count > 0);
        }
    }
}

impl Inner {
    fn new(
        limits: Limits,
        look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
        lease: Option<Lease>,
    ) -> Self {
        Self { limits, state: Mutex::default(), look_again, undo_ended: watch::Sender::new(()), lease }
    }
}

impl State {
    /// Whether an undo begins on this node, or on an unknown one.
    fn is_held(&self, node: &str) -> bool {
        self.undos.contains_key(node) || self.undos.contains_key("")
    }
}

impl Rooms {
    /// Objects that found no room are sent to `look_again` when it is there.
    pub fn new(limits: Limits, look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>) -> Self {
        Self(Arc::new(Inner::new(limits, look_again, None)))
    }

    /// The same for a process whose handlers start only while it leads.
    pub fn of_leader(
        limits: Limits,
        look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
        lease: Lease,
    ) -> Self {
        Self(Arc::new(Inner::new(limits, look_again, Some(lease))))
    }

    /// From now on there is no room: this process is about to end.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Room for one object on this node, or the object waits. Whoever does not need it any more [leaves](Self::leave).
    pub fn take(&self, node: &str, object: &ObjectRef<PodNotification>) -> Option<Room> {
        let namespace = object.namespace.clone().unwrap_or_default();
        let spot = Spot { node: node.to_owned(), namespace };
        let mut state = self.lock();
        let free = !state.closed && !state.is_held(node) && state.taken.take(&spot, self.0.limits);
        state.told.remove(object);
        let waits = state.waiting.iter().position(|(_, waiting)| waiting == object);
        match (free, waits) {
            (true, Some(place)) => drop(state.waiting.remove(place)),
            (false, None) => state.waiting.push((spot.clone(), object.clone())),
            (true, None) | (false, Some(_)) => {}
        }
        free.then(|| Room { rooms: self.clone(), spot })
    }

    /// The object needs no room any more: it has ended, or is gone. If it was told that there is some, others are.
    pub fn leave(&self, object: &ObjectRef<PodNotification>) {
        let mut state = self.lock();
        state.waiting.retain(|(_, waiting)| waiting != object);
        if state.told.remove(object) {
            self.tell(&mut state);
        }
    }

    /// Gives no room to further handlers on this node until this object's undo has [ended](Self::undo_ended), or 5 s have
    /// passed. Of an unknown node, which has no name, it may be any.
    pub(super) fn undo_begins(&self, node: &str, uid: &str) {
        self.hold(node, uid, LONGEST_HOLD);
    }

    /// Waits until no undo begins on this node. Whether the handler may start then: not if the lease was lost meanwhile.
    pub(super) async fn may_start(&self, node: &str) -> bool {
        let mut ended = self.0.undo_ended.subscribe();
        while self.lock().is_held(node) {
            ended.changed().await.expect("the sender lives in self");
        }
        self.0.lease.as_ref().is_none_or(Lease::leads)
    }

    fn hold(&self, node: &str, uid: &str, longest: Duration) {
        self.lock().undos.entry(node.to_owned()).or_default().insert(uid.to_owned());
        let (rooms, uid) = (self.clone(), uid.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(longest).await;
            rooms.undo_ended(&uid);
        });
    }

    pub(super) fn undo_ended(&self, uid: &str) {
        let mut state = self.lock();
        let mut has_begun = false;
        state.undos.retain(|_, undos| {
            has_begun |= undos.remove(uid);
            !undos.is_empty()
        });
        if has_begun {
            self.0.undo_ended.send_replace(());
            self.tell(&mut state);
        }
    }

    fn give_back(&self, spot: &Spot) {
        let mut state = self.lock();
        state.taken.give_back(spot);
        self.tell(&mut state);
    }

    /// Tells as many of those who wait as there is room for now.
    fn tell(&self, state: &mut State) {
        let (mut tentative, limits) = (state.taken.clone(), self.0.limits);
        let mut waiting = std::mem::take(&mut state.waiting);
        let free = waiting
            .extract_if(.., |(spot, _)| !state.is_held(&spot.node) && tentative.take(spot, limits))
            .map(|(_, object)| object)
            .collect::<Vec<_>>();
        state.waiting = waiting;
        for object in free {
            state.told.insert(object.clone());
            // Nobody listens any more: everything ends.
            let _ = self.0.look_again.send(object);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // It is whole between two changes, also when a panic came in between.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.rooms.give_back(&self.spot);
    }
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
    fn who_has_ended_while_it_waited_is_passed_over() {
        let (sender, mut told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 1, per_namespace: 9 }, sender);
        let first = rooms.take("a", &object("first")).unwrap();
        for waits in ["revoked", "second"] {
            assert!(rooms.take("a", &object(waits)).is_none());
        }
        rooms.leave(&object("revoked"));
        assert!(told.try_recv().is_err(), "there is no room yet");
        drop(first);
        assert_eq!(told.try_recv().unwrap(), object("second"));
        assert!(told.try_recv().is_err());
    }

    #[test]
    fn who_was_told_and_has_ended_passes_it_on_once() {
        let (sender, mut told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 1, per_namespace: 9 }, sender);
        let first = rooms.take("a", &object("first")).unwrap();
        for waits in ["revoked", "second", "third"] {
            assert!(rooms.take("a", &object(waits)).is_none());
        }
        drop(first);
        assert_eq!(told.try_recv().unwrap(), object("revoked"));
        for _ in 0..2 {
            rooms.leave(&object("revoked"));
        }
        assert_eq!(told.try_recv().unwrap(), object("second"));
        assert!(told.try_recv().is_err(), "there is room for one");
        let _second = rooms.take("a", &object("second")).unwrap();
        rooms.leave(&object("second"));
        assert!(told.try_recv().is_err(), "it came, and has the room");
    }

    #[tokio::test]
    async fn no_handler_starts_while_an_undo_begins() {
        let (sender, mut told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 2, per_namespace: 9 }, sender);
        let first = rooms.take("a", &object("first")).unwrap();
        rooms.undo_begins("a", "one");
        rooms.undo_begins("a", "two");
        assert!(rooms.take("a", &object("second")).is_none());
        drop(first);
        rooms.undo_ended("one");
        assert!(told.try_recv().is_err(), "another undo has begun");
        rooms.undo_ended("two");
        assert_eq!(told.try_recv().unwrap(), object("second"));
        assert!(rooms.take("a", &object("second")).is_some());
    }

    #[tokio::test]
    async fn undo_holds_up_handlers_of_its_node_only() {
        let (sender, mut told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 1, per_namespace: 9 }, sender);
        let first = rooms.take("b", &object("first")).unwrap();
        rooms.undo_begins("a", "one");
        assert!(rooms.take("a", &object("held")).is_none());
        assert!(rooms.take("b", &object("second")).is_none(), "its node is full");
        drop(first);
        assert_eq!(told.try_recv().unwrap(), object("second"));
        assert!(told.try_recv().is_err(), "the other node is held");
        let second = rooms.take("b", &object("second")).unwrap();
        rooms.undo_begins("", "of an unknown node");
        drop(second);
        assert!(rooms.take("b", &object("third")).is_none(), "it may be this node");
        rooms.undo_ended("one");
        assert!(told.try_recv().is_err(), "it may be either node");
        rooms.undo_ended("of an unknown node");
        assert_eq!([told.try_recv().unwrap(), told.try_recv().unwrap()], [object("held"), object("third")]);
    }

    #[tokio::test]
    async fn hanging_undo_does_not_stop_handlers() {
        let (sender, mut told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 2, per_namespace: 9 }, sender);
        rooms.hold("a", "hangs", Duration::from_millis(10));
        assert!(rooms.take("a", &object("first")).is_none());
        let next = tokio::time::timeout(Duration::from_secs(60), told.recv()).await;
        assert_eq!(next.unwrap(), Some(object("first")));
    }

    #[test]
    fn a_namespace_has_its_own_limit() {
        let (sender, _told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 9, per_namespace: 1 }, sender);
        let _first = rooms.take("a", &object("first")).unwrap();
        assert!(rooms.take("b", &object("second")).is_none());
        assert!(rooms.take("b", &ObjectRef::new("third").within("other")).is_some());
    }

    #[test]
    fn only_those_are_told_for_whom_there_is_room_now() {
        let (sender, mut told) = mpsc::unbounded_channel();
        let rooms = Rooms::new(Limits { per_node: 1, per_namespace: 2 }, sender);
        let other = |name: &str| ObjectRef::new(name).within("other");
        let first = rooms.take("a", &object("first")).unwrap();
        let _second = rooms.take("b", &object("second")).unwrap();
        // Its namespace is full; then one whose node is.
        assert!(rooms.take("c", &object("third")).is_none());
        assert!(rooms.take("a", &other("fourth")).is_none());
        drop(first);
        assert_eq!(told.try_recv().unwrap(), object("third"));
        assert_eq!(told.try_recv().unwrap(), other("fourth"));
        assert!(told.try_recv().is_err());
        rooms.close();
        assert!(rooms.take("a", &other("fourth")).is_none());
    }
}
