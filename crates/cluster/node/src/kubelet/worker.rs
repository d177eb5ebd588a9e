//! One pod from its arrival to its end: observe, start what is due, report, wait for the next thing to happen.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, HostIP, Pod, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use tokio::sync::{mpsc, watch};

use super::Shared;
use super::backoff::go_duration;
use super::create::container_spec;
use super::environment::Sources;
use super::pod::PodExt;
use super::probe::Kind;
use super::slot::{Live, Role, Slot};
use super::status::{Statuses, timed, whole_seconds};
use super::volumes::{MountError, Prepared, Volumes};
use crate::runtime::container::{Exit, StartError, new_id};
use crate::runtime::log::Log;

/// How often a pod is looked at when nothing happens: what failed for a missing object is tried again, volumes made of
/// files are brought up to date.
const RESYNC: Duration = Duration::from_secs(10);
const REFRESH: SignedDuration = SignedDuration::from_secs(60);
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
    volumes: Option<BTreeMap<String, Prepared>>,
    volumes_not_before: Option<Timestamp>,
    refreshed: Timestamp,
    reported: Option<PodStatus>,
    started: Time,
    /// Why it is to end although no container failed.
    evicted: Option<(&'static str, &'static str)>,
    /// Its init containers are through, since this node runs.
    initialized: bool,
    /// It is deleted: what ended stays ended.
    over: bool,
}

enum Turn {
    Again,
    Over,
}

impl Worker {
    pub(super) async fn run(shared: Arc<Shared>, pod: Pod, updates: watch::Receiver<Update>) {
        let (send, mut happenings) = mpsc::unbounded_channel();
        let mut worker = Worker::new(shared, pod, updates, send);
        loop {
            match worker.turn().await {
                Turn::Over => break,
                Turn::Again => {}
            }
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
        let find = |statuses: &Option<Vec<ContainerStatus>>, name: &str| -> Option<ContainerStatus> {
            statuses.iter().flatten().find(|status| status.name == name).cloned()
        };
        let init = spec.init_containers.iter().flatten().map(|container| {
            Slot::new(container, true, has_init, find(&old.init_container_statuses, &container.name).as_ref())
        });
        let mut slots: Vec<Slot> = init.collect();
        slots.extend(spec.containers.iter().map(|container| {
            Slot::new(container, false, has_init, find(&old.container_statuses, &container.name).as_ref())
        }));
        let started = old.start_time.clone().unwrap_or_else(|| whole_seconds(Timestamp::now()));
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
        let policy = self.pod.pod_spec().restart_policy.clone().unwrap_or_default();
        if self.pod.is_ended() || self.main_is_over(&policy) {
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
            return Turn::Again;
        }
        self.report().await;
        if self.evicted.is_none() && self.is_overdue() {
            let (reason, message) =
                ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
            self.shared.events.normal(&self.pod, None, reason, message);
            self.stop_all(Duration::from_secs(
                self.pod.pod_spec().termination_grace_period_seconds.unwrap_or(30).unsigned_abs(),
            ))
            .await;
            self.evicted = Some((reason, message));
        }
        if self.evicted.is_none() {
            self.start_due().await;
            self.refresh_volumes().await;
        }
        self.report().await;
        Turn::Again
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
            started_at: Some(whole_seconds(live.container.running.started)),
            finished_at: Some(whole_seconds(exit.at)),
            ..ContainerStateTerminated::default()
        });
        self.shared.forget(&self.pod, self.slots[index].name());
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

    fn termination_log(&self, container: &str) -> PathBuf {
        self.shared.pod_dir(self.pod.uid_text()).join("termination").join(container)
    }

    fn log_path(&self, slot: &Slot) -> PathBuf {
        let logs = self.shared.pod_dir(self.pod.uid_text()).join("logs");
        logs.join(Slot::log_file(slot.name(), slot.status.restart_count))
    }

