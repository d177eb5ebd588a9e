//! What runs on this node, for those who ask from outside: exec, attach, logs, CRI.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::pod::PodExt;
use super::slot::Live;
use crate::runtime::container::new_id;

/// What the containers of a pod have in common.
#[derive(Clone)]
pub(super) struct Sandbox {
    pub id: String,
    /// As it was when the sandbox was made: later changes of labels and annotations do not show here.
    pub pod: Arc<Pod>,
    pub ip: String,
    pub created: Timestamp,
    pub ready: bool,
    /// The last instance of each container that was started, also when it has ended.
    pub containers: Vec<Live>,
}

/// Sandboxes by the UIDs of their pods.
#[derive(Default)]
pub(super) struct Registry(Mutex<HashMap<String, Sandbox>>);

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Sandbox>> {
        self.0.lock().expect("no one panics while holding it")
    }

    pub(super) fn open(&self, pod: &Pod, ip: String) {
        let (id, created, containers) = (new_id(), Timestamp::now(), Vec::new());
        let sandbox = Sandbox { id, pod: Arc::new(pod.clone()), ip, created, ready: true, containers };
        self.lock().insert(pod.uid_text().to_owned(), sandbox);
    }

    /// The pod has ended; what it was can still be asked for.
    pub(super) fn close(&self, pod: &Pod) {
        if let Some(sandbox) = self.lock().get_mut(pod.uid_text()) {
            sandbox.ready = false;
        }
    }

    pub(super) fn remove(&self, pod: &Pod) {
        self.lock().remove(pod.uid_text());
    }

    pub(super) fn remember(&self, pod: &Pod, live: Live) {
        if let Some(sandbox) = self.lock().get_mut(pod.uid_text()) {
            sandbox.containers.retain(|before| before.status.name != live.status.name);
            sandbox.containers.push(live);
        }
    }

    pub(super) fn find(&self, uid: &str, container: &str) -> Option<Live> {
        let sandboxes = self.lock();
        sandboxes.get(uid)?.containers.iter().find(|live| live.status.name == container).cloned()
    }

    pub(super) fn find_by_id(&self, id: &str) -> Option<(Sandbox, Live)> {
        self.lock().values().find_map(|sandbox| {
            let live = sandbox.containers.iter().find(|live| live.container.id == id)?;
            Some((sandbox.clone(), live.clone()))
        })
    }

    pub(super) fn sandboxes(&self) -> Vec<Sandbox> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn kill_all(&self) -> Vec<Live> {
        let live: Vec<Live> = self.lock().drain().flat_map(|(_, sandbox)| sandbox.containers).collect();
        live.iter().for_each(|live| live.container.running.kill());
        live
    }
}
