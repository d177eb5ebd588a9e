//! Which built-in kind is printed how; and the kinds whose cells are a line each.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, boolean, date, integer, text};
use super::read::{age, flag, list, number, size};
use super::{access, event, network, node, pod, storage, workload};
use crate::object;

/// A built-in kind's columns, and its cells in their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuiltIn {
    pub(super) columns: &'static [BuiltInColumn],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// What the row says of the object beside its cells.
    pub(super) conditions: Option<fn(&Value) -> Option<Value>>,
}

fn plain(columns: &'static [BuiltInColumn], cells: fn(&Value, Timestamp) -> Vec<Value>) -> BuiltIn {
    BuiltIn { columns, cells, conditions: None }
}

pub(super) fn of(group: &str, kind: &str) -> BuiltIn {
    match (group, kind) {
        ("", "Pod") => BuiltIn { columns: pod::COLUMNS, cells: pod::cells, conditions: Some(pod::conditions) },
        ("apps", "Deployment") => plain(workload::DEPLOYMENT, workload::deployment),
        ("apps", "ReplicaSet") => plain(workload::REPLICA_SET, workload::replica_set),
        ("autoscaling", "Scale") => plain(workload::SCALE, workload::scale),
        ("", "Service") => plain(network::SERVICE, network::service),
        ("", "Endpoints") => plain(network::ENDPOINTS, network::endpoints),
        ("discovery.k8s.io", "EndpointSlice") => plain(network::ENDPOINT_SLICE, network::endpoint_slice),
        ("", "Node") => plain(node::COLUMNS, node::cells),
        ("" | "events.k8s.io", "Event") => plain(event::COLUMNS, event::cells),
        ("", "PersistentVolume") => plain(storage::VOLUME, storage::volume),
        ("", "PersistentVolumeClaim") => plain(storage::CLAIM, storage::claim),
        ("storage.k8s.io", "StorageClass") => plain(storage::STORAGE_CLASS, storage::storage_class),
        ("storage.k8s.io", "CSIDriver") => plain(storage::CSI_DRIVER, storage::csi_driver),
        ("storage.k8s.io", "CSINode") => plain(storage::CSI_NODE, storage::csi_node),
        ("storage.k8s.io", "VolumeAttachment") => plain(storage::ATTACHMENT, storage::attachment),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => plain(access::BINDING, access::binding),
        ("", "ConfigMap") => plain(CONFIG_MAP, config_map),
        ("", "Secret") => plain(SECRET, secret),
        ("", "Namespace") => plain(NAMESPACE, namespace),
        ("", "ServiceAccount") => plain(NAME_AND_AGE, name_and_age),
        ("coordination.k8s.io", "Lease") => plain(LEASE, lease),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            plain(WEBHOOKS, webhooks)
        }
        ("scheduling.k8s.io", "PriorityClass") => plain(PRIORITY_CLASS, priority_class),
        // What Kubernetes prints of a kind that it has no columns for: roles and CRDs among them.
        _ => plain(NAME_AND_CREATION, name_and_creation),
    }
}

const CONFIG_MAP: &[BuiltInColumn] = &[NAME, text("Data"), AGE];

fn config_map(map: &Value, now: Timestamp) -> Vec<Value> {
    let keys = size(map, "/data") + size(map, "/binaryData");
    vec![object::name(map).into(), keys.into(), age(map, now).into()]
}

const SECRET: &[BuiltInColumn] = &[NAME, text("Type"), text("Data"), AGE];

fn secret(secret: &Value, now: Timestamp) -> Vec<Value> {
    let (kind, keys) = (object::text(secret, "/type"), size(secret, "/data"));
    vec![object::name(secret).into(), kind.into(), keys.into(), age(secret, now).into()]
}

const NAMESPACE: &[BuiltInColumn] = &[NAME, text("Status"), AGE];

fn namespace(namespace: &Value, now: Timestamp) -> Vec<Value> {
    let phase = object::text(namespace, "/status/phase");
    vec![object::name(namespace).into(), phase.into(), age(namespace, now).into()]
}

const NAME_AND_AGE: &[BuiltInColumn] = &[NAME, AGE];

fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object::name(object).into(), age(object, now).into()]
}

const NAME_AND_CREATION: &[BuiltInColumn] = &[NAME, date("Created At")];

fn name_and_creation(object: &Value, _now: Timestamp) -> Vec<Value> {
    vec![object::name(object).into(), object::text(object, "/metadata/creationTimestamp").into()]
}

const LEASE: &[BuiltInColumn] = &[NAME, text("Holder"), AGE];

fn lease(lease: &Value, now: Timestamp) -> Vec<Value> {
    let holder = object::text(lease, "/spec/holderIdentity");
    vec![object::name(lease).into(), holder.into(), age(lease, now).into()]
}

const WEBHOOKS: &[BuiltInColumn] = &[NAME, integer("Webhooks"), AGE];

fn webhooks(configuration: &Value, now: Timestamp) -> Vec<Value> {
    let webhooks = list(configuration, "/webhooks").len();
    vec![object::name(configuration).into(), webhooks.into(), age(configuration, now).into()]
}

const PRIORITY_CLASS: &[BuiltInColumn] =
    &[NAME, integer("Value"), boolean("Global-Default"), AGE, text("PreemptionPolicy")];

fn priority_class(class: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object::name(class).into(),
        number(class, "/value").into(),
        flag(class, "/globalDefault", false).into(),
        age(class, now).into(),
        object::text(class, "/preemptionPolicy").into(),
    ]
}
