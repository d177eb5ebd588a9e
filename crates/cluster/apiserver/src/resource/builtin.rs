//! The table of built-in kinds. Kind names appear here and nowhere else in the API server, but for the kinds that the
//! server itself acts upon.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ALL_VERBS, Behaviour, CUSTOM_VERBS, Conversion, NameRule, Resource, Review, STATUS_VERBS, ScalePaths};
use crate::definitions;
use crate::discovery::{Served, Subresource};
use crate::schema;
use crate::selector::SelectableFields;
use crate::strategy::{self, claim, data, deployment, event, not_honoured, pod, rbac, service, webhooks};
use crate::table::Printer;

/// One row: names, place, and the behaviour that the schema does not say.
struct Row {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    namespaced: bool,
    has_status: bool,
    behaviour: Behaviour,
    review: Option<Review>,
}

const PLAIN: Behaviour = Behaviour {
    default: strategy::nothing_to_default,
    begin: strategy::nothing_to_default,
    validate: strategy::nothing_to_validate,
    validate_new: strategy::nothing_to_validate,
    not_honoured: strategy::nothing_to_tell,
    changes: strategy::may_change,
    immutable: &[],
    status_keeps: &[],
    name: NameRule::Subdomain,
    generation: false,
    annotations_count: false,
    gets_address: false,
    has_account: false,
    needs_version: false,
    graceful: false,
    core: None,
};
pub(super) const COUNTED: Behaviour = Behaviour { generation: true, ..PLAIN };

const fn row(group: &'static str, kind: &'static str, plural: &'static str, short: &'static [&'static str]) -> Row {
    Row { group, kind, plural, short, namespaced: true, has_status: false, behaviour: PLAIN, review: None }
}

impl Row {
    const fn cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }

    const fn status(mut self) -> Self {
        self.has_status = true;
        self
    }

    const fn asks(mut self, review: Review) -> Self {
        self.review = Some(review);
        self
    }

    const fn acts(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }
}

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

const SEGMENT: Behaviour = Behaviour { name: NameRule::Segment, ..PLAIN };
const WEBHOOKS: Behaviour = Behaviour { default: webhooks::default, validate: webhooks::validate, ..COUNTED };
const ROLE: Behaviour = Behaviour { default: rbac::default_role, validate: rbac::validate_role, ..SEGMENT };
const BINDING: Behaviour =
    Behaviour { default: rbac::default_binding, validate: rbac::validate_binding, immutable: &["/roleRef"], ..SEGMENT };

