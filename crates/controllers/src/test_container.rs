//! For tests: a container in this process. It keeps the commands that were run in it, and ends each when told to.

use std::sync::{Arc, Mutex};

use boathook_apiserver::{
    sessions::{Command, LogRange, Opening, Session, Sessions},
    status::Status,
};
use futures::{FutureExt, stream::BoxStream};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::webhooks::test_asks::{client_with_containers, webhooks_answered};

/// The name of a command that runs until [`Container::end_freeze`]; all others end at once, with 0.
pub(crate) const FREEZE: &str = "freeze";

pub(crate) struct Container {
    /// The first word of each command, in the order of their beginning.
    commands: Mutex<Vec<String>>,
    freeze_ends: watch::Sender<bool>,
    begun: watch::Sender<usize>,
}

impl Container {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            commands: Mutex::default(),
            freeze_ends: watch::Sender::new(false),
            begun: watch::Sender::new(0),
        })
    }

    pub(crate) fn commands(&self) -> Vec<String> {
        self.commands.lock().unwrap().clone()
    }

    pub(crate) fn end_freeze(&self) {
        self.freeze_ends.send_replace(true);
    }

    /// Waits until so many commands have begun.
    pub(crate) async fn begun(&self, count: usize) {
        self.begun.subscribe().wait_for(|begun| *begun >= count).await.unwrap();
    }
}

impl Sessions for Container {
    fn open(&self, _pod: &Value, _container: &str, command: Command) -> Opening {
        let program = command.argv[0].clone();
        let mut ends = self.freeze_ends.subscribe();
        let waits = program == FREEZE;
        self.commands.lock().unwrap().push(program);
        self.begun.send_modify(|begun| *begun += 1);
        let exit = async move {
            if waits {
                // The container is gone with the test.
                let _ = ends.wait_for(|ends| *ends).await;
            }
            0
        };
        let stdout = Box::new(tokio::io::empty());
        let session = Session { stdin: None, stdout, stderr: None, resize: None, exit: exit.boxed() };
        std::future::ready(Ok(session)).boxed()
    }

    fn log(&self, _: &Value, _: &str, _: LogRange) -> Result<BoxStream<'static, bytes::Bytes>, Status> {
        Err(Status::bad_request("this container has no log"))
    }
}

/// A cluster with the pod `db-0`, whose author declared the notifiers `freeze` and `thaw`.
pub(crate) async fn cluster_with_pod() -> (Client, Arc<Container>) {
    let container = Container::new();
    let client = client_with_containers(container.clone()).await;
    webhooks_answered(&client).await;
    let new = PostParams::default();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.create(&new, &serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap()).await.unwrap();
    // The default of 1 s is short for a test that decides itself when `freeze` ends.
    let notifiers = "[{name: freeze, timeoutSeconds: 60, handler: {exec: {command: [freeze]}}},
        {name: thaw, timeoutSeconds: 60, handler: {exec: {command: [thaw]}}}]";
    let metadata = json!({"name": "db-0", "annotations": {"notifiers.boathook.dev/main": notifiers}});
    let spec = json!({"nodeName": "node", "containers": [{"name": "main", "image": "db"}]});
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    pods.create(&new, &serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()).await.unwrap();
    let running = json!({"name": "main", "image": "db", "imageID": "", "ready": true, "restartCount": 0,
        "containerID": "test://1", "state": {"running": {}}});
    let running = Patch::Merge(json!({"status": {"phase": "Running", "containerStatuses": [running]}}));
    pods.patch_status("db-0", &PatchParams::default(), &running).await.unwrap();
    (client, container)
}
