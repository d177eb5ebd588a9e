//! One pod from its arrival to its end: observe, start what is due, report, wait for the next thing to happen.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use boathook_workloads::events::Weight;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::{mpsc, watch};

use super::Shared;
use super::pod::PodExt;
use super::probe::Kind;
use super::size_limit;
use super::slot::{Role, Slot};
use super::volumes::{MountError, Prepared, Volumes};
use crate::runtime::container::Exit;
use crate::runtime::log::Log;

/// How often a pod is looked at when nothing happens: what failed for a missing object is tried again, volumes made of
/// files are brought up to date.
const RESYNC: Duration = Duration::from_secs(10);
const REFRESH: SignedDuration = SignedDuration::from_secs(60);
/// How often volumes with a limit are measured: less than from one look to the next.
const MEASURE: SignedDuration = SignedDuration::from_secs(9);
/// For who has taken too much: what a kubelet gives.
const SHORT_GRACE: Duration = Duration::from_secs(1);
/// Between two tries to mount a pod's volumes.
const MOUNT_RETRY: SignedDuration = SignedDuration::from_secs(1);

/// For so long a container that could not be started says why, before its back-off does.
const AFTER_FAILED_START: Duration = Duration::from_secs(1);

/// What the API server last said about a pod.
#[derive(Clone)]
pub(super) enum Update {
    Pod(Box<Pod>),
    /// The object is gone.
    Gone,
}

/// What happens to a pod's containers.
pub(super) enum Happening {
    Ended { slot: usize, id: String, exit: Exit },
    Probed { slot: usize, id: String, kind: Kind, well: bool },
}

pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) pod: Pod,
    pub(super) slots: Vec<Slot>,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) send: mpsc::UnboundedSender<Happening>,
    pub(super) updates: watch::Receiver<Update>,
    pub(super) volumes: Option<BTreeMap<String, Prepared>>,
    volumes_not_before: Option<Timestamp>,
    refreshed: Timestamp,
    measured: Timestamp,
    pub(super) reported: Option<PodStatus>,
    pub(super) started: Time,
    /// Why it is to end although no container failed.
    pub(super) evicted: Option<(&'static str, String)>,
    /// Its init containers are through, since this node runs.
    initialized: bool,
    /// It is deleted: what ended stays ended.
    pub(super) over: bool,
}

pub(super) enum Turn {
    Again,
    Over,
}

impl Worker {
    pub(super) async fn run(shared: Arc<Shared>, pod: Pod, updates: watch::Receiver<Update>) {
        let (send, mut happenings) = mpsc::unbounded_channel();
        let mut worker = Worker::new(shared, pod, updates, send);
        while matches!(worker.turn().await, Turn::Again) {
            let wake = worker.wake();
            tokio::select! {
                changed = worker.updates.changed() => if changed.is_err() { break },
                Some(happening) = happenings.recv() => worker.take(happening),
                () = tokio::time::sleep(wake) => {}
            }
            while let Ok(happening) = happenings.try_recv() {
                worker.take(happening);
            }
        }
        worker.clean_up();
    }

    fn new(
        shared: Arc<Shared>,
        pod: Pod,
        updates: watch::Receiver<Update>,
        send: mpsc::UnboundedSender<Happening>,
    ) -> Worker {
        let old = pod.status.clone().unwrap_or_default();
        let spec = pod.pod_spec();
        let has_init = spec.init_containers.as_ref().is_some_and(|init| !init.is_empty());
        let reported: Vec<&ContainerStatus> =
            old.init_container_statuses.iter().chain(&old.container_statuses).flatten().collect();
        let slot = |container: &Container, init: bool| {
            let old = reported.iter().find(|status| status.name == container.name);
            Slot::new(container, init, has_init, old.copied())
        };
        let init = spec.init_containers.iter().flatten().map(|container| slot(container, true));
        let slots = init.chain(spec.containers.iter().map(|container| slot(container, false))).collect();
        let started = old.start_time.clone().unwrap_or_else(|| Time(Timestamp::now()));
        let mut worker = Worker {
            shared,
            pod,
            slots,
            address: None,
            send,
            updates,
            volumes: None,
            volumes_not_before: None,
            refreshed: Timestamp::now(),
            measured: Timestamp::now(),
            reported: None,
            started,
            evicted: None,
            initialized: false,
            over: false,
        };
        worker.begin_again();
        worker
    }

    /// A pod that this node does not know runs from its first init container on, also when it ran here before the node
    /// was restarted.
    fn begin_again(&mut self) {
        if self.pod.is_ended() || self.main_is_over() {
            return;
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.role == Role::Init && slot.exit_code() == Some(0)) {
            slot.wait("PodInitializing", None);
        }
    }

