//! The pod, and what really happened in its containers, in order.

use boathook_api::Declarations;
use boathook_decide::pod_notification as decide;
use jiff::Timestamp;

pub(crate) const NODE: &str = "node";
pub(crate) const CONTAINERS: [&str; 3] = ["front", "back", "quiet"];

/// The pods that there are and were under one name, and their node.
pub(crate) struct Pods {
    /// Which one is there now, if any: UIDs are `pod-0`, `pod-1`...
    number: u32,
    there: bool,
    over: bool,
    /// Since when it has been told to end, within a grace period that does not pass here.
    pub(crate) ending_since: Option<Timestamp>,
    /// How often its containers were restarted.
    pub(crate) restarts: u32,
    pub(crate) node_ready: bool,
    declared: Declarations,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) undos: Vec<Undo>,
    order: usize,
}

/// One run of a handler in one container.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) started: usize,
    /// When whoever started it saw it end; nothing if that process was gone by then.
    pub(crate) ended: Option<usize>,
    pub(crate) succeeded: bool,
    /// Nobody could end it: it does its work then.
    pub(crate) goes_on_until: Option<Timestamp>,
}

/// One run of an undo in one container.
#[derive(Debug)]
pub(crate) struct Undo {
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) started: usize,
    pub(crate) succeeded: bool,
}

impl Pods {
    /// The first so many of its containers declare the notifier and its undo.
    pub(crate) fn new(declaring: usize) -> Self {
        let text = "[{name: freeze, handler: {exec: {command: [freeze]}}, timeoutSeconds: 5}, \
                     {name: thaw, handler: {exec: {command: [thaw]}}, timeoutSeconds: 3}]";
        let annotation = |container: &&str| (format!("notifiers.boathook.dev/{container}"), text.to_owned());
        let annotations = CONTAINERS.iter().take(declaring).map(annotation).collect();
        let declared = Declarations::parse(&annotations, &CONTAINERS.map(str::to_owned)).expect("it is well-formed");
        Self {
            number: 0,
            there: true,
            over: false,
            ending_since: None,
            restarts: 0,
            node_ready: true,
            declared,
            handlers: vec![],
            undos: vec![],
            order: 0,
        }
    }

    pub(crate) fn delete(&mut self) {
        self.there = false;
    }

    pub(crate) fn recreate(&mut self) {
        self.number += 1;
        (self.there, self.over, self.ending_since) = (true, false, None);
    }

    pub(crate) fn tell_to_end(&mut self, now: Timestamp) {
        self.ending_since.get_or_insert(now);
    }

    pub(crate) fn end(&mut self) {
        self.over = true;
    }

    pub(crate) fn is_there(&self, uid: &str) -> bool {
        self.there && self.uid() == uid
    }

    /// Whether its containers run.
    pub(crate) fn runs(&self, uid: &str) -> bool {
        self.is_there(uid) && !self.over
    }

    fn uid(&self) -> String {
        format!("pod-{}", self.number)
    }

    /// As whoever is asked tells of it.
    pub(crate) fn seen(&self, pinned: Option<&str>) -> decide::SeenPod {
        let uid = self.uid();
        if !self.there || pinned.is_some_and(|pinned| pinned != uid) {
            return decide::SeenPod::Gone { node_ready: self.node_ready };
        }
        let (node, over, containers) = (Some(NODE.to_owned()), self.over, CONTAINERS.map(str::to_owned).into());
        decide::SeenPod::There(decide::Pod {
            uid,
            node,
            over,
            ending: self.ending_since.is_some(),
            containers,
            declared: Ok(self.declared.clone()),
        })
    }

    /// A handler begins, if its pod is there; returns its place.
    pub(crate) fn handler_starts(&mut self, pod: &str, container: &str) -> Option<usize> {
        let started = self.next();
        let (pod, container) = self.runs(pod).then(|| (pod.to_owned(), container.to_owned()))?;
        self.handlers.push(Handler { pod, container, started, ended: None, succeeded: false, goes_on_until: None });
        Some(self.handlers.len() - 1)
    }

    pub(crate) fn handler_ends(&mut self, place: usize, succeeded: bool) {
        let order = self.next();
        let handler = &mut self.handlers[place];
        (handler.ended, handler.succeeded) = (Some(order), succeeded);
    }

    /// Nobody knows what became of it, and it goes on.
    pub(crate) fn handler_goes_on(&mut self, place: usize, until: Timestamp) {
        self.handlers[place].goes_on_until = Some(until);
    }

    /// What has gone on until now has done its work.
    pub(crate) fn time_passes(&mut self, now: Timestamp) {
        let order = self.next();
        for handler in &mut self.handlers {
            if handler.goes_on_until.take_if(|until| *until <= now).is_some() {
                handler.ended = Some(order);
            }
        }
    }

    /// Whoever saw it end is gone, and with it the knowledge.
    pub(crate) fn handler_end_is_forgotten(&mut self, place: usize) {
        self.handlers[place].ended = None;
    }

    pub(crate) fn undo_starts(&mut self, pod: &str, container: &str) -> Option<usize> {
        let started = self.next();
        let (pod, container) = self.runs(pod).then(|| (pod.to_owned(), container.to_owned()))?;
        self.undos.push(Undo { pod, container, started, succeeded: false });
        Some(self.undos.len() - 1)
    }

    pub(crate) fn undo_ends(&mut self, place: usize, succeeded: bool) {
        self.undos[place].succeeded = succeeded;
    }

    fn next(&mut self) -> usize {
        self.order += 1;
        self.order
    }
}
