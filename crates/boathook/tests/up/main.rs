//! `boathook up` as a person runs it: started, used, ended, started again, killed; and the commands that speak to it.

// All of it is a test: an unwrap that fails is the test's failure.
#![allow(clippy::unwrap_used)]

mod agent;
mod cri;
mod database;
mod demo;
mod drill;
mod fleet;
mod hooks;
mod in_cluster;
mod looking;
mod notifiers;
mod notify;
mod person;
mod plan;
mod restart;
mod rollout;
mod snapshot;
mod terminal;
mod thaw;
mod timeline;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Config};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// Far more than anything here takes, on a machine that compiles on all cores meanwhile. A wait ends as soon as it is met.
const DEADLINE: Duration = Duration::from_secs(600);

/// A cluster in a folder of its own, which goes with the test.
struct Cluster {
    dir: PathBuf,
    process: Option<Child>,
}

impl Cluster {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("boathook-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self { dir, process: None }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boathook"));
        command.arg("up").arg("--data-dir").arg(&self.dir);
        command
    }

    /// Starts it, and returns when it says that it serves.
    fn up(&mut self) {
        self.up_with(&[]);
    }

    fn up_with(&mut self, options: &[&str]) {
        let log = fs::File::options().create(true).append(true).open(self.log()).unwrap();
        let mut child = self.command().args(options).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.process = Some(child);
        assert_eq!(line, format!("ready: export KUBECONFIG={}\n", self.kubeconfig().display()));
    }

    /// What it wrote on stderr. Several clusters run at once: it is shown with the failure of its test.
    fn log(&self) -> PathBuf {
        self.dir.join("stderr.log")
    }

    fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    /// Ends it by a signal, and returns its exit code.
    fn end(&mut self, signal: Signal) -> Option<i32> {
        let mut process = self.process.take().unwrap();
        kill_process(Pid::from_child(&process), signal).unwrap();
        process.wait().unwrap().code()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- stderr of `boathook up`\n{}", fs::read_to_string(self.log()).unwrap_or_default());
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Seconds to sleep that no other test and no other run on this machine uses: they identify a pod's process in `/proc`.
fn own_seconds() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}{count:03}", 1_000_000 + std::process::id())
}

/// A pod whose process is known by the number that it sleeps for.
fn sleeper(seconds: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "sleeper"},
        "spec": {"containers": [{"name": "main", "image": "host", "command": ["sleep", seconds]}]},
    }))
    .unwrap()
}

async fn running(client: &Client) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let is_running = |pod: Option<&Pod>| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        statuses.is_some_and(|all| all.iter().any(|status| status.state.as_ref().is_some_and(|s| s.running.is_some())))
    };
    let waiting = await_condition(pods, "sleeper", is_running);
    tokio::time::timeout(DEADLINE, waiting).await.expect("the pod does not run").unwrap();
}

fn sleeps(seconds: &str) -> bool {
    let wanted = format!("sleep\0{seconds}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok()).any(|line| line == wanted)
}

fn assert_ends(seconds: &str) {
    looking::block_until("the pod's process ends", || !sleeps(seconds));
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "a cluster that does not serve says that it is ready");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn a_cluster_that_is_started_again_has_what_it_had_and_its_pods_run_again() {
    let mut cluster = Cluster::new("again");
    cluster.up();
    let mode = fs::metadata(cluster.kubeconfig()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others may read the token");
    let client = cluster.client().await;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "kept"}, "data": {"a": "b"}})).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps.create(&PostParams::default(), &map).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let seconds = own_seconds();
    pods.create(&PostParams::default(), &sleeper(&seconds)).await.unwrap();
    running(&client).await;
    assert!(sleeps(&seconds));
    assert_eq!(cluster.end(Signal::TERM), Some(0));
    assert_ends(&seconds);

    cluster.up();
    let client = cluster.client().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert_eq!(maps.get("kept").await.unwrap(), made);
    looking::until("the pod runs again", async || sleeps(&seconds)).await;
    assert_eq!(cluster.end(Signal::INT), Some(0));
    assert_ends(&seconds);
}

#[tokio::test]
async fn a_cluster_that_is_killed_takes_its_pods_along() {
    let mut cluster = Cluster::new("killed");
    cluster.up();
    let client = cluster.client().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let seconds = own_seconds();
    pods.create(&PostParams::default(), &sleeper(&seconds)).await.unwrap();
    running(&client).await;
    assert!(sleeps(&seconds));
    assert_eq!(cluster.end(Signal::KILL), None);
    assert_ends(&seconds);
}

#[test]
fn a_directory_in_use_is_refused() {
    let mut cluster = Cluster::new("twice");
    cluster.up();
    let said = refused(&cluster.command().output().unwrap());
    assert!(said.contains("in use") && said.contains(&cluster.dir.display().to_string()), "{said}");
    assert_eq!(cluster.end(Signal::TERM), Some(0));
}

#[test]
fn a_foreign_data_file_is_refused_and_left_as_it_is() {
    let cluster = Cluster::new("foreign");
    let file: &Path = &cluster.dir.join("store/objects.redb");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "somebody's letters").unwrap();
    let said = refused(&cluster.command().output().unwrap());
    assert!(said.contains("objects.redb"), "{said}");
    assert_eq!(fs::read_to_string(file).unwrap(), "somebody's letters");
}
