//! The database of the demo: `boathook logbook` under load in a pod, on a claim; and what is asked of it and of its copies.
//!
//! Its pods run this very program, mounted from this machine. Paths are named from where a container starts: that holds
//! where no namespaces are permitted too.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::{
    Api, Client,
    api::{AttachParams, LogParams},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::objects::{create, is_over, is_running, of, reached};

/// The pod, its container, and the template of its hooks.
pub(super) const NAME: &str = "logbook";

/// The claim that it writes in.
pub(super) const CLAIM: &str = "data";

/// The notifier that its author declared.
pub(super) const NOTIFIER: &str = "status";

/// Records a second.
const PACE: &str = "100";

/// How many there are before anything is done to it.
const FIRST_RECORDS: u64 = 100;

/// More than it ever answers.
const CAP: u64 = 1 << 16;

/// How long the database may take to answer a command. The defaults are too short on a busy machine.
const ANSWER_SECONDS: u32 = 60;

/// Freezes it, in its container.
pub(super) fn freeze() -> Value {
    hook_action("freeze")
}

/// Thaws it.
pub(super) fn thaw() -> Value {
    hook_action("thaw")
}

fn hook_action(request: &str) -> Value {
    let mut action = command(request);
    action["actionTimeoutSeconds"] = ANSWER_SECONDS.into();
    action
}

fn command(request: &str) -> Value {
    json!({"exec": {"command": ["./boathook", "logbook", request, CLAIM]}})
}

/// As it says of itself.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) frozen: bool,
    pub(super) records: u64,
}

/// What a restored copy is like.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Report {
    /// Those that are whole.
    pub(super) records: u64,
    pub(super) torn: bool,
    pub(super) problems: Vec<Problem>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Problem {
    pub(super) file: String,
    pub(super) what: String,
}

/// Starts it, and returns when it has written a good deal.
pub(super) async fn start(client: &Client) -> Result<Status> {
    create::<PersistentVolumeClaim>(client, claim(CLAIM, None)).await?;
    let mut pod = pod(NAME, CLAIM, &["serve", CLAIM, "--pace", PACE])?;
    let handler = command("status");
    let notifiers = format!("- name: {NOTIFIER}\n  handler: {handler}\n  timeoutSeconds: {ANSWER_SECONDS}\n");
    pod["metadata"]["annotations"] = json!({format!("{}{NAME}", boathook_api::words::NOTIFIERS_PREFIX): notifiers});
    create::<Pod>(client, pod).await?;
    reached::<Pod>(client, NAME, is_running).await?;
    writes_after(client, FIRST_RECORDS).await
}

/// Waits until it has written more than this many records.
pub(super) async fn writes_after(client: &Client, records: u64) -> Result<Status> {
    loop {
        // Between the container's start and its answering it may refuse.
        if let Ok(status) = status(client).await
            && status.records > records
        {
            return Ok(status);
        }
        tokio::time::sleep(super::LOOK_AGAIN).await;
    }
}

pub(super) async fn status(client: &Client) -> Result<Status> {
    let command = ["./boathook", "logbook", "status", CLAIM, "-o", "json"];
    let pods: Api<Pod> = of(client);
    let mut exec = pods.exec(NAME, command, &AttachParams::default()).await.context("failed to ask the database")?;
    let mut said = String::new();
    let stdout = exec.stdout().context("the exec has no output")?;
    stdout.take(CAP).read_to_string(&mut said).await.context("failed to read the database's answer")?;
    serde_json::from_str(&said).with_context(|| format!("the database answered `{said}`"))
}

/// How many records there were when it was frozen last, by its own log.
pub(super) async fn frozen_at(client: &Client) -> Result<u64> {
    let pods: Api<Pod> = of(client);
    let log = pods.logs(NAME, &LogParams::default()).await.context("failed to read the database's log")?;
    let frozen = log.lines().rev().find(|line| line.starts_with("frozen: "));
    let records = frozen.and_then(|line| line.strip_suffix(" records")?.rsplit(' ').next()?.parse().ok());
    records.context("the database's log does not say that it was frozen")
}

/// Restores a snapshot into a claim of the same name, and reads the copy in a pod of the same name.
pub(super) async fn verify_restored(client: &Client, snapshot: &str) -> Result<Report> {
    create::<PersistentVolumeClaim>(client, claim(snapshot, Some(snapshot))).await?;
    create::<Pod>(client, pod(snapshot, snapshot, &["verify", snapshot, "-o", "json"])?).await?;
    reached::<Pod>(client, snapshot, is_over).await?;
    let pods: Api<Pod> = of(client);
    let said = pods.logs(snapshot, &LogParams::default()).await.context("failed to read the verifier's log")?;
    let report: Report = serde_json::from_str(&said).with_context(|| format!("the verifier said `{said}`"))?;
    let phase = pods.get_status(snapshot).await?.status.and_then(|status| status.phase).unwrap_or_default();
    match (phase.as_str(), report.torn) {
        ("Succeeded", false) | ("Failed", true) => Ok(report),
        _ => bail!("the verifier is {phase}, and said `{said}`"),
    }
}

fn claim(name: &str, snapshot: Option<&str>) -> Value {
    let group = "snapshot.storage.k8s.io";
    let source = snapshot.map(|name| json!({"apiGroup": group, "kind": "VolumeSnapshot", "name": name}));
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "64Mi"}},
            "dataSource": source,
        },
    })
}

/// A pod that runs `boathook logbook` once, with the claim at `/CLAIM`.
fn pod(name: &str, claim: &str, arguments: &[&str]) -> Result<Value> {
    let program = std::env::current_exe().context("failed to find this program")?;
    ensure!(program.is_file(), "`{}` is gone: build it again", program.display());
    let command = [&["./boathook", "logbook"], arguments].concat();
    Ok(json!({
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            // The first process of a container that waits for no signals hears none.
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "containers": [{
                "name": NAME,
                "image": "host",
                "command": command,
                "volumeMounts": [
                    {"name": "data", "mountPath": format!("/{claim}")},
                    {"name": "program", "mountPath": "/boathook"},
                ],
            }],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": claim}},
                {"name": "program", "hostPath": {"path": program, "type": "File"}},
            ],
        },
    }))
}