    /// Starts every container whose time has come.
    async fn start_due(&mut self) {
        if !self.ready_to_start().await {
            return;
        }
        let policy = self.pod.pod_spec().restart_policy.clone().unwrap_or_else(|| "Always".to_owned());
        if self.main_is_over(&policy) {
            let running = self.slots.iter().any(Slot::is_running);
            if running {
                self.stop_all(self.pod.grace()).await;
            }
            return;
        }
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let restarts = match slot.role {
                Role::Sidecar => true,
                Role::Init => policy != "Never" && slot.exit_code() != Some(0),
                Role::Main => match policy.as_str() {
                    "Never" => false,
                    "OnFailure" => slot.exit_code() != Some(0),
                    _ => true,
                },
            };
            let passed = slot.role == Role::Init && self.initialized;
            let due = !slot.is_running() && !passed && (slot.is_waiting() || restarts);
            if due {
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

    /// Whether every container of the pod itself has ended for good.
    fn main_is_over(&self, policy: &str) -> bool {
        let mut main = self.slots.iter().filter(|slot| slot.role == Role::Main);
        main.all(|slot| match slot.exit_code() {
            None => false,
            Some(code) => policy == "Never" || (policy == "OnFailure" && code == 0),
        })
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
                true
            }
            Err(error) => {
                self.shared.events.warning(&self.pod, None, "FailedMount", error.0);
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

    async fn start_when_due(&mut self, index: usize) {
        let now = Timestamp::now();
        let slot = &mut self.slots[index];
        if slot.not_before.is_some_and(|time| time > now) {
            return;
        }
        let wait = slot.ended_at().filter(|_| slot.tried).and_then(|at| Some((at, slot.backoff.wait(at)?)));
        if let Some((ended, wait)) = wait
            && slot.not_before.is_none()
        {
            let name = slot.name().to_owned();
            let (short, described) = (go_duration(wait), self.pod.described());
            let message = format!("back-off {short} restarting failed container={name} pod={described}");
            slot.wait("CrashLoopBackOff", Some(message));
            slot.not_before = Some(ended + wait);
            let message = format!("Back-off restarting failed container {name} in pod {described}");
            self.shared.events.warning(&self.pod, Some(&name), "BackOff", message);
            return;
        }
        slot.not_before = None;
        self.start(index).await;
    }

    async fn start(&mut self, index: usize) {
        let Some(image) = self.image(index) else { return };
        let slot = &self.slots[index];
        let name = slot.name().to_owned();
        let pod_ip = self.pod_ip();
        let sources =
            Sources { client: &self.shared.client, pod: &self.pod, pod_ip: &pod_ip, host_ip: &self.shared.address };
        let termination_log = self.termination_log(&name);
        let prepared = std::fs::create_dir_all(termination_log.parent().unwrap_or(&termination_log))
            .and_then(|()| std::fs::write(&termination_log, ""))
            .and_then(|()| std::fs::set_permissions(&termination_log, Permissions::from_mode(0o666)));
        let volumes = self.volumes.clone().unwrap_or_default();
        let spec = match prepared {
            Ok(()) => container_spec(&sources, &slot.spec, &image, &volumes, termination_log).await,
            Err(error) => Err(super::environment::ConfigError(error.to_string())),
        };
        let spec = match spec {
            Ok(spec) => spec,
            Err(error) => {
                self.shared.events.warning(&self.pod, Some(&name), "Failed", format!("Error: {}", error.0));
                let slot = &mut self.slots[index];
                slot.wait("CreateContainerConfigError", Some(error.0));
                slot.not_before = Some(Timestamp::now() + SignedDuration::try_from(RESYNC).unwrap_or_default());
                return;
            }
        };
        let slot = &mut self.slots[index];
        if slot.tried {
            slot.backoff.raise(Timestamp::now());
        }
        slot.begin_instance();
        slot.status.image = image.name.clone();
        slot.status.image_id = image.id.clone();
        self.shared.events.normal(&self.pod, Some(&name), "Created", "Container created");
        let id = new_id();
        let stdin = self.slots[index].spec.stdin == Some(true);
        match self.shared.runtime.start(id.clone(), spec, stdin).await {
            Ok((container, streams)) => self.started(index, container, streams).await,
            Err(error) => self.not_started(index, &id, error),
        }
    }

    /// The image, or the reason why there is none in the container's status.
    fn image(&mut self, index: usize) -> Option<crate::runtime::image::Image> {
        let now = Timestamp::now();
        let slot = &mut self.slots[index];
        let (name, wanted) = (slot.name().to_owned(), slot.spec.image.clone().unwrap_or_default());
        if let Some(image) = self.shared.images.find(&wanted) {
            let message =
                format!("Container image \"{wanted}\" already present on machine and can be accessed by the pod");
            self.shared.events.normal(&self.pod, Some(&name), "Pulled", message);
            slot.image_backoff = Default::default();
            return Some(image);
        }
        let warn = |reason: &str, message: String| self.shared.events.warning(&self.pod, Some(&name), reason, message);
        if slot.spec.image_pull_policy.as_deref() == Some("Never") {
            let message = format!("Container image \"{wanted}\" is not present with pull policy of Never");
            warn("ErrImageNeverPull", message.clone());
            warn("Failed", "Error: ErrImageNeverPull".to_owned());
            slot.wait("ErrImageNeverPull", Some(message));
            slot.not_before = Some(now + SignedDuration::try_from(RESYNC).unwrap_or_default());
            return None;
        }
        let why = format!(
            "failed to pull and unpack image \"{}\": this node has no registry: load it with `boathook image load`",
            crate::runtime::image::full_name(&wanted)
        );
        let backing_off = slot.status.state.as_ref().and_then(|state| state.waiting.as_ref()?.reason.as_deref())
            == Some("ErrImagePull");
        if backing_off {
            self.shared.events.normal(
                &self.pod,
                Some(&name),
                "BackOff",
                format!("Back-off pulling image \"{wanted}\""),
            );
            warn("Failed", "Error: ImagePullBackOff".to_owned());
            slot.wait("ImagePullBackOff", Some(format!("Back-off pulling image \"{wanted}\": ErrImagePull: {why}")));
            slot.not_before = slot.image_backoff.wait(now).map(|wait| now + wait);
        } else {
            self.shared.events.normal(&self.pod, Some(&name), "Pulling", format!("Pulling image \"{wanted}\""));
            warn("Failed", format!("Failed to pull image \"{wanted}\": {why}"));
            warn("Failed", "Error: ErrImagePull".to_owned());
            slot.wait("ErrImagePull", Some(why));
            slot.image_backoff.raise(now);
            slot.not_before = Some(now + SignedDuration::from_secs(1));
        }
        None
    }

    fn not_started(&mut self, index: usize, id: &str, error: StartError) {
        let message = format!(
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create \
             failed: unable to start container process: {error}: unknown"
        );
        let slot = &mut self.slots[index];
        let container_id = format!("{}{id}", super::slot::ID_PREFIX);
        slot.status.container_id = Some(container_id.clone());
        let ended = ContainerStateTerminated {
            container_id: Some(container_id),
            exit_code: 128,
            reason: Some("StartError".to_owned()),
            message: Some(message.clone()),
            started_at: Some(Time(Timestamp::UNIX_EPOCH)),
            finished_at: Some(whole_seconds(Timestamp::now())),
            ..ContainerStateTerminated::default()
        };
        slot.end(ended.clone());
        let never = self.pod.pod_spec().restart_policy.as_deref() == Some("Never");
        if !never {
            slot.wait("RunContainerError", Some(message.clone()));
            slot.status.last_state = Some(ContainerState { terminated: Some(ended), ..ContainerState::default() });
        }
        let name = slot.name().to_owned();
        self.shared.events.warning(&self.pod, Some(&name), "Failed", format!("Error: {message}"));
    }

    async fn started(
        &mut self,
        index: usize,
        container: crate::runtime::container::Container,
        streams: crate::runtime::container::Streams,
    ) {
        let path = self.log_path(&self.slots[index]);
        let log = match Log::create(&path) {
            Ok(log) => log,
            Err(error) => {
                container.running.kill();
                return self.not_started(index, &container.id, StartError(format!("open log: {error}")));
            }
        };
        // The instance before the last one can no longer be asked for.
        let old = self.slots[index].status.restart_count - 2;
        if old >= 0 {
            let name = Slot::log_file(self.slots[index].name(), old);
            std::fs::remove_file(self.shared.pod_dir(self.pod.uid_text()).join("logs").join(name)).ok();
        }
        let container = Arc::new(container);
        let (stdin, terminal) = (streams.stdin, streams.terminal);
        let writer = log.clone();
        let (running, send, id) = (container.running.clone(), self.send.clone(), container.id.clone());
        tokio::spawn(async move {
            let out = writer.record(streams.stdout, "stdout");
            let err = async {
                if let Some(stderr) = streams.stderr {
                    writer.record(stderr, "stderr").await;
                }
            };
            tokio::join!(out, err);
            let exit = running.wait().await;
            writer.complete();
            send.send(Happening::Ended { slot: index, id, exit }).ok();
        });
        let live = Live {
            container,
            log,
            stdin: stdin.map(|stdin| Arc::new(tokio::sync::Mutex::new(Some(stdin)))),
            terminal: terminal.map(Arc::new),
        };
        let slot = &mut self.slots[index];
        slot.run(live.clone());
        let name = slot.name().to_owned();
        self.shared.remember(&self.pod, &name, live);
        self.shared.events.normal(&self.pod, Some(&name), "Started", "Container started");
        self.after_start(index).await;
    }

    /// Writes the status when it differs from what was last written.
    pub(super) async fn report(&mut self) {
        let status = self.status();
        if self.reported.as_ref().is_some_and(|reported| *reported == status) {
            return;
        }
        let (namespace, name) = self.pod.namespaced_name();
        let pods: Api<Pod> = Api::namespaced(self.shared.client.clone(), &namespace);
        let mut fields = serde_json::to_value(&status).unwrap_or_default();
        absent_is_null(&mut fields);
        fields["conditions"].as_array_mut().into_iter().flatten().for_each(absent_is_null);
        let before = self.pod.status.as_ref().and_then(|status| status.pod_ip.as_ref());
        if before.is_some() && before != status.pod_ip.as_ref() {
            // The list is merged by address: the old one must go.
            fields["podIPs"] = serde_json::json!([{ "$patch": "replace" }, { "ip": status.pod_ip }]);
        }
        let patch = serde_json::json!({ "metadata": { "uid": self.pod.uid_text() }, "status": fields });
        match pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch)).await {
            Ok(pod) => {
                self.pod.status = pod.status;
                self.reported = Some(status);
            }
            Err(kube::Error::Api(error)) if error.code == 404 || error.code == 409 => {}
            Err(error) => tracing::warn!(pod = self.pod.described(), %error, "a pod's status was not written"),
        }
    }

    fn status(&self) -> PodStatus {
        let (init, containers): (Vec<&Slot>, Vec<&Slot>) = self.slots.iter().partition(|slot| slot.role != Role::Main);
        let of = |slots: &[&Slot]| slots.iter().map(|slot| slot.status.clone()).collect::<Vec<_>>();
        let (init, containers) = (of(&init), of(&containers));
        let statuses = Statuses { spec: self.pod.pod_spec(), init: &init, containers: &containers };
        let running = self.slots.iter().any(Slot::is_running);
        let mut phase = if self.evicted.is_some() { "Failed" } else { statuses.phase(self.over) };
        let old = self.pod.status.clone().unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") && running {
            phase = "Running";
        }
        let ended = matches!(phase, "Succeeded" | "Failed");
        let has_sandbox = self.volumes.is_some() && self.address.is_some() && !ended;
        let generation = self.pod.metadata.generation;
        let old_conditions = old.conditions.clone().unwrap_or_default();
        let conditions = statuses.conditions(phase, has_sandbox, &old_conditions);
        // What was written last counts: the watch may still show what was before.
        let written = self.reported.as_ref().and_then(|reported| reported.conditions.as_deref());
        let before = written.unwrap_or(&old_conditions);
        let some = |statuses: Vec<ContainerStatus>| (!statuses.is_empty()).then_some(statuses);
        let ip = Some(self.pod_ip()).filter(|ip| !ip.is_empty()).or(old.pod_ip);
        PodStatus {
            phase: Some(phase.to_owned()),
            reason: self.evicted.map(|(reason, _)| reason.to_owned()),
            message: self.evicted.map(|(_, message)| message.to_owned()),
            conditions: Some(timed(before, conditions, generation, Timestamp::now())),
            container_statuses: some(containers),
            init_container_statuses: some(init),
            host_ip: Some(self.shared.address.clone()),
            host_ips: Some(vec![HostIP { ip: self.shared.address.clone() }]),
            pod_ips: ip.clone().map(|ip| vec![PodIP { ip }]),
            pod_ip: ip,
            start_time: Some(self.started.clone()),
            observed_generation: generation,
            qos_class: old.qos_class,
            ..PodStatus::default()
        }
    }

