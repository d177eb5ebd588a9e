//! The pods that use the claim, and what really happened in them, in order.

use std::collections::{BTreeMap, BTreeSet};

use boathook_api::{Declarations, PodNotification};
use boathook_decide::{application_snapshot as snapshot, execution_hook as hook, pod_notification as notification};
use jiff::Timestamp;

pub(crate) const CONTAINER: &str = "main";

#[derive(Default)]
pub(crate) struct Pods {
    pub(crate) pods: Vec<Pod>,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) undos: Vec<Undo>,
    made: usize,
    order: usize,
}

pub(crate) struct Pod {
    name: String,
    pub(crate) uid: String,
    /// It has started: until then it uses the claim, and runs nothing.
    pub(crate) running: bool,
    restarts: u32,
    /// The PodNotifications whose handlers hold it.
    pub(crate) frozen: BTreeSet<String>,
}

/// One run of a handler.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) child: String,
    pub(crate) child_uid: String,
    pub(crate) pod: String,
    container_id: String,
    started: usize,
    /// When whoever started it saw it end; nothing if that process was gone by then.
    ended: Option<usize>,
}

/// One run of an undo.
#[derive(Debug)]
pub(crate) struct Undo {
    child: String,
    started: usize,
    succeeded: bool,
}

impl Pods {
    pub(crate) fn new(count: usize) -> Self {
        let mut pods = Self::default();
        (0..count).for_each(|_| pods.come(true));
        pods
    }

    pub(crate) fn come(&mut self, running: bool) {
        let name = format!("db-{}", self.pods.len());
        self.add(name, running);
    }

    fn add(&mut self, name: String, running: bool) {
        self.made += 1;
        let uid = format!("uid-{}", self.made);
        self.pods.push(Pod { name, uid, running, restarts: 0, frozen: BTreeSet::new() });
    }

    fn pick(&self, which: usize) -> Option<usize> {
        (!self.pods.is_empty()).then(|| which % self.pods.len())
    }

    pub(crate) fn start(&mut self) {
        self.pods.iter_mut().for_each(|pod| pod.running = true);
    }

    pub(crate) fn restart(&mut self, which: usize) {
        if let Some(place) = self.pick(which) {
            self.pods[place].restarts += 1;
            self.pods[place].frozen.clear();
        }
    }

    /// Another one comes in its place: pods of one name, with one claim.
    pub(crate) fn replace(&mut self, which: usize) {
        if let Some(place) = self.pick(which) {
            let name = self.pods.remove(place).name;
            self.add(name, true);
        }
    }

    pub(crate) fn get(&self, uid: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.uid == uid)
    }

    fn get_mut(&mut self, uid: &str) -> Option<&mut Pod> {
        self.pods.iter_mut().find(|pod| pod.uid == uid)
    }

    /// As the controller of hooks sees them.
    pub(crate) fn for_hooks(&self, names: Option<&[String]>) -> Vec<hook::Pod> {
        let chosen = self.pods.iter().filter(|pod| names.is_none_or(|names| names.contains(&pod.name)));
        let seen = |pod: &Pod| hook::Pod {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            created: Timestamp::UNIX_EPOCH,
            running: pod.running,
            ready: pod.running,
            containers: vec![CONTAINER.to_owned()],
            declared: Ok(Declarations::default()),
        };
        chosen.map(seen).collect()
    }

    /// As whoever executes a PodNotification sees its pod.
    pub(crate) fn for_notification(&self, object: &PodNotification) -> notification::SeenPod {
        let pinned = object.status.as_ref().and_then(|status| status.pod_uid.clone()).or(object.spec.pod_uid.clone());
        match self.get(&pinned.unwrap_or_default()) {
            None => notification::SeenPod::Gone { node_ready: true },
            Some(pod) => notification::SeenPod::There(notification::Pod {
                uid: pod.uid.clone(),
                node: Some("node".to_owned()),
                over: false,
                ending: false,
                containers: vec![CONTAINER.to_owned()],
                declared: Ok(Declarations::default()),
            }),
        }
    }

    /// The claim, and who uses it.
    pub(crate) fn claim(&self) -> snapshot::Claim {
        let user = |pod: &Pod| snapshot::User {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            labels: BTreeMap::new(),
            created: None,
            running: pod.running,
            containers: vec![CONTAINER.to_owned()],
        };
        let attached = self.pods.iter().any(|pod| pod.running);
        let (labels, pods) = (BTreeMap::new(), self.pods.iter().map(user).collect());
        snapshot::Claim { name: "data".to_owned(), labels, attached, pods, ended: vec![] }
    }

    pub(crate) fn containers(&self) -> Vec<(String, String, String)> {
        let running = self.pods.iter().filter(|pod| pod.running);
        running.map(|pod| (pod.uid.clone(), CONTAINER.to_owned(), pod.container_id())).collect()
    }

    pub(crate) fn handler_starts(&mut self, (child, child_uid): (&str, &str), uid: &str) -> Option<usize> {
        let started = self.next();
        let (pod, container_id) = self.get(uid).map(|pod| (pod.uid.clone(), pod.container_id()))?;
        let (child, child_uid) = (child.to_owned(), child_uid.to_owned());
        self.handlers.push(Handler { child, child_uid, pod, container_id, started, ended: None });
        Some(self.handlers.len() - 1)
    }

    /// Whether it ends as it was meant to: nothing succeeds where nothing runs any more. And in which container.
    pub(crate) fn handler_ends(&mut self, place: usize, well: bool) -> (bool, String) {
        let order = self.next();
        let handler = &mut self.handlers[place];
        handler.ended = Some(order);
        let (child, uid, id) = (handler.child.clone(), handler.pod.clone(), handler.container_id.clone());
        let same = self.get_mut(&uid).filter(|pod| pod.container_id() == id);
        let well = well && same.is_some();
        if let Some(pod) = same.filter(|_| well) {
            pod.frozen.insert(child);
        }
        (well, id)
    }

    /// Whoever saw it end is gone, and with it the knowledge.
    pub(crate) fn handler_end_is_forgotten(&mut self, place: usize) {
        self.handlers[place].ended = None;
    }

    pub(crate) fn undo_starts(&mut self, child: &str, uid: &str) -> Option<usize> {
        let started = self.next();
        self.get_mut(uid)?.frozen.remove(child);
        self.undos.push(Undo { child: child.to_owned(), started, succeeded: false });
        Some(self.undos.len() - 1)
    }

    pub(crate) fn undo_ends(&mut self, place: usize, well: bool) {
        self.undos[place].succeeded = well;
    }

    pub(crate) fn session_ends(&mut self, child: &str) {
        for pod in &mut self.pods {
            pod.frozen.remove(child);
        }
    }

    /// I1, of one handler.
    pub(crate) fn is_taken_back(&self, handler: &Handler) -> bool {
        let after = handler.ended.unwrap_or(handler.started);
        let taken_back = |undo: &Undo| undo.child == handler.child && undo.succeeded && undo.started > after;
        self.get(&handler.pod).is_none() || self.undos.iter().any(taken_back)
    }

    /// I2, of one handler.
    pub(crate) fn is_being_taken_back(&self, handler: &Handler) -> bool {
        let begun = |undo: &Undo| undo.child == handler.child && undo.started > handler.started;
        self.get(&handler.pod).is_none() || self.undos.iter().any(begun)
    }

    fn next(&mut self) -> usize {
        self.order += 1;
        self.order
    }
}

impl Pod {
    fn container_id(&self) -> String {
        format!("{}-{}", self.uid, self.restarts)
    }
}
