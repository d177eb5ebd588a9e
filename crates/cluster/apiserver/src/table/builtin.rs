//! Which built-in kind is printed with which columns; and the columns of small kinds.

use super::column::{AGE, BuiltInColumn, NAME, boolean, count, integer, made, text};
use super::{access, event, network, node, pod, storage, workload};
use crate::object;

pub(super) fn of(group: &str, kind: &str) -> &'static [BuiltInColumn] {
    match (group, kind) {
        ("", "Pod") => pod::COLUMNS,
        ("apps", "Deployment") => workload::DEPLOYMENT,
        ("apps", "ReplicaSet") => workload::REPLICA_SET,
        ("autoscaling", "Scale") => workload::SCALE,
        ("", "Service") => network::SERVICE,
        ("", "Endpoints") => network::ENDPOINTS,
        ("discovery.k8s.io", "EndpointSlice") => network::ENDPOINT_SLICE,
        ("", "Node") => node::COLUMNS,
        ("" | "events.k8s.io", "Event") => event::COLUMNS,
        ("", "PersistentVolume") => storage::VOLUME,
        ("", "PersistentVolumeClaim") => storage::CLAIM,
        ("storage.k8s.io", "StorageClass") => storage::STORAGE_CLASS,
        ("storage.k8s.io", "CSIDriver") => storage::CSI_DRIVER,
        ("storage.k8s.io", "CSINode") => const { &[NAME, count("Drivers", "/spec/drivers"), AGE] },
        ("storage.k8s.io", "VolumeAttachment") => storage::ATTACHMENT,
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => storage::SNAPSHOT,
        ("snapshot.storage.k8s.io", "VolumeSnapshotContent") => storage::SNAPSHOT_CONTENT,
        ("snapshot.storage.k8s.io", "VolumeSnapshotClass") => storage::SNAPSHOT_CLASS,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => access::BINDING,
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "Secret") => SECRET,
        ("", "Namespace") => const { &[NAME, text("Status", "/status/phase"), AGE] },
        ("", "ServiceAccount") => const { &[NAME, AGE] },
        ("coordination.k8s.io", "Lease") => const { &[NAME, text("Holder", "/spec/holderIdentity"), AGE] },
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            const { &[NAME, count("Webhooks", "/webhooks"), AGE] }
        }
        ("scheduling.k8s.io", "PriorityClass") => PRIORITY_CLASS,
        // What Kubernetes prints of a kind that it has no columns for: roles and CRDs among them.
        _ => const { &[NAME, text("Created At", "/metadata/creationTimestamp").called("date")] },
    }
}

const CONFIG_MAP: &[BuiltInColumn] = &[
    NAME,
    made("Data", |map, _| (object::fields(map, "/data").count() + object::fields(map, "/binaryData").count()).into()),
    AGE,
];

const SECRET: &[BuiltInColumn] = &[NAME, text("Type", "/type"), count("Data", "/data").called("string"), AGE];

const PRIORITY_CLASS: &[BuiltInColumn] = &[
    NAME,
    integer("Value", "/value"),
    boolean("Global-Default", "/globalDefault"),
    AGE,
    text("PreemptionPolicy", "/preemptionPolicy"),
];
