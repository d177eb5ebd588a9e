//! This machine as a Node object, and the lease that says that it lives.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

/// The kubelet's version, as the Kubernetes that this cluster stands for.
pub const VERSION: &str = "v1.35.8";
/// Under this name kubeadm tells of a node where its container runtime listens.
const CRI_SOCKET: &str = "kubeadm.alpha.kubernetes.io/cri-socket";
const LEASES: &str = "kube-node-lease";
/// A real kubelet's: renewed every 10 s, good for 40.
const RENEWED: Duration = Duration::from_secs(10);
const GOOD_FOR: i32 = 40;

pub(super) fn memory_in_kib() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|total| total.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn first_line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn os_image() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "Linux".to_owned(), |name| name.trim_matches('"').to_owned())
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn described(name: &str, address: &str) -> serde_json::Value {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let capacity = json!({
        "cpu": cpus.to_string(), "memory": format!("{}Ki", memory_in_kib()), "pods": "110",
        "ephemeral-storage": rustix::fs::statvfs("/").map_or(0, |disk| disk.f_blocks * disk.f_frsize).to_string(),
    });
    let now = Time(Timestamp::now());
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let kernel = rustix::system::uname();
    let machine = first_line("/etc/machine-id");
    json!({
        "capacity": capacity, "allocatable": capacity,
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "nodeInfo": {
            "architecture": architecture(), "operatingSystem": "linux", "osImage": os_image(),
            "kernelVersion": kernel.release().to_string_lossy(), "kubeletVersion": VERSION, "kubeProxyVersion": "",
            "containerRuntimeVersion": concat!("boathook://", env!("CARGO_PKG_VERSION")),
            "bootID": first_line("/proc/sys/kernel/random/boot_id"), "machineID": machine, "systemUUID": machine,
        },
    })
}

/// Makes or refreshes the Node object. `socket` is where its container runtime listens.
pub(super) async fn register(client: &Client, name: &str, address: &str, socket: &Path) -> kube::Result<Node> {
    let nodes: Api<Node> = Api::all(client.clone());
    let labels: BTreeMap<&str, &str> = BTreeMap::from([
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
    ]);
    let annotations = json!({CRI_SOCKET: format!("unix://{}", socket.display())});
    let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
    let wanted = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata});
    let node: Node = serde_json::from_value(wanted.clone()).map_err(kube::Error::SerdeError)?;
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            nodes.patch(name, &PatchParams::default(), &Patch::Merge(wanted)).await?;
        }
        created => {
            created?;
        }
    }
    let status = json!({"status": described(name, address)});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await
}

/// Renews the lease for ever.
pub(super) async fn keep_lease(client: Client, node: Node) {
    let leases: Api<Lease> = Api::namespaced(client, LEASES);
    let name = node.metadata.name.clone().unwrap_or_default();
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid});
    loop {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": LEASES, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": name, "leaseDurationSeconds": GOOD_FOR,
                "renewTime": format!("{:.6}", Timestamp::now()),
            },
        });
        let by_us = PatchParams::apply("kubelet").force();
        if let Err(error) = leases.patch(&name, &by_us, &Patch::Apply(lease)).await {
            tracing::warn!(%error, "the node's lease was not renewed");
        }
        tokio::time::sleep(RENEWED).await;
    }
}
