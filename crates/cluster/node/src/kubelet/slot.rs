//! One container of a pod: what is reported of it, and the process behind it when there is one.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::backoff::Backoff;
use super::status::is_sidecar;
use crate::runtime::container::{Container, Input, Terminal};
use crate::runtime::log::Log;

pub(super) const ID_PREFIX: &str = "boathook://";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to its end before the next one.
    Init,
    /// An init container that goes on beside the others.
    Sidecar,
    Main,
}

/// A container that was started, as others (exec, attach, logs, CRI) see it.
#[derive(Clone)]
pub(super) struct Live {
    pub container: Arc<Container>,
    /// When it was started.
    pub status: Arc<ContainerStatus>,
    pub log_path: PathBuf,
    pub log: Arc<Log>,
    pub stdin: Option<Arc<Mutex<Option<Input>>>>,
    pub terminal: Option<Arc<Terminal>>,
}

pub(super) struct Slot {
    pub spec: ContainerSpec,
    pub role: Role,
    pub status: ContainerStatus,
    pub live: Option<Live>,
    /// Tasks that end with the live container.
    pub probes: Vec<AbortHandle>,
    pub backoff: Backoff,
    pub image_backoff: Backoff,
    /// No try to start it before then.
    pub not_before: Option<Timestamp>,
    /// Whether a start was tried already: the next one is a restart.
    pub tried: bool,
}

impl Slot {
    /// A slot for a container of which `old` was last reported.
    pub(super) fn new(spec: &ContainerSpec, init: bool, has_init: bool, old: Option<&ContainerStatus>) -> Slot {
        let role = match init {
            true if is_sidecar(spec) => Role::Sidecar,
            true => Role::Init,
            false => Role::Main,
        };
        let mut slot = Slot {
            spec: spec.clone(),
            role,
            status: ContainerStatus {
                name: spec.name.clone(),
                image: spec.image.clone().unwrap_or_default(),
                started: Some(false),
                last_state: Some(ContainerState::default()),
                volume_mounts: volume_mounts(spec),
                ..ContainerStatus::default()
            },
            live: None,
            probes: Vec::new(),
            backoff: Backoff::default(),
            image_backoff: Backoff::default(),
            not_before: None,
            tried: false,
        };
        slot.wait(if has_init { "PodInitializing" } else { "ContainerCreating" }, None);
        if let Some(old) = old {
            slot.remember(old);
        }
        slot
    }

    /// After a restart of the node: what was running is gone.
    fn remember(&mut self, old: &ContainerStatus) {
        let Some(state) = &old.state else { return };
        self.tried = true;
        if state.terminated.is_some() || state.running.is_some() {
            self.status = ContainerStatus { volume_mounts: self.status.volume_mounts.take(), ..old.clone() };
        } else if old.last_state.as_ref().is_some_and(|last| last.terminated.is_some()) {
            self.status.last_state = old.last_state.clone();
            self.status.restart_count = old.restart_count;
        } else {
            self.tried = false;
        }
        if let Some(running) = &state.running {
            let message = "The container could not be located when the pod was terminated";
            self.end(ContainerStateTerminated {
                exit_code: 137,
                reason: Some("ContainerStatusUnknown".to_owned()),
                message: Some(message.to_owned()),
                started_at: running.started_at.clone(),
                finished_at: Some(Time(Timestamp::now())),
                ..ContainerStateTerminated::default()
            });
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        super::status::exit_code(&self.status)
    }

    pub(super) fn is_running(&self) -> bool {
        self.live.is_some()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.status.state.as_ref().is_some_and(|state| state.waiting.is_some())
    }

    /// Where this instance's log is, below the pod's logs.
    pub(super) fn log_file(name: &str, instance: i32) -> PathBuf {
        PathBuf::from(name).join(format!("{instance}.log"))
    }

    pub(super) fn wait(&mut self, reason: &str, message: Option<String>) {
        self.retire();
        let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
        self.status.state = Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() });
        self.status.ready = false;
        self.status.started = Some(false);
    }

    /// What ended before is now the last state.
    fn retire(&mut self) {
        if let Some(terminated @ Some(_)) = self.status.state.take().map(|state| state.terminated) {
            self.status.last_state = Some(ContainerState { terminated, ..ContainerState::default() });
        }
    }

    pub(super) fn begin_instance(&mut self) {
        self.retire();
        if std::mem::replace(&mut self.tried, true) {
            self.status.restart_count += 1;
        }
        self.status.resources = Some(self.spec.resources.clone().unwrap_or_default());
    }

    pub(super) fn run(&mut self, live: Live) {
        let started_at = Some(Time(live.container.running.started));
        self.status.container_id = Some(format!("{ID_PREFIX}{}", live.container.id));
        let running = Some(ContainerStateRunning { started_at });
        self.status.state = Some(ContainerState { running, ..ContainerState::default() });
        self.status.started = Some(self.spec.startup_probe.is_none());
        let asked = self.spec.startup_probe.is_some() || self.spec.readiness_probe.is_some();
        self.status.ready = self.role != Role::Init && !asked;
        self.live = Some(live);
    }

    pub(super) fn end(&mut self, ended: ContainerStateTerminated) {
        self.stop_probes();
        self.live = None;
        self.status.ready = self.role == Role::Init && ended.exit_code == 0;
        self.status.started = Some(false);
        self.status.state = Some(ContainerState { terminated: Some(ended), ..ContainerState::default() });
    }

    pub(super) fn stop_probes(&mut self) {
        self.probes.drain(..).for_each(|task| task.abort());
    }

    /// When the last instance ended.
    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        let state = self.status.state.as_ref()?;
        let ended = state.terminated.as_ref().or_else(|| self.status.last_state.as_ref()?.terminated.as_ref())?;
        ended.finished_at.as_ref().map(|time| time.0)
    }
}

fn volume_mounts(spec: &ContainerSpec) -> Option<Vec<VolumeMountStatus>> {
    let mounts = spec.volume_mounts.as_ref()?.iter().map(|mount| VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: mount.read_only.filter(|read_only| *read_only),
        recursive_read_only: (mount.read_only == Some(true)).then(|| "Disabled".to_owned()),
    });
    Some(mounts.collect())
}
