//! Starting a pod's container: its back-off, its image, its configuration, its process; and saying why not.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use boathook_workloads::events::Weight;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::backoff::{Backoff, go_duration};
use super::create::container_spec;
use super::environment::{ConfigError, Sources};
use super::pod::PodExt;
use super::slot::{ID_PREFIX, Live, Slot};
use super::worker::{Happening, Worker};
use crate::runtime::container::{Container, StartError, Streams, new_id};
use crate::runtime::image::{Image, full_name};
use crate::runtime::log::Log;

/// Between two tries of what waits for an object or an image that is not there.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(10);

impl Worker {
    pub(super) async fn start_when_due(&mut self, index: usize) {
        let now = Timestamp::now();
        let slot = &mut self.slots[index];
        if slot.not_before.is_some_and(|time| time > now) {
            return;
        }
        let ended = slot.ended_at().filter(|_| slot.tried && slot.not_before.is_none());
        let Some((ended, wait)) = ended.and_then(|at| Some((at, slot.backoff.wait(at)?))) else {
            slot.not_before = None;
            return self.start(index).await;
        };
        let (name, described) = (slot.name().to_owned(), self.pod.described());
        let short = go_duration(wait);
        let message = format!("back-off {short} restarting failed container={name} pod={described}");
        slot.wait("CrashLoopBackOff", Some(message));
        slot.not_before = Some(ended + wait);
        let message = format!("Back-off restarting failed container {name} in pod {described}");
        self.tell(&name, Weight::Warning, "BackOff", message);
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
            Err(error) => Err(ConfigError(error.to_string())),
        };
        let spec = match spec {
            Ok(spec) => spec,
            Err(error) => {
                self.tell(&name, Weight::Warning, "Failed", format!("Error: {}", error.0));
                let slot = &mut self.slots[index];
                slot.wait("CreateContainerConfigError", Some(error.0));
                slot.not_before = Some(Timestamp::now() + TRY_AGAIN);
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
        self.tell(&name, Weight::Normal, "Created", "Container created");
        let id = new_id();
        let stdin = self.slots[index].spec.stdin == Some(true);
        match self.shared.runtime.start(id.clone(), spec, stdin).await {
            Ok((container, streams)) => self.started(index, container, streams).await,
            Err(error) => self.not_started(index, &id, error),
        }
    }

    /// The image, or the reason why there is none in the container's status.
    fn image(&mut self, index: usize) -> Option<Image> {
        let now = Timestamp::now();
        let slot = &self.slots[index];
        let (name, wanted) = (slot.name().to_owned(), slot.spec.image.clone().unwrap_or_default());
        let normal = |reason: &str, message: String| self.tell(&name, Weight::Normal, reason, message);
        let failed = |message: &str| self.tell(&name, Weight::Warning, "Failed", message);
        if let Some(image) = self.shared.images.find(&wanted) {
            let message = "already present on machine and can be accessed by the pod";
            normal("Pulled", format!("Container image \"{wanted}\" {message}"));
            self.slots[index].image_backoff = Backoff::default();
            return Some(image);
        }
        let why = format!(
            "failed to pull and unpack image \"{}\": this node has no registry: load it with `boathook image load`",
            full_name(&wanted)
        );
        let waiting = slot.status.state.as_ref().and_then(|state| state.waiting.as_ref());
        let mut backoff = slot.image_backoff;
        let (reason, message, again) = if slot.spec.image_pull_policy.as_deref() == Some("Never") {
            let message = format!("Container image \"{wanted}\" is not present with pull policy of Never");
            self.tell(&name, Weight::Warning, "ErrImageNeverPull", message.as_str());
            ("ErrImageNeverPull", message, Some(TRY_AGAIN))
        } else if waiting.and_then(|waiting| waiting.reason.as_deref()) == Some("ErrImagePull") {
            let message = format!("Back-off pulling image \"{wanted}\"");
            normal("BackOff", message.clone());
            ("ImagePullBackOff", format!("{message}: ErrImagePull: {why}"), backoff.wait(now))
        } else {
            normal("Pulling", format!("Pulling image \"{wanted}\""));
            failed(&format!("Failed to pull image \"{wanted}\": {why}"));
            backoff.raise(now);
            ("ErrImagePull", why, Some(SignedDuration::from_secs(1)))
        };
        failed(&format!("Error: {reason}"));
        let slot = &mut self.slots[index];
        slot.image_backoff = backoff;
        slot.wait(reason, Some(message));
        slot.not_before = again.map(|wait| now + wait);
        None
    }

    fn not_started(&mut self, index: usize, id: &str, error: StartError) {
        let message = format!(
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create \
             failed: unable to start container process: {error}: unknown"
        );
        let slot = &mut self.slots[index];
        let container_id = format!("{ID_PREFIX}{id}");
        slot.status.container_id = Some(container_id.clone());
        let ended = ContainerStateTerminated {
            container_id: Some(container_id),
            exit_code: 128,
            reason: Some("StartError".to_owned()),
            message: Some(message.clone()),
            started_at: Some(Time(Timestamp::UNIX_EPOCH)),
            finished_at: Some(Time(Timestamp::now())),
            ..ContainerStateTerminated::default()
        };
        slot.end(ended);
        if self.pod.pod_spec().restart_policy.as_deref() != Some("Never") {
            // What ended becomes the last state.
            slot.wait("RunContainerError", Some(message.clone()));
        }
        self.tell(self.slots[index].name(), Weight::Warning, "Failed", format!("Error: {message}"));
    }

    async fn started(&mut self, index: usize, container: Container, streams: Streams) {
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
            status: Arc::new(self.slots[index].status.clone()),
            log_path: path,
            log,
            stdin: stdin.map(|stdin| Arc::new(tokio::sync::Mutex::new(Some(stdin)))),
            terminal: terminal.map(Arc::new),
        };
        let slot = &mut self.slots[index];
        slot.run(live.clone());
        let name = slot.name().to_owned();
        self.shared.registry.remember(&self.pod, live);
        self.tell(&name, Weight::Normal, "Started", "Container started");
        self.after_start(index).await;
    }
}
