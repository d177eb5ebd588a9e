//! Something to freeze: a pod on a claim, templates that freeze it well and badly, and Jane who may take snapshots.

use std::fs;
use std::path::PathBuf;

use boathook_api::{ExecutionHook, ExecutionHookTemplate};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{ListParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::process::Command;

use super::person::may_take_snapshots;
use super::{Cluster, DEADLINE, looking};

pub(super) struct Database {
    pub(super) cluster: Cluster,
    pub(super) client: Client,
    jane: PathBuf,
}

/// A template: what freezes, what thaws. All of it has far more time than it takes.
pub(super) fn template(name: &str, freeze: &str, thaw: &str) -> Value {
    let action = |line: &str| json!({"exec": {"command": ["sh", "-c", line]}, "actionTimeoutSeconds": 100});
    json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHookTemplate", "metadata": {"name": name},
        "spec": {"preAction": action(freeze), "postAction": action(thaw), "expirationSeconds": 1000}})
}

impl Database {
    /// The templates are `files` and `more`, which work; `slow`, which takes its time to freeze; `broken`, which does not
    /// freeze; and `stuck`, which does not thaw.
    pub(super) async fn start(name: &str) -> Self {
        Self::start_with(name, &[]).await
    }

    /// The same, of a cluster that is started with these options.
    pub(super) async fn start_with(name: &str, options: &[&str]) -> Self {
        let mut cluster = Cluster::new(name);
        cluster.up_with(options);
        let client = cluster.client().await;
        let jane = cluster.person(&client, "jane").await;
        may_take_snapshots(&client, "jane").await;
        let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Mi"}}}});
        create::<PersistentVolumeClaim>(&client, claim).await;
        let container = json!({"name": "main", "image": "host", "command": ["sleep", "86426"],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
        let pod = json!({"metadata": {"name": "db", "labels": {"app": "db"}}, "spec":
            {"containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 0}});
        create::<Pod>(&client, pod).await;
        for template in [
            template("files", "touch data/frozen", "rm -f data/frozen"),
            template("more", "touch data/frozen-too", "rm -f data/frozen-too"),
            template("slow", "sleep 1", "true"),
            template("broken", "echo no disk; exit 3", "rm -f data/frozen"),
            template("stuck", "touch data/frozen", "echo locked; exit 4"),
        ] {
            let mut template = template;
            if template["metadata"]["name"] == "broken" {
                // It is tried again until then.
                template["spec"]["preAction"]["actionTimeoutSeconds"] = json!(1);
            }
            if template["metadata"]["name"] == "stuck" {
                template["spec"]["postAction"]["actionTimeoutSeconds"] = json!(1);
            }
            create::<ExecutionHookTemplate>(&client, template).await;
        }
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let runs = |pod: Option<&Pod>| pod.is_some_and(is_running);
        let waiting = await_condition(pods, "db", runs);
        tokio::time::timeout(DEADLINE, waiting).await.expect("the pod does not run").unwrap();
        Self { cluster, client, jane }
    }

    /// The program, as Jane runs it.
    pub(super) fn janes(&self, line: &str) -> Command {
        let mut command = self.cluster.boathook(line);
        command.arg("--kubeconfig").arg(&self.jane);
        command
    }

    pub(super) async fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let output = self.janes(line).output();
        super::fleet::said(tokio::time::timeout(DEADLINE, output).await.expect("it does not end").unwrap())
    }

    /// A file with these documents.
    pub(super) fn file(&self, documents: &str) -> String {
        let file = self.cluster.dir.join("file.yaml");
        fs::write(&file, documents).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// A hook of this template on the database, and waits until it is frozen.
    pub(super) async fn frozen(&self, name: &str, template: &str) {
        self.begin(name, template).await;
        self.reaches(name, "Frozen").await;
    }

    /// The same, and waits for nothing.
    pub(super) async fn begin(&self, name: &str, template: &str) {
        let spec = json!({"executionHookTemplateName": template, "podSelector": {"matchLabels": {"app": "db"}}});
        create::<ExecutionHook>(
            &self.client,
            json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook",
            "metadata": {"name": name}, "spec": spec}),
        )
        .await;
    }

    /// Whether the claim's volume has a file of this name.
    pub(super) fn is_on_the_volume(&self, file: &str) -> bool {
        let volumes = fs::read_dir(self.cluster.dir.join("volumes/volumes")).unwrap();
        volumes.flatten().any(|volume| volume.path().join(file).exists())
    }

    /// Waits until this is true of the hook.
    pub(super) async fn reaches(&self, name: &str, condition: &str) {
        let hooks: Api<ExecutionHook> = Api::default_namespaced(self.client.clone());
        let is_so = |hook: Option<&ExecutionHook>| {
            let conditions = hook.and_then(|hook| Some(&hook.status.as_ref()?.conditions));
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == condition && one.status == "True"))
        };
        let waiting = await_condition(hooks, name, is_so);
        tokio::time::timeout(DEADLINE, waiting).await.expect("it does not come to that").unwrap();
    }

    /// Waits until the controller has let go of every hook.
    pub(super) async fn is_without_hooks(&self) {
        looking::until("no hook is left", async || self.hooks().await.is_empty()).await;
    }

    pub(super) async fn hooks(&self) -> Vec<String> {
        let hooks: Api<ExecutionHook> = Api::default_namespaced(self.client.clone());
        hooks.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    }
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

pub(super) async fn create<K>(client: &Client, object: Value)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object).unwrap();
    Api::<K>::default_namespaced(client.clone()).create(&PostParams::default(), &object).await.unwrap();
}