const ROWS: &[Row] = &[
    row("", "ConfigMap", "configmaps", &["cm"]).acts(Behaviour {
        validate: data::validate,
        changes: data::changes,
        ..PLAIN
    }),
    row("", "Endpoints", "endpoints", &["ep"]),
    row("", "Event", "events", &["ev"]).acts(Behaviour { validate: event::validate, ..SEGMENT }),
    row("", "Namespace", "namespaces", &["ns"]).cluster().status().acts(Behaviour {
        name: NameRule::Label,
        default: strategy::namespace,
        begin: strategy::begin_namespace,
        ..PLAIN
    }),
    row("", "Node", "nodes", &["no"]).cluster().status(),
    row("", "PersistentVolume", "persistentvolumes", &["pv"]).cluster().status().acts(Behaviour {
        default: claim::default_volume,
        begin: claim::begin_volume,
        ..PLAIN
    }),
    row("", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"]).status().acts(Behaviour {
        default: claim::default,
        begin: claim::begin,
        changes: claim::changes,
        validate: claim::validate,
        ..PLAIN
    }),
    row("", "Pod", "pods", &["po"]).status().acts(Behaviour {
        default: pod::default,
        begin: pod::begin,
        changes: pod::changes,
        validate: pod::validate,
        status_keeps: &["ownerReferences"],
        not_honoured: not_honoured::of_pod,
        has_account: true,
        graceful: true,
        ..COUNTED
    }),
    row("", "Secret", "secrets", &[]).acts(Behaviour {
        default: strategy::secret,
        validate: data::validate,
        changes: data::changes,
        immutable: &["/type"],
        ..PLAIN
    }),
    row("", "Service", "services", &["svc"]).status().acts(Behaviour {
        name: NameRule::LetterLabel,
        default: service::default,
        begin: service::begin,
        changes: service::changes,
        validate: service::validate,
        gets_address: true,
        ..PLAIN
    }),
    row("", "ServiceAccount", "serviceaccounts", &["sa"]),
    row("apps", "Deployment", "deployments", &["deploy"]).status().acts(Behaviour {
        default: deployment::default,
        validate: deployment::validate,
        not_honoured: not_honoured::of_template,
        immutable: &["/spec/selector"],
        status_keeps: &["labels"],
        annotations_count: true,
        ..COUNTED
    }),
    row("apps", "ReplicaSet", "replicasets", &["rs"]).status().acts(Behaviour {
        default: deployment::default_replica_set,
        validate: deployment::validate_replica_set,
        not_honoured: not_honoured::of_template,
        immutable: &["/spec/selector"],
        ..COUNTED
    }),
    row(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", &[]).cluster().acts(WEBHOOKS),
    row(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", &[]).cluster().acts(WEBHOOKS),
    row(EXTENSIONS, "CustomResourceDefinition", "customresourcedefinitions", &["crd", "crds"]).cluster().status().acts(
        Behaviour {
            default: crate::crd::default_crd,
            validate: definitions::validate,
            immutable: &["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"],
            ..COUNTED
        },
    ),
    row(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", &[]).cluster().asks(Review::SelfSubject),
    row(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews", &[])
        .cluster()
        .asks(Review::SelfSubjectAccess),
    row(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews", &[])
        .cluster()
        .asks(Review::SelfSubjectRules),
    row(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews", &[]).cluster().asks(Review::SubjectAccess),
    row("coordination.k8s.io", "Lease", "leases", &[]).acts(Behaviour {
        validate: strategy::validate_lease,
        needs_version: true,
        ..PLAIN
    }),
    row("discovery.k8s.io", "EndpointSlice", "endpointslices", &[]).acts(COUNTED),
    row("events.k8s.io", "Event", "events", &["ev"]).acts(Behaviour {
        validate: event::validate_newer,
        validate_new: event::validate_new_newer,
        changes: event::changes_newer,
        core: Some(Conversion { to: event::to_core, from: event::from_core }),
        ..PLAIN
    }),
    row(RBAC, "ClusterRole", "clusterroles", &[]).cluster().acts(ROLE),
    row(RBAC, "ClusterRoleBinding", "clusterrolebindings", &[]).cluster().acts(BINDING),
    row(RBAC, "Role", "roles", &[]).acts(ROLE),
    row(RBAC, "RoleBinding", "rolebindings", &[]).acts(BINDING),
    row("scheduling.k8s.io", "PriorityClass", "priorityclasses", &["pc"]).cluster(),
    row(SNAPSHOTS, "VolumeSnapshot", "volumesnapshots", &["vs"]).status().acts(COUNTED),
    row(SNAPSHOTS, "VolumeSnapshotClass", "volumesnapshotclasses", &["vsclass", "vsclasses"]).cluster().acts(COUNTED),
    row(SNAPSHOTS, "VolumeSnapshotContent", "volumesnapshotcontents", &["vsc", "vscs"])
        .cluster()
        .status()
        .acts(COUNTED),
    row(STORAGE, "CSIDriver", "csidrivers", &[]).cluster(),
    row(STORAGE, "CSINode", "csinodes", &[]).cluster(),
    row(STORAGE, "StorageClass", "storageclasses", &["sc"]).cluster().acts(Behaviour {
        default: claim::default_class,
        immutable: &["/provisioner", "/parameters", "/reclaimPolicy", "/volumeBindingMode"],
        ..PLAIN
    }),
    row(STORAGE, "VolumeAttachment", "volumeattachments", &[]).cluster().status(),
];

/// Every built-in kind is served as `v1` alone.
pub(super) fn all() -> Vec<Resource> {
    ROWS.iter().map(resource).collect()
}

fn resource(row: &Row) -> Resource {
    let scales = matches!(row.plural, "deployments" | "replicasets");
    let in_all = matches!(row.plural, "pods" | "services" | "deployments" | "replicasets");
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let served = Served {
        group: row.group.to_owned(),
        version: "v1".to_owned(),
        kind: row.kind.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: owned(row.short),
        categories: owned(match row.group {
            _ if in_all => &["all"],
            ADMISSION | EXTENSIONS => &["api-extensions"],
            _ => &[],
        }),
        namespaced: row.namespaced,
        verbs: match row.plural {
            _ if row.review.is_some() => vec!["create"],
            _ if row.group == SNAPSHOTS => CUSTOM_VERBS.to_vec(),
            "namespaces" => ALL_VERBS.into_iter().filter(|verb| *verb != "deletecollection").collect(),
            _ => ALL_VERBS.to_vec(),
        },
        subresources: subresources(row, scales),
        // Kubernetes serves these from a CRD.
        custom: row.group == SNAPSHOTS,
        schema: schema::builtin(row.group, "v1", row.kind).unwrap_or_default(),
    };
    Resource {
        served: Arc::new(served),
        has_status: row.has_status,
        scale: scales.then(|| ScalePaths {
            replicas: "/spec/replicas".to_owned(),
            status_replicas: "/status/replicas".to_owned(),
            selector: Some("/spec/selector".to_owned()),
        }),
        behaviour: row.behaviour,
        printer: Printer::of_builtin(row.group, row.kind),
        blank: blank(row),
        selectable: SelectableFields::of_builtin(row.group, row.kind),
        custom: None,
        storage: None,
        review: row.review,
    }
}

/// A new object as Kubernetes' own type has it before anything is set: nobody owns what is always there.
fn blank(row: &Row) -> Value {
    match row.plural {
        "deployments" => json!({
            "spec": {"selector": null, "template": {"metadata": {}, "spec": {"containers": null}}, "strategy": {}},
            "status": {},
        }),
        "replicasets" => json!({
            "spec": {"selector": null, "template": {"metadata": {}, "spec": {"containers": null}}},
            "status": {"replicas": 0},
        }),
        "pods" => json!({"spec": {"containers": null}, "status": {}}),
        "services" => json!({"spec": {}, "status": {"loadBalancer": {}}}),
        "persistentvolumeclaims" => json!({"spec": {"resources": {}}, "status": {}}),
        "persistentvolumes" | "namespaces" => json!({"spec": {}, "status": {}}),
        "leases" | "csidrivers" => json!({"spec": {}}),
        "customresourcedefinitions" => json!({
            "spec": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null},
            "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null},
        }),
        "selfsubjectaccessreviews" | "subjectaccessreviews" => json!({"spec": {}, "status": {"allowed": false}}),
        "roles" | "clusterroles" => json!({"rules": null}),
        "rolebindings" | "clusterrolebindings" => json!({"roleRef": {"apiGroup": "", "kind": "", "name": ""}}),
        "storageclasses" => json!({"provisioner": ""}),
        "endpointslices" => json!({"addressType": "", "endpoints": null, "ports": null}),
        "events" if row.group.is_empty() => json!({
            "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
            "reportingComponent": "", "reportingInstance": "",
        }),
        "events" => json!({
            "regarding": {}, "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null,
            "eventTime": null,
        }),
        _ => json!({}),
    }
}

fn subresources(row: &Row, scales: bool) -> Vec<Subresource> {
    let mut all = Vec::new();
    let mut add = |name, kind, foreign, verbs: &[&'static str]| all.push(Subresource::new(name, kind, foreign, verbs));
    if row.has_status {
        add("status", row.kind, None, &STATUS_VERBS);
    }
    match (row.group, row.plural) {
        ("", "pods") => {
            add("attach", "PodAttachOptions", None, &["create", "get"]);
            add("exec", "PodExecOptions", None, &["create", "get"]);
            add("binding", "Binding", None, &["create"]);
            add("log", row.kind, None, &["get"]);
            add("eviction", "Eviction", Some("policy"), &["create"]);
        }
        ("", "namespaces") => add("finalize", row.kind, None, &["update"]),
        ("", "serviceaccounts") => add("token", "TokenRequest", Some(AUTHENTICATION), &["create"]),
        _ => {}
    }
    if scales {
        add("scale", "Scale", Some("autoscaling"), &STATUS_VERBS);
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}
