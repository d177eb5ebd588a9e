//! For tests: a node in this process. Its runtime knows one pod, whose container answers HTTP on loopback.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use boathook_apiserver::{
    access::{Tokens, User},
    api::Api as Server,
    server,
    store::Store,
};
use boathook_cri::*;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tonic::{Request, Response, Status};

const DEADLINE: Duration = Duration::from_secs(600);

/// The UID of the only pod.
pub(crate) const POD: &str = "pod";

/// A folder of the test's own, with the runtime's socket in it. Gone with it.
pub(crate) struct Node {
    pub(crate) dir: PathBuf,
    pub(crate) container: Arc<Container>,
    port: u16,
}

impl Node {
    pub(crate) async fn start(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("boathook-node-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        tokio::spawn(serve(listen(&dir.join("cri.sock")).unwrap(), OnePod));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let container = Arc::new(Container::default());
        tokio::spawn(Arc::clone(&container).answer(listener));
        Self { dir, container, port }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("cri.sock")
    }

    /// The action that the container knows by this name.
    pub(crate) fn action(&self, name: &str) -> Value {
        json!({"httpGet": {"port": self.port, "path": format!("/{name}")}, "timeoutSeconds": 60})
    }
}

/// A second runtime of the same node, in an executor of its own.
pub(crate) struct SecondRuntime {
    pub(crate) socket: PathBuf,
    executor: tokio::runtime::Runtime,
}

impl Node {
    pub(crate) fn second_runtime(&self) -> SecondRuntime {
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let socket = self.dir.join("second.sock");
        let listening = socket.clone();
        executor.spawn(async move { serve(listen(&listening).unwrap(), OnePod).await });
        SecondRuntime { socket, executor }
    }
}

impl SecondRuntime {
    /// Its connections are closed, and nothing listens at its socket.
    pub(crate) fn die(self) {
        self.executor.shutdown_background();
    }

    /// Its connections stay open, and no request is answered.
    pub(crate) fn hang(self) {
        let (hangs, is_stuck) = std::sync::mpsc::channel();
        self.executor.spawn(async move {
            hangs.send(()).unwrap();
            std::thread::park();
        });
        is_stuck.recv().unwrap();
        std::mem::forget(self.executor);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Keeps what was asked of it. `/freeze` is answered after [`Container::end_freeze`], everything else at once.
#[derive(Default)]
pub(crate) struct Container {
    asked: Mutex<Vec<String>>,
    count: watch::Sender<usize>,
    freeze_ends: watch::Sender<bool>,
}

impl Container {
    async fn answer(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(Arc::clone(&self).answer_one(stream));
        }
    }

    async fn answer_one(self: Arc<Self>, mut stream: TcpStream) {
        let mut line = String::new();
        BufReader::new(&mut stream).read_line(&mut line).await.unwrap();
        let path = line.split(' ').nth(1).unwrap_or_default().trim_matches('/').to_owned();
        let waits = path == "freeze";
        self.asked.lock().unwrap().push(path);
        self.count.send_modify(|count| *count += 1);
        if waits {
            self.freeze_ends.subscribe().wait_for(|ends| *ends).await.unwrap();
        }
        // The caller may have stopped waiting for the answer.
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    }

    pub(crate) fn end_freeze(&self) {
        self.freeze_ends.send_replace(true);
    }

    /// Waits until as much was asked: exactly this.
    pub(crate) async fn asked(&self, expected: &[&str]) {
        let mut count = self.count.subscribe();
        let enough = count.wait_for(|count| *count >= expected.len());
        timeout(DEADLINE, enough).await.expect("the container is asked").unwrap();
        assert_eq!(*self.asked.lock().unwrap(), expected);
    }
}

/// A client of an API server of its own, with the kinds of Boathook.
pub(crate) async fn client() -> Client {
    let admin = User::authenticated("admin", &["system:masters"]);
    let tokens = Tokens::new(&[7; 32], [("admin".to_owned(), admin)]);
    let client = server::client(Server::new(Store::in_memory(), tokens).await.unwrap(), "admin", "test");
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in boathook_api::crds::all() {
        crds.create(&PostParams::default(), &crd).await.unwrap();
    }
    client
}

/// A client of an API server where its account has no right of its own.
pub(crate) async fn client_without_rights() -> Client {
    let tokens = Tokens::new(&[7; 32], [("agent".to_owned(), User::authenticated("agent", &[]))]);
    server::client(Server::new(Store::in_memory(), tokens).await.unwrap(), "agent", "test")
}

/// A client of an API server that does not answer.
pub(crate) fn unreachable() -> Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("the API server is down"))
    });
    Client::new(service, "default")
}

/// The names of the files of a folder with this extension.
pub(crate) fn files(dir: &Path, extension: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter(|path| path.extension().unwrap_or_default() == extension);
    named.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

type Answer<T> = Result<Response<T>, Status>;

struct OnePod;

#[tonic::async_trait]
impl RuntimeService for OnePod {
    async fn list_pod_sandbox(&self, asked: Request<ListPodSandboxRequest>) -> Answer<ListPodSandboxResponse> {
        let filter = asked.into_inner().filter.unwrap_or_default();
        let is_known = filter.label_selector.get(labels::POD_UID).is_some_and(|uid| uid == POD);
        let items =
            if is_known { vec![PodSandbox { id: "sandbox".to_owned(), ..PodSandbox::default() }] } else { vec![] };
        Ok(Response::new(ListPodSandboxResponse { items }))
    }

    async fn pod_sandbox_status(&self, _: Request<PodSandboxStatusRequest>) -> Answer<PodSandboxStatusResponse> {
        let network = Some(PodSandboxNetworkStatus { ip: "127.0.0.1".to_owned() });
        let status = Some(PodSandboxStatus { network, ..PodSandboxStatus::default() });
        Ok(Response::new(PodSandboxStatusResponse { status, ..PodSandboxStatusResponse::default() }))
    }

    async fn list_containers(&self, _: Request<ListContainersRequest>) -> Answer<ListContainersResponse> {
        let metadata = Some(ContainerMetadata { name: "main".to_owned(), attempt: 0 });
        let state = ContainerState::ContainerRunning.into();
        let main = boathook_cri::Container { id: "1".to_owned(), metadata, state, ..Default::default() };
        Ok(Response::new(ListContainersResponse { containers: vec![main] }))
    }

    async fn version(&self, _: Request<VersionRequest>) -> Answer<VersionResponse> {
        Ok(Response::new(VersionResponse { runtime_name: "test".to_owned(), ..VersionResponse::default() }))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Answer<StatusResponse> {
        Err(Status::unimplemented(""))
    }

    async fn container_status(&self, _: Request<ContainerStatusRequest>) -> Answer<ContainerStatusResponse> {
        Err(Status::unimplemented(""))
    }

    async fn exec_sync(&self, _: Request<ExecSyncRequest>) -> Answer<ExecSyncResponse> {
        Err(Status::unimplemented(""))
    }

    async fn exec(&self, _: Request<ExecRequest>) -> Answer<ExecResponse> {
        Err(Status::unimplemented(""))
    }
}