    async fn turn(&mut self) -> Turn {
        let update = self.updates.borrow_and_update().clone();
        match update {
            Update::Gone => {
                self.kill_all().await;
                return Turn::Over;
            }
            Update::Pod(pod) => self.pod = *pod,
        }
        if self.pod.metadata.deletion_timestamp.is_some() {
            self.stop_all(self.pod.grace()).await;
            self.over = true;
            self.report().await;
            return self.delete().await;
        }
        if self.pod.is_ended() {
            // Also when someone else said so.
            self.stop_all(self.pod.grace()).await;
            self.shared.registry.close(&self.pod);
            return Turn::Again;
        }
        self.report().await;
        if self.evicted.is_none() && self.is_overdue() {
            let message = "Pod was active on the node longer than the specified deadline".to_owned();
            self.evict(Weight::Normal, "DeadlineExceeded", message, self.pod.grace()).await;
        }
        if self.evicted.is_none()
            && let Some(message) = self.exceeds_a_size().await
        {
            self.evict(Weight::Warning, "Evicted", message, SHORT_GRACE).await;
        }
        if self.evicted.is_none() {
            self.start_due().await;
            self.refresh_volumes().await;
        }
        self.report().await;
        Turn::Again
    }

    /// Ends it, though it may not want to.
    async fn evict(&mut self, weight: Weight, reason: &'static str, message: String, grace: Duration) {
        self.shared.events.report(&self.pod, weight, reason, message.clone());
        self.stop_all(grace).await;
        self.evicted = Some((reason, message));
    }

    /// Looked at now and then: a volume may grow past its limit meanwhile, as on any node.
    async fn exceeds_a_size(&mut self) -> Option<String> {
        let now = Timestamp::now();
        let volumes = self.volumes.as_ref().filter(|_| now.duration_since(self.measured) >= MEASURE)?;
        self.measured = now;
        size_limit::exceeded(&self.pod, volumes).await
    }

    fn is_overdue(&self) -> bool {
        let limit = self.pod.pod_spec().active_deadline_seconds;
        limit.is_some_and(|limit| Timestamp::now().duration_since(self.started.0).as_secs() >= limit)
    }

    /// How long nothing is due.
    fn wake(&self) -> Duration {
        if self.pod.is_ended() {
            return RESYNC * 6;
        }
        let now = Timestamp::now();
        let deadline = self.pod.pod_spec().active_deadline_seconds.filter(|_| self.evicted.is_none());
        let deadline = deadline.map(|seconds| self.started.0 + SignedDuration::from_secs(seconds));
        // What could not even be started has no end that would be noticed: it is looked at again by itself.
        let failed = self.slots.iter().any(|slot| slot.is_waiting() && slot.tried && slot.not_before.is_none());
        if failed {
            return AFTER_FAILED_START;
        }
        let times = self.slots.iter().filter(|slot| !slot.is_running()).filter_map(|slot| slot.not_before);
        let next = times.chain(self.volumes_not_before).chain(deadline).min();
        let next = next.map(|time| Duration::try_from(time.duration_since(now)).unwrap_or_default());
        next.map_or(RESYNC, |next| next.min(RESYNC)).max(Duration::from_millis(1))
    }

    fn take(&mut self, happening: Happening) {
        let (Happening::Ended { slot, ref id, .. } | Happening::Probed { slot, ref id, .. }) = happening;
        let current = self.slots[slot].live.as_ref().is_some_and(|live| live.container.id == *id);
        if !current {
            return;
        }
        match happening {
            Happening::Ended { slot, exit, .. } => self.ended(slot, exit),
            Happening::Probed { slot, kind, well, .. } => self.probed(slot, kind, well),
        }
    }

    /// A container's process has ended, by itself or by us.
    pub(super) fn ended(&mut self, index: usize, exit: Exit) {
        let message = self.termination_message(index, exit.code);
        let slot = &mut self.slots[index];
        let Some(live) = slot.live.take() else { return };
        live.container.remove();
        let reason = if exit.code == 0 { "Completed" } else { "Error" };
        slot.end(ContainerStateTerminated {
            container_id: slot.status.container_id.clone(),
            exit_code: exit.code,
            reason: Some(reason.to_owned()),
            message,
            started_at: Some(Time(live.container.running.started)),
            finished_at: Some(Time(exit.at)),
            ..ContainerStateTerminated::default()
        });
    }

