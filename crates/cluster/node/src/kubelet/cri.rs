//! This node as a container runtime: the slice of CRI that an agent needs, with containerd's codes and words.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use boathook_cri::{
    Container, ContainerFilter, ContainerMetadata, ContainerState, ContainerStatus, ContainerStatusRequest,
    ContainerStatusResponse, ExecRequest, ExecResponse, ExecSyncRequest, ExecSyncResponse, ImageSpec,
    ListContainersRequest, ListContainersResponse, ListPodSandboxRequest, ListPodSandboxResponse, PodSandbox,
    PodSandboxFilter, PodSandboxMetadata, PodSandboxNetworkStatus, PodSandboxState, PodSandboxStatus,
    PodSandboxStatusRequest, PodSandboxStatusResponse, RuntimeCondition, RuntimeService, RuntimeStatus, StatusRequest,
    StatusResponse, VersionRequest, VersionResponse, labels,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::UnixListener;
use tonic::{Request, Response, Status};

use super::Shared;
use super::pod::PodExt;
use super::registry::Sandbox;
use super::sessions::{self, Session, SessionError};
use super::slot::Live;
use crate::runtime::container::new_id;

/// How much of each output of a command is kept: what CRI asks of runtimes.
const KEPT_OUTPUT: usize = 16 << 20;
/// How long the streams of an exec can be fetched.
const TOKEN_LIFE: Duration = Duration::from_secs(60);

/// The annotation of a container that names its ports.
const PORTS: &str = "io.kubernetes.container.ports";

type Labels = HashMap<String, String>;
type Answer<T> = Result<Response<T>, Status>;

/// Serves until it is dropped.
pub(super) async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    if let Err(error) = boathook_cri::serve(listener, Cri(shared)).await {
        tracing::warn!(%error, "the CRI socket is no longer served");
    }
}

/// Commands whose streams nobody has fetched yet.
pub(super) struct Execs {
    url: String,
    waiting: Mutex<HashMap<String, (Instant, Live, ExecRequest)>>,
}

impl Execs {
    pub(super) fn new(url: String) -> Execs {
        Execs { url, waiting: Mutex::default() }
    }

    fn offer(&self, live: Live, request: ExecRequest) -> String {
        let mut waiting = self.waiting.lock().expect("no one panics while holding it");
        waiting.retain(|_, (since, ..)| since.elapsed() < TOKEN_LIFE);
        let token = new_id();
        let url = format!("{}/exec/{token}", self.url);
        waiting.insert(token, (Instant::now(), live, request));
        url
    }

    pub(super) fn redeem(&self, token: &str) -> Option<BoxFuture<'static, Result<Session, SessionError>>> {
        let (since, live, request) = self.waiting.lock().expect("no one panics while holding it").remove(token)?;
        if since.elapsed() >= TOKEN_LIFE {
            return None;
        }
        let ExecRequest { cmd, tty, stdin, stdout, stderr, .. } = request;
        let opening = async move {
            let mut session = sessions::exec(&live, cmd, stdin, tty).await?;
            // What nobody wants is read all the same: a full pipe would hold the command up.
            if !stdout {
                discard(std::mem::replace(&mut session.stdout, Box::new(tokio::io::empty())));
            }
            if let Some(unwanted) = session.stderr.take_if(|_| !stderr) {
                discard(unwanted);
            }
            Ok(session)
        };
        Some(opening.boxed())
    }
}

fn discard(mut output: crate::runtime::container::Output) {
    tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
}

struct Cri(Arc<Shared>);

impl Cri {
    fn container(&self, id: &str) -> Result<(Sandbox, Live), Status> {
        let found = self.0.registry.find_by_id(id);
        found.ok_or_else(|| Status::not_found(format!("failed to find container \"{id}\" in store: not found")))
    }

    fn running(&self, id: &str) -> Result<Live, Status> {
        let (_, live) = self.container(id)?;
        match live.state() {
            ContainerState::ContainerRunning => Ok(live),
            state => Err(Status::unknown(format!("container is in {} state", state.as_str_name()))),
        }
    }
}