    /// The last step of a deletion: nothing runs any more.
    async fn delete(&mut self) -> Turn {
        let (namespace, name) = self.pod.namespaced_name();
        let pods: Api<Pod> = Api::namespaced(self.shared.client.clone(), &namespace);
        let preconditions = Some(Preconditions { uid: self.pod.uid(), resource_version: None });
        let now = DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) };
        match pods.delete(&name, &now).await {
            Ok(_) => Turn::Over,
            Err(kube::Error::Api(error)) if error.code == 404 || error.code == 409 => Turn::Over,
            Err(error) => {
                tracing::warn!(pod = self.pod.described(), %error, "an ended pod was not deleted");
                Turn::Again
            }
        }
    }

    fn clean_up(&mut self) {
        if let Some(address) = self.address.take() {
            self.shared.addresses.give_back(address);
        }
        // Volumes may hold what only their users can remove: the rest goes.
        if let Err(error) = std::fs::remove_dir_all(self.shared.pod_dir(self.pod.uid_text())) {
            tracing::debug!(pod = self.pod.described(), %error, "a pod's directory was not removed");
        }
    }
}

/// In a patch what is not said stays: what is gone must be said.
fn absent_is_null(fields: &mut serde_json::Value) {
    for gone in ["reason", "message"] {
        if fields.get(gone).is_none() {
            fields[gone] = serde_json::Value::Null;
        }
    }
}
