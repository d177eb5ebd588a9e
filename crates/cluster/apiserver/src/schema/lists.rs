//! How the lists and maps of built-in kinds are merged and owned: what the generated schemas leave out.
//!
//! The truth is the OpenAPI of Kubernetes 1.35 (`x-kubernetes-list-type`, `-list-map-keys`, `-patch-strategy`,
//! `-patch-merge-key`, `-map-type`), for the kinds in [`super::builtin`]. A list that is not here is atomic and
//! replaced, a map that is not here is granular and merged: the defaults of [`Schema`].

use serde_json::Value;

use super::{ListType, PatchStrategy, Schema};

/// What stands in Kubernetes' types beside one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mark {
    /// A list owned by these keys, and merged by the first of them in a strategic patch.
    Keyed(&'static [&'static str]),
    /// The same, and an item of a patch may name the keys that remain (`retainKeys`).
    KeyedRetaining(&'static [&'static str]),
    /// A list owned by these keys that a strategic patch replaces.
    OwnedByKey(&'static [&'static str]),
    /// A list owned as a whole that a strategic patch merges.
    MergedByKey(&'static str),
    Set,
    MergedSet,
    /// An object of which a strategic patch may name the keys that remain.
    RetainKeys,
    AtomicMap,
    /// Not atomic here, though its type is.
    GranularMap,
    /// A key of a list that may be left out.
    Default(&'static str),
}

use Mark::{
    AtomicMap, Default, GranularMap, Keyed, KeyedRetaining, MergedByKey, MergedSet, OwnedByKey, RetainKeys, Set,
};

/// Type, field and what holds for it. A type is named by the last three parts of its OpenAPI name.
#[rustfmt::skip]
pub(super) const FIELDS: &[(&str, &str, Mark)] = &[
    ("admissionregistration.v1.MutatingWebhook", "matchConditions", Keyed(&["name"])),
    ("admissionregistration.v1.MutatingWebhookConfiguration", "webhooks", Keyed(&["name"])),
    ("admissionregistration.v1.ValidatingWebhook", "matchConditions", Keyed(&["name"])),
    ("admissionregistration.v1.ValidatingWebhookConfiguration", "webhooks", Keyed(&["name"])),
    ("apiextensions.v1.CustomResourceDefinitionStatus", "conditions", OwnedByKey(&["type"])),
    ("apiextensions.v1.JSONSchemaProps", "x-kubernetes-validations", Keyed(&["rule"])),
    ("apps.v1.DeploymentSpec", "strategy", RetainKeys),
    ("apps.v1.DeploymentStatus", "conditions", Keyed(&["type"])),
    ("apps.v1.ReplicaSetStatus", "conditions", Keyed(&["type"])),
    ("core.v1.Container", "env", Keyed(&["name"])),
    ("core.v1.Container", "ports", Keyed(&["containerPort", "protocol"])),
    ("core.v1.Container", "volumeDevices", Keyed(&["devicePath"])),
    ("core.v1.Container", "volumeMounts", Keyed(&["mountPath"])),
    ("core.v1.ContainerPort", "protocol", Default("TCP")),
    ("core.v1.ContainerStatus", "allocatedResourcesStatus", Keyed(&["name"])),
    ("core.v1.ContainerStatus", "volumeMounts", Keyed(&["mountPath"])),
    ("core.v1.EphemeralContainer", "env", Keyed(&["name"])),
    ("core.v1.EphemeralContainer", "ports", Keyed(&["containerPort", "protocol"])),
    ("core.v1.EphemeralContainer", "volumeDevices", Keyed(&["devicePath"])),
    ("core.v1.EphemeralContainer", "volumeMounts", Keyed(&["mountPath"])),
    ("core.v1.NamespaceStatus", "conditions", Keyed(&["type"])),
    ("core.v1.NodeSpec", "podCIDRs", MergedSet),
    ("core.v1.NodeStatus", "addresses", Keyed(&["type"])),
    ("core.v1.NodeStatus", "conditions", Keyed(&["type"])),
    ("core.v1.PersistentVolumeClaimStatus", "conditions", Keyed(&["type"])),
    ("core.v1.PersistentVolumeSpec", "claimRef", GranularMap),
    ("core.v1.PodSpec", "containers", Keyed(&["name"])),
    ("core.v1.PodSpec", "ephemeralContainers", Keyed(&["name"])),
    ("core.v1.PodSpec", "hostAliases", Keyed(&["ip"])),
    ("core.v1.PodSpec", "imagePullSecrets", Keyed(&["name"])),
    ("core.v1.PodSpec", "initContainers", Keyed(&["name"])),
    ("core.v1.PodSpec", "nodeSelector", AtomicMap),
    ("core.v1.PodSpec", "resourceClaims", KeyedRetaining(&["name"])),
    ("core.v1.PodSpec", "schedulingGates", Keyed(&["name"])),
    ("core.v1.PodSpec", "topologySpreadConstraints", Keyed(&["topologyKey", "whenUnsatisfiable"])),
    ("core.v1.PodSpec", "volumes", KeyedRetaining(&["name"])),
    ("core.v1.PodStatus", "conditions", Keyed(&["type"])),
    ("core.v1.PodStatus", "hostIPs", MergedByKey("ip")),
    ("core.v1.PodStatus", "podIPs", Keyed(&["ip"])),
    ("core.v1.PodStatus", "resourceClaimStatuses", KeyedRetaining(&["name"])),
    ("core.v1.ResourceRequirements", "claims", OwnedByKey(&["name"])),
    ("core.v1.ResourceStatus", "resources", OwnedByKey(&["resourceID"])),
    ("core.v1.ServiceAccount", "secrets", Keyed(&["name"])),
    ("core.v1.ServicePort", "protocol", Default("TCP")),
    ("core.v1.ServiceSpec", "ports", Keyed(&["port", "protocol"])),
    ("core.v1.ServiceSpec", "selector", AtomicMap),
    ("core.v1.ServiceStatus", "conditions", Keyed(&["type"])),
    ("discovery.v1.Endpoint", "addresses", Set),
    ("meta.v1.ObjectMeta", "finalizers", MergedSet),
    ("meta.v1.ObjectMeta", "ownerReferences", Keyed(&["uid"])),
    ("storage.v1.CSIDriverSpec", "volumeLifecycleModes", Set),
    ("storage.v1.CSINodeSpec", "drivers", Keyed(&["name"])),
];

/// Types whose objects are owned and replaced as a whole.
pub(super) const ATOMIC_TYPES: &str = "core.v1.ConfigMapKeySelector core.v1.EndpointAddress core.v1.EndpointPort \
    core.v1.LocalObjectReference core.v1.NodeSelector core.v1.NodeSelectorTerm core.v1.ObjectFieldSelector \
    core.v1.ObjectReference core.v1.ResourceFieldSelector core.v1.SecretKeySelector core.v1.SecretReference \
    core.v1.TopologySelectorTerm core.v1.TypedLocalObjectReference discovery.v1.EndpointPort meta.v1.LabelSelector \
    meta.v1.OwnerReference rbac.v1.RoleRef rbac.v1.Subject";

/// The last three parts of an OpenAPI name: `core.v1.PodSpec` of `io.k8s.api.core.v1.PodSpec`.
pub(super) fn short_name(openapi_name: &str) -> &str {
    match openapi_name.rmatch_indices('.').nth(2) {
        Some((dot, _)) => &openapi_name[dot + 1..],
        None => openapi_name,
    }
}

/// What holds for a field of a type.
pub(super) fn mark(openapi_name: &str, field: &str) -> Option<Mark> {
    let type_name = short_name(openapi_name);
    FIELDS.iter().find(|(of, name, _)| *of == type_name && *name == field).map(|(_, _, mark)| *mark)
}

pub(super) fn is_atomic(openapi_name: &str) -> bool {
    ATOMIC_TYPES.split(' ').any(|name| name == short_name(openapi_name))
}

/// Writes what holds for a field into its schema.
pub(super) fn apply(mark: Mark, schema: &mut Schema) {
    let owned = |keys: &[&str]| ListType::Map(keys.iter().map(|key| (*key).to_owned()).collect());
    let merged = |key: &str, retain_keys| PatchStrategy::Merge { key: Some(key.to_owned()), retain_keys };
    match mark {
        Keyed(keys) => (schema.list, schema.patch) = (owned(keys), merged(keys[0], false)),
        KeyedRetaining(keys) => (schema.list, schema.patch) = (owned(keys), merged(keys[0], true)),
        OwnedByKey(keys) => schema.list = owned(keys),
        MergedByKey(key) => schema.patch = merged(key, false),
        Set => schema.list = ListType::Set,
        MergedSet => {
            schema.list = ListType::Set;
            schema.patch = PatchStrategy::Merge { key: None, retain_keys: false };
        }
        RetainKeys => schema.patch = PatchStrategy::RetainKeys,
        AtomicMap => schema.atomic_map = true,
        GranularMap => schema.atomic_map = false,
        Default(value) => schema.default = Some(Value::from(value)),
    }
}
