//! A few pods that declare notifiers, and the program that tells them.

use std::process::Output;

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Cluster, DEADLINE};

/// What the pods here declare for their container `main`: with more time than the default of a second, which on a busy
/// machine is soon over.
pub(super) const MAIN: &str = "
- name: reload
  handler: {exec: {command: [echo, reloaded]}}
  timeoutSeconds: 100
- name: check
  handler: {exec: {command: [sh, -c, 'echo one; echo two; exit 3']}}
  timeoutSeconds: 100
- name: doze
  handler: {exec: {command: [sleep, '1']}}
  timeoutSeconds: 100
- name: sleep
  handler: {exec: {command: [sleep, '100']}}
  timeoutSeconds: 200
";

pub(super) const LOG: &str = "[{name: reload, handler: {exec: {command: ['true']}}, timeoutSeconds: 100}]";

impl Cluster {
    /// The program, speaking to this cluster.
    pub(super) fn boathook(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boathook"));
        command.args(line.split_whitespace()).env("KUBECONFIG", self.kubeconfig()).env("TERM", "xterm");
        command.env_remove("NO_COLOR").kill_on_drop(true);
        command
    }

    /// Runs it to its end, in pipes.
    pub(super) async fn run(&self, line: &str) -> (Option<i32>, String, String) {
        said(tokio::time::timeout(DEADLINE, self.boathook(line).output()).await.expect("it does not end").unwrap())
    }
}

pub(super) fn said(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Creates a pod and waits until it runs. Without notifiers it declares none.
pub(super) async fn pod(client: &Client, name: &str, notifiers: &[(&str, &str)]) {
    let annotations: serde_json::Map<_, _> = notifiers
        .iter()
        .map(|(container, text)| (format!("notifiers.boathook.dev/{container}"), Value::from(*text)))
        .collect();
    let container = |name: &str| json!({"name": name, "image": "host", "command": ["sleep", "86425"]});
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [container("main"), container("log")], "terminationGracePeriodSeconds": 0},
    }));
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod.unwrap()).await.unwrap();
    let is_ready = |pod: Option<&Pod>| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
    };
    let waiting = await_condition(pods, name, is_ready);
    tokio::time::timeout(DEADLINE, waiting).await.expect("the pod does not run").unwrap();
}

/// A cluster with two pods that declare and one that does not.
pub(super) async fn fleet(name: &str) -> (Cluster, Client) {
    let mut cluster = Cluster::new(name);
    cluster.up();
    let client = cluster.client().await;
    for name in ["web-0", "web-1"] {
        pod(&client, name, &[("main", MAIN), ("log", LOG)]).await;
    }
    pod(&client, "plain", &[]).await;
    (cluster, client)
}