#[tonic::async_trait]
impl RuntimeService for Cri {
    async fn version(&self, _: Request<VersionRequest>) -> Answer<VersionResponse> {
        Ok(Response::new(VersionResponse {
            // Of the kubelet's interface, and never another.
            version: "0.1.0".to_owned(),
            runtime_name: "boathook".to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime_api_version: "v1".to_owned(),
        }))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Answer<StatusResponse> {
        let ready = |name: &str| RuntimeCondition { r#type: name.to_owned(), status: true, ..Default::default() };
        let conditions = vec![ready("RuntimeReady"), ready("NetworkReady")];
        Ok(Response::new(StatusResponse { status: Some(RuntimeStatus { conditions }) }))
    }

    async fn list_pod_sandbox(&self, request: Request<ListPodSandboxRequest>) -> Answer<ListPodSandboxResponse> {
        let filter = request.into_inner().filter.unwrap_or_default();
        let all = self.0.registry.sandboxes().into_iter().map(|sandbox| sandbox.listed());
        Ok(Response::new(ListPodSandboxResponse { items: all.filter(|item| selects_sandbox(&filter, item)).collect() }))
    }

    async fn pod_sandbox_status(&self, request: Request<PodSandboxStatusRequest>) -> Answer<PodSandboxStatusResponse> {
        let id = request.into_inner().pod_sandbox_id;
        let found = self.0.registry.sandboxes().into_iter().find(|sandbox| sandbox.id == id);
        let sandbox = found.ok_or_else(|| {
            Status::not_found(format!("an error occurred when try to find sandbox \"{id}\": not found"))
        })?;
        let PodSandbox { id, metadata, state, created_at, labels, annotations } = sandbox.listed();
        let network = Some(PodSandboxNetworkStatus { ip: sandbox.ip });
        let status = Some(PodSandboxStatus { id, metadata, state, created_at, network, labels, annotations });
        Ok(Response::new(PodSandboxStatusResponse { status, info: HashMap::new() }))
    }

    async fn list_containers(&self, request: Request<ListContainersRequest>) -> Answer<ListContainersResponse> {
        let filter = request.into_inner().filter.unwrap_or_default();
        let sandboxes = self.0.registry.sandboxes();
        let all = sandboxes.iter().flat_map(|sandbox| sandbox.containers.iter().map(|live| live.listed(sandbox)));
        let containers = all.filter(|container| selects_container(&filter, container)).collect();
        Ok(Response::new(ListContainersResponse { containers }))
    }

    async fn container_status(&self, request: Request<ContainerStatusRequest>) -> Answer<ContainerStatusResponse> {
        let ContainerStatusRequest { container_id, verbose } = request.into_inner();
        let (sandbox, live) = self.container(&container_id)?;
        let (running, ended) = (&live.container.running, live.container.running.exit());
        let Container { id, metadata, image, image_ref, state, created_at, labels, annotations, .. } =
            live.listed(&sandbox);
        let status = ContainerStatus {
            id,
            metadata,
            state,
            created_at,
            started_at: nanoseconds(running.started),
            finished_at: ended.map_or(0, |exit| nanoseconds(exit.at)),
            exit_code: ended.map_or(0, |exit| exit.code),
            image,
            image_ref,
            reason: ended.map_or("", |exit| if exit.code == 0 { "Completed" } else { "Error" }).to_owned(),
            message: String::new(),
            labels,
            annotations,
            log_path: live.log_path.display().to_string(),
        };
        let mut info = HashMap::new();
        if verbose {
            let pid = if ended.is_none() { running.pid } else { 0 };
            // No `runtimeSpec`: there is no cgroup of its own that it could name.
            info.insert("info".to_owned(), json!({"sandboxID": sandbox.id, "pid": pid}).to_string());
        }
        Ok(Response::new(ContainerStatusResponse { status: Some(status), info }))
    }

    async fn exec_sync(&self, request: Request<ExecSyncRequest>) -> Answer<ExecSyncResponse> {
        let ExecSyncRequest { container_id, cmd, timeout } = request.into_inner();
        let failed =
            |status: Status| Status::new(status.code(), format!("failed to exec in container: {}", status.message()));
        let live = self.running(&container_id).map_err(failed)?;
        let (running, outputs) = live.container.run(cmd, KEPT_OUTPUT).await.map_err(|error| {
            failed(Status::unknown(format!(
                "failed to start exec: OCI runtime exec failed: exec failed: unable to start container process: \
                 {error}: unknown"
            )))
        })?;
        let limit = if timeout > 0 { Duration::from_secs(timeout.unsigned_abs()) } else { Duration::MAX };
        let Ok(exit) = tokio::time::timeout(limit, running.wait()).await else {
            running.kill();
            let why = format!("timeout {timeout}s exceeded: context deadline exceeded");
            return Err(failed(Status::deadline_exceeded(why)));
        };
        // Whoever inherited the outputs holds up the answer, as in containerd: the caller's own deadline ends that.
        let (stdout, stderr) = outputs.await;
        Ok(Response::new(ExecSyncResponse { stdout, stderr, exit_code: exit.code }))
    }

    async fn exec(&self, request: Request<ExecRequest>) -> Answer<ExecResponse> {
        let request = request.into_inner();
        let live = self.running(&request.container_id)?;
        if request.tty && request.stderr {
            return Err(Status::invalid_argument("tty and stderr cannot both be true"));
        }
        if !(request.stdin || request.stdout || request.stderr) {
            return Err(Status::invalid_argument("one of stdin, stdout, or stderr must be set"));
        }
        Ok(Response::new(ExecResponse { url: self.0.execs.offer(live, request) }))
    }
}

impl Sandbox {
    fn listed(&self) -> PodSandbox {
        let (namespace, name) = self.pod.namespaced_name();
        let (metadata, state) = (&self.pod.metadata, self.ready);
        let mut labels: Labels = metadata.labels.clone().unwrap_or_default().into_iter().collect();
        labels.extend(self.pod_labels());
        PodSandbox {
            id: self.id.clone(),
            metadata: Some(PodSandboxMetadata { name, uid: self.pod.uid_text().to_owned(), namespace, attempt: 0 }),
            state: if state { PodSandboxState::SandboxReady } else { PodSandboxState::SandboxNotready }.into(),
            created_at: nanoseconds(self.created),
            labels,
            annotations: metadata.annotations.clone().unwrap_or_default().into_iter().collect(),
        }
    }

    /// A container's ports, as a kubelet tells them to its runtime.
    fn ports_of(&self, container: &str) -> Labels {
        let spec = self.pod.spec.iter();
        let mut all = spec.flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
        let ports = all.find(|spec| spec.name == container).and_then(|spec| spec.ports.as_ref());
        ports.map(|ports| (PORTS.to_owned(), json!(ports).to_string())).into_iter().collect()
    }

    fn pod_labels(&self) -> Labels {
        let (namespace, name) = self.pod.namespaced_name();
        let values = [
            (labels::POD_NAME, name),
            (labels::POD_NAMESPACE, namespace),
            (labels::POD_UID, self.pod.uid_text().to_owned()),
        ];
        values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

impl Live {
    fn state(&self) -> ContainerState {
        match self.container.running.exit() {
            None => ContainerState::ContainerRunning,
            Some(_) => ContainerState::ContainerExited,
        }
    }

    fn listed(&self, sandbox: &Sandbox) -> Container {
        let name = self.status.name.clone();
        let mut labels = sandbox.pod_labels();
        labels.insert(labels::CONTAINER_NAME.to_owned(), name.clone());
        Container {
            id: self.container.id.clone(),
            pod_sandbox_id: sandbox.id.clone(),
            metadata: Some(ContainerMetadata { name, attempt: self.status.restart_count.unsigned_abs() }),
            image: Some(ImageSpec { image: self.status.image.clone() }),
            image_ref: self.status.image_id.clone(),
            state: self.state().into(),
            created_at: nanoseconds(self.container.running.started),
            labels,
            annotations: sandbox.ports_of(&self.status.name),
        }
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(0)
}

fn has_labels(labels: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn selects_sandbox(filter: &PodSandboxFilter, sandbox: &PodSandbox) -> bool {
    let PodSandboxFilter { id, state, label_selector } = filter;
    (id.is_empty() || *id == sandbox.id)
        && state.as_ref().is_none_or(|wanted| wanted.state == sandbox.state)
        && has_labels(&sandbox.labels, label_selector)
}

fn selects_container(filter: &ContainerFilter, container: &Container) -> bool {
    let ContainerFilter { id, state, pod_sandbox_id, label_selector } = filter;
    (id.is_empty() || *id == container.id)
        && (pod_sandbox_id.is_empty() || *pod_sandbox_id == container.pod_sandbox_id)
        && state.as_ref().is_none_or(|wanted| wanted.state == container.state)
        && has_labels(&container.labels, label_selector)
}