    fn termination_message(&self, index: usize, code: i32) -> Option<String> {
        let slot = &self.slots[index];
        // A kubelet's limits: 4096 bytes; of the log, 80 lines and 2048 bytes.
        let written = std::fs::read(self.termination_log(slot.name())).unwrap_or_default();
        let mut text = String::from_utf8_lossy(&written[..written.len().min(4096)]).into_owned();
        let fall_back = slot.spec.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
        if text.is_empty() && fall_back && code != 0 {
            text = Log::tail(&self.log_path(slot), 80, 2048);
        }
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn termination_log(&self, container: &str) -> PathBuf {
        self.shared.pod_dir(self.pod.uid_text()).join("termination").join(container)
    }

    pub(super) fn log_path(&self, slot: &Slot) -> PathBuf {
        let logs = self.shared.pod_dir(self.pod.uid_text()).join("logs");
        logs.join(Slot::log_file(slot.name(), slot.status.restart_count))
    }

    /// Starts every container whose time has come.
    async fn start_due(&mut self) {
        if !self.ready_to_start().await {
            return;
        }
        if self.main_is_over() {
            return self.stop_all(self.pod.grace()).await;
        }
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let passed = slot.role == Role::Init && self.initialized;
            if !slot.is_running() && !passed && (slot.is_waiting() || self.restarts(slot)) {
                self.start_when_due(index).await;
            }
            let slot = &self.slots[index];
            let holds_the_next = match slot.role {
                Role::Init => !self.initialized && slot.exit_code() != Some(0),
                Role::Sidecar => !self.initialized && slot.status.started != Some(true),
                Role::Main => false,
            };
            if holds_the_next {
                return;
            }
            self.initialized |= slot.role == Role::Main;
        }
    }

    /// Whether a container that has ended is started again.
    fn restarts(&self, slot: &Slot) -> bool {
        let failed = slot.exit_code() != Some(0);
        match (slot.role, self.pod.pod_spec().restart_policy.as_deref().unwrap_or("Always")) {
            (Role::Sidecar, _) => true,
            (Role::Init | Role::Main, "Never") => false,
            (Role::Init, _) | (Role::Main, "OnFailure") => failed,
            (Role::Main, _) => true,
        }
    }

    /// Whether every container of the pod itself has ended for good.
    fn main_is_over(&self) -> bool {
        let mut main = self.slots.iter().filter(|slot| slot.role == Role::Main);
        main.all(|slot| slot.exit_code().is_some() && !self.restarts(slot))
    }

    /// An address and volumes: what all containers of a pod share.
    async fn ready_to_start(&mut self) -> bool {
        if self.address.is_none() {
            let before = self.pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
            let again = before.and_then(|address| self.shared.addresses.take_again(address));
            self.address = again.or_else(|| self.shared.addresses.take());
        }
        if self.volumes.is_some() {
            return true;
        }
        if self.volumes_not_before.is_some_and(|time| time > Timestamp::now()) {
            return false;
        }
        match self.with_volumes(async |volumes| volumes.prepare().await).await {
            Ok(volumes) => {
                self.volumes = Some(volumes);
                self.volumes_not_before = None;
                self.shared.registry.open(&self.pod, self.pod_ip());
                true
            }
            Err(error) => {
                self.shared.events.report(&self.pod, Weight::Warning, "FailedMount", error.0);
                self.volumes_not_before = Some(Timestamp::now() + MOUNT_RETRY);
                false
            }
        }
    }

    async fn with_volumes<T>(
        &self,
        action: impl AsyncFnOnce(Volumes<'_>) -> Result<T, MountError>,
    ) -> Result<T, MountError> {
        let dir = self.shared.pod_dir(self.pod.uid_text()).join("volumes");
        let (pod_ip, host_ip) = (self.pod_ip(), &self.shared.address);
        let (client, persistent) = (&self.shared.client, &self.shared.persistent);
        action(Volumes { client, pod: &self.pod, pod_ip: &pod_ip, host_ip, dir: &dir, persistent }).await
    }

    async fn refresh_volumes(&mut self) {
        let now = Timestamp::now();
        if self.volumes.is_none() || now.duration_since(self.refreshed) < REFRESH {
            return;
        }
        self.refreshed = now;
        if let Err(error) = self.with_volumes(async |volumes| volumes.refresh().await).await {
            tracing::debug!(pod = self.pod.described(), error = error.0, "volumes were not brought up to date");
        }
    }

    pub(super) fn pod_ip(&self) -> String {
        if self.pod.pod_spec().host_network == Some(true) {
            return self.shared.address.clone();
        }
        self.address.map(|address| address.to_string()).unwrap_or_default()
    }

    /// An event about one of the pod's containers.
    pub(super) fn tell(&self, container: &str, weight: Weight, reason: &str, message: impl Into<String>) {
        self.shared.events.report_on(self.pod.part(container), weight, reason, message);
    }

    fn clean_up(&mut self) {
        self.shared.registry.remove(&self.pod);
        if let Some(address) = self.address.take() {
            self.shared.addresses.give_back(address);
        }
        // Volumes may hold what only their users can remove: the rest goes.
        if let Err(error) = std::fs::remove_dir_all(self.shared.pod_dir(self.pod.uid_text())) {
            tracing::debug!(pod = self.pod.described(), %error, "a pod's directory was not removed");
        }
    }
}
