//! What the adversary tries to write, and which rights allow its command to run.
//!
//! An attack writes `did-NUMBER` into the pod's record by every command that is the adversary's. Victims are the objects of
//! another user: what freezes there writes `freeze-NUMBER`, and what thaws `thaw-NUMBER`.

use boathook_api::words::{
    ABANDON_UNDO, CONSISTENCY, EXECUTION_HOOK_INFOS, EXECUTION_HOOK_LABEL, EXECUTION_HOOK_NAMES,
    EXECUTION_HOOK_TEMPLATE_LABEL, GROUP, NOTIFICATION_LABEL, UNDO_FINALIZER, VERSION,
};
use serde_json::{Value, json};

use super::{doors::Field, grants::Right};

pub(super) const SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";

pub(super) const PODS_EXEC: Right = ("create", "", "pods/exec");
const NOTIFY: Right = ("create", GROUP, "podnotifications");
const HOOK: Right = ("create", GROUP, "executionhooks");

/// The label of all that belongs to an attempt; its value is the attempt's number.
pub(super) const LABEL: &str = "adversary";

/// The label of a round's pod; its value is the pod's name.
pub(super) const POD_LABEL: &str = "adversary-pod";

/// Set on every victim, so that a JSON patch can add another one.
pub(super) const ANNOTATION: &str = "example.com/note";

pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
}

impl Kind {
    const fn ours(plural: &'static str, kind: &'static str) -> Self {
        Self { group: GROUP, version: VERSION, plural, kind }
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of its objects in this namespace.
    pub(super) fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{root}/{}/namespaces/{namespace}/{}", self.api_version(), self.plural)
    }
}

pub(super) const POD_NOTIFICATION: Kind = Kind::ours("podnotifications", "PodNotification");
pub(super) const NOTIFICATION: Kind = Kind::ours("notifications", "Notification");
pub(super) const HOOK_KIND: Kind = Kind::ours("executionhooks", "ExecutionHook");
pub(super) const TEMPLATE: Kind = Kind::ours("executionhooktemplates", "ExecutionHookTemplate");
pub(super) const APPLICATION_SNAPSHOT: Kind = Kind::ours("applicationsnapshots", "ApplicationSnapshot");
pub(super) const VOLUME_SNAPSHOT: Kind =
    Kind { group: SNAPSHOT_GROUP, version: "v1", plural: "volumesnapshots", kind: "VolumeSnapshot" };
pub(super) const POD: Kind = Kind { group: "", version: "v1", plural: "pods", kind: "Pod" };
const BINDING: Kind = Kind { group: "", version: "v1", plural: "bindings", kind: "Binding" };
const BINDING_OF_POD: Kind = Kind { group: "", version: "v1", plural: "pods", kind: "Binding" };

/// What an attack's texts are made with.
pub(super) struct Place {
    pub(super) number: usize,
    pub(super) pod: String,
    pub(super) pod_uid: String,
    pub(super) claim: String,
    /// The node of the pod.
    pub(super) node: String,
    /// A VolumeSnapshotClass whose storage never cuts.
    pub(super) silent_class: String,
}

impl Place {
    /// Of an attempt that is to be refused before anything is looked up.
    pub(super) fn nowhere() -> Self {
        let absent = || "absent".to_owned();
        Self { number: 0, pod: absent(), pod_uid: absent(), claim: absent(), node: absent(), silent_class: absent() }
    }

    pub(super) fn victim(&self) -> String {
        format!("victim-{}", self.number)
    }

    pub(super) fn new_object(&self) -> String {
        format!("new-{}", self.number)
    }

    pub(super) fn trace(&self) -> String {
        format!("did-{}", self.number)
    }

    /// An action that leaves the attempt's trace.
    pub(super) fn command(&self) -> Value {
        records(&self.trace())
    }

    /// In the attempt's pod.
    pub(super) fn target(&self) -> Value {
        json!([{"podName": self.pod, "containerNames": ["main"]}])
    }
}

/// An action that writes this word into the pod's record.
pub(super) fn records(word: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", format!("echo {word} >> log/lines")]}})
}

/// An object of another user, made before the attempt and used after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// None, or one that all attempts share.
    None,
    /// A PodNotification that has frozen, and owes its undo.
    Notification,
    /// An ExecutionHook that has frozen, and owes its PostAction.
    Hook,
    /// The PodNotification of such a hook.
    Child,
    /// A template that another user runs afterwards.
    Template,
    /// A template whose command leaves the attempt's own trace: it runs only if the attempt names it.
    Traced,
    /// An ApplicationSnapshot that has failed.
    ApplicationSnapshot,
    /// An ApplicationSnapshot whose hook has frozen, and which waits for the cut.
    FrozenSnapshot,
    /// A VolumeSnapshot without hooks.
    VolumeSnapshot,
    /// The pod, to which its notifiers are sent afterwards.
    Pod,
    /// A pod that no scheduler binds. Afterwards its owner binds it and sends it its notifiers.
    Unscheduled,
}

/// What is written.
pub(super) enum What {
    Create(fn(&Place) -> Value),
    /// Fields of the victim; whether it is deleted then.
    Change(fn(&Place) -> Vec<Field>, Then),
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Done,
    Delete,
}

pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) subresource: Option<&'static str>,
    pub(super) victim: Victim,
    pub(super) what: What,
    /// With one of these rights its trace may appear.
    pub(super) allowed_by: &'static [Right],
    /// It claims consistency `Application` for its object.
    pub(super) forges_verdict: bool,
    /// It gives up the undo of its victim, which stays frozen if the user has the right to `abandon` it.
    pub(super) abandons: bool,
}

impl Attack {
    /// As roles name what it writes.
    pub(super) fn resource(&self) -> String {
        match self.subresource {
            None => self.kind.plural.to_owned(),
            Some(subresource) => format!("{}/{subresource}", self.kind.plural),
        }
    }
}

pub(super) const fn create(
    name: &'static str,
    kind: Kind,
    victim: Victim,
    object: fn(&Place) -> Value,
    allowed_by: &'static [Right],
) -> Attack {
    Attack {
        name,
        kind,
        subresource: None,
        victim,
        what: What::Create(object),
        allowed_by,
        forges_verdict: false,
        abandons: false,
    }
}

pub(super) const fn change(name: &'static str, kind: Kind, victim: Victim, fields: fn(&Place) -> Vec<Field>) -> Attack {
    let what = What::Change(fields, Then::Done);
    Attack { name, kind, subresource: None, victim, what, allowed_by: &[], forges_verdict: false, abandons: false }
}

const fn then_delete(attack: Attack) -> Attack {
    match attack.what {
        What::Change(fields, _) => Attack { what: What::Change(fields, Then::Delete), ..attack },
        What::Create(_) | What::Delete => attack,
    }
}

pub(super) const fn of(subresource: &'static str, attack: Attack) -> Attack {
    Attack { subresource: Some(subresource), ..attack }
}

const fn forging(attack: Attack) -> Attack {
    Attack { forges_verdict: true, ..attack }
}

const fn abandoning(attack: Attack) -> Attack {
    Attack { abandons: true, ..attack }
}

const fn delete(name: &'static str, kind: Kind, victim: Victim) -> Attack {
    Attack {
        name,
        kind,
        subresource: None,
        victim,
        what: What::Delete,
        allowed_by: &[],
        forges_verdict: false,
        abandons: false,
    }
}

/// An inline notification, dressed with this metadata.
fn dressed(place: &Place, metadata: Value) -> Value {
    json!({"metadata": metadata, "spec": {"podName": place.pod, "action": place.command()}})
}

fn annotation(key: &'static str, value: &str) -> Field {
    (vec!["metadata", "annotations", key], json!(value))
}

fn spec(field: &'static str, value: Value) -> Field {
    (vec!["spec", field], value)
}

fn declares(place: &Place) -> String {
    let handler = json!([{"name": place.trace(), "handler": place.command()}]);
    handler.to_string()
}

/// Where the container `main` declares its notifiers.
pub(super) const DECLARATION: &str = "notifiers.boathook.dev/main";

fn no_finalizers(_: &Place) -> Vec<Field> {
    vec![(vec!["metadata", "finalizers"], Value::Null)]
}

fn no_labels(_: &Place) -> Vec<Field> {
    vec![(vec!["metadata", "labels"], Value::Null)]
}

fn no_owner(_: &Place) -> Vec<Field> {
    vec![(vec!["metadata", "ownerReferences"], Value::Null)]
}

/// As if the pod had made it.
fn other_owner(place: &Place) -> Vec<Field> {
    let owner =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": place.pod, "uid": place.pod_uid, "controller": true}]);
    vec![(vec!["metadata", "ownerReferences"], owner)]
}

/// A binding that also declares.
fn declaring_binding(place: &Place) -> Value {
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": place.node});
    json!({"metadata": {"annotations": {DECLARATION: declares(place)}}, "target": target})
}

fn abandoned(_: &Place) -> Vec<Field> {
    vec![annotation(ABANDON_UNDO, "true")]
}

fn condition(kind: &str, reason: &str) -> Value {
    json!([{"type": kind, "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

pub(super) const ATTACKS: &[Attack] = &[
    create("inline action", POD_NOTIFICATION, Victim::None, |place| dressed(place, json!({})), &[PODS_EXEC]),
    create(
        "inline action with Boathook's labels",
        POD_NOTIFICATION,
        Victim::Hook,
        |place| dressed(place, json!({"labels": {EXECUTION_HOOK_LABEL: place.victim(), NOTIFICATION_LABEL: "all"}})),
        &[PODS_EXEC],
    ),
    create(
        "inline action with Boathook's finalizers",
        POD_NOTIFICATION,
        Victim::None,
        |place| dressed(place, json!({"finalizers": [UNDO_FINALIZER]})),
        &[PODS_EXEC],
    ),
    create(
        "inline action owned by a pod",
        POD_NOTIFICATION,
        Victim::None,
        |place| {
            let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": place.pod, "uid": place.pod_uid,
                "controller": true});
            dressed(place, json!({"ownerReferences": [owner]}))
        },
        &[PODS_EXEC],
    ),
    create(
        "inline action with declared undo",
        POD_NOTIFICATION,
        Victim::None,
        |place| json!({"metadata": {}, "spec": {"podName": place.pod, "action": place.command(), "undo": {"notifier": "quiet"}}}),
        &[PODS_EXEC],
    ),
    create(
        "inline undo",
        POD_NOTIFICATION,
        Victim::None,
        |place| {
            let undo = json!({"action": place.command()});
            json!({"metadata": {}, "spec": {"podName": place.pod, "notifier": "quiet", "undo": undo}})
        },
        &[PODS_EXEC],
    ),
    create(
        "declared notifier",
        POD_NOTIFICATION,
        Victim::None,
        |place| json!({"metadata": {}, "spec": {"podName": place.pod, "notifier": place.trace()}}),
        &[NOTIFY],
    ),
    create(
        "recorded undo at creation",
        POD_NOTIFICATION,
        Victim::None,
        |place| {
            let record = json!({"name": "main", "undo": {"action": place.command()}});
            json!({"metadata": {}, "status": {"state": "New", "containers": [record]},
                "spec": {"podName": place.pod, "notifier": "quiet", "undo": {"notifier": "quiet"}}})
        },
        &[],
    ),
    create(
        "declared notifier of every pod",
        NOTIFICATION,
        Victim::None,
        |place| json!({"metadata": {}, "spec": {"notifier": place.trace(), "policy": "PreExistingPods", "selector": {"matchLabels": {POD_LABEL: place.pod}}}}),
        &[NOTIFY],
    ),
    create(
        "inline PreAction",
        HOOK_KIND,
        Victim::None,
        |place| json!({"metadata": {}, "spec": {"preAction": place.command(), "podContainerNamesList": place.target()}}),
        &[PODS_EXEC],
    ),
    create(
        "inline PostAction",
        HOOK_KIND,
        Victim::None,
        |place| {
            let spec = json!({"preAction": {"notifier": "quiet"}, "postAction": place.command(),
                "podContainerNamesList": place.target()});
            json!({"metadata": {}, "spec": spec})
        },
        &[PODS_EXEC],
    ),
    create(
        "notifier as PreAction",
        HOOK_KIND,
        Victim::None,
        |place| json!({"metadata": {}, "spec": {"preAction": {"notifier": place.trace()}, "podContainerNamesList": place.target()}}),
        &[NOTIFY],
    ),
    create(
        "recorded hook at creation",
        HOOK_KIND,
        Victim::Template,
        |place| {
            let recorded = json!({"policy": "ExecuteAll", "preAction": place.command()});
            json!({"metadata": {}, "status": {"recorded": recorded},
                "spec": {"executionHookTemplateName": place.victim(), "podContainerNamesList": place.target()}})
        },
        &[],
    ),
    create(
        "hook of a template",
        HOOK_KIND,
        Victim::Traced,
        |place| json!({"metadata": {}, "spec": {"executionHookTemplateName": place.victim(), "podContainerNamesList": place.target()}}),
        &[HOOK],
    ),
    create(
        "template that another user runs",
        TEMPLATE,
        Victim::None,
        |place| json!({"metadata": {}, "spec": {"preAction": place.command()}}),
        &[PODS_EXEC],
    ),
    create(
        "template with a PostAction that another user runs",
        TEMPLATE,
        Victim::None,
        |place| json!({"metadata": {}, "spec": {"preAction": {"notifier": "quiet"}, "postAction": place.command()}}),
        &[PODS_EXEC],
    ),
    create(
        "snapshot with a template",
        APPLICATION_SNAPSHOT,
        Victim::Traced,
        |place| {
            let infos = json!([{"executionHookTemplateName": place.victim()}]);
            let source = json!({"persistentVolumeClaimName": place.claim});
            json!({"metadata": {}, "spec": {"source": source, "executionHookInfos": infos}})
        },
        &[HOOK],
    ),
    create(
        "snapshot marked by annotation",
        VOLUME_SNAPSHOT,
        Victim::Traced,
        |place| {
            let infos = json!([{"executionHookTemplateName": place.victim()}]).to_string();
            let source = json!({"persistentVolumeClaimName": place.claim});
            json!({"metadata": {"annotations": {EXECUTION_HOOK_INFOS: infos}}, "spec": {"source": source}})
        },
        &[HOOK],
    ),
    create(
        "snapshot marked by label",
        VOLUME_SNAPSHOT,
        Victim::Traced,
        |place| {
            let source = json!({"persistentVolumeClaimName": place.claim});
            json!({"metadata": {"labels": {EXECUTION_HOOK_TEMPLATE_LABEL: place.victim()}}, "spec": {"source": source}})
        },
        &[HOOK],
    ),
    forging(create(
        "snapshot with a verdict",
        VOLUME_SNAPSHOT,
        Victim::None,
        |place| {
            let marks = json!({CONSISTENCY: "Application", EXECUTION_HOOK_NAMES: "hook"});
            let source = json!({"persistentVolumeClaimName": place.claim});
            json!({"metadata": {"annotations": marks}, "spec": {"source": source}})
        },
        &[],
    )),
    forging(create(
        "snapshot with a verdict in its status",
        APPLICATION_SNAPSHOT,
        Victim::None,
        |_| {
            let status = json!({"phase": "Complete", "consistency": "Application"});
            json!({"metadata": {}, "spec": {"source": {"persistentVolumeClaimName": "absent"}}, "status": status})
        },
        &[],
    )),
    create("binding that declares", BINDING, Victim::Unscheduled, declaring_binding, &[]),
    of("binding", create("pod's binding that declares", BINDING_OF_POD, Victim::Unscheduled, declaring_binding, &[])),
    change("other undo", POD_NOTIFICATION, Victim::Notification, |place| {
        vec![spec("undo", json!({"action": place.command()}))]
    }),
    change("no undo", POD_NOTIFICATION, Victim::Notification, |_| vec![spec("undo", Value::Null)]),
    change("other action", POD_NOTIFICATION, Victim::Notification, |place| vec![spec("action", place.command())]),
    change("undo requested", POD_NOTIFICATION, Victim::Notification, |_| vec![spec("undoRequested", json!(true))]),
    change("no time to live", POD_NOTIFICATION, Victim::Notification, |_| {
        vec![spec("ttlSecondsAfterFinished", json!(0))]
    }),
    then_delete(change("no finalizers", POD_NOTIFICATION, Victim::Notification, no_finalizers)),
    abandoning(then_delete(change("abandoned undo", POD_NOTIFICATION, Victim::Notification, abandoned))),
    then_delete(change("no finalizers of a hook's child", POD_NOTIFICATION, Victim::Child, no_finalizers)),
    abandoning(then_delete(change("abandoned undo of a hook's child", POD_NOTIFICATION, Victim::Child, abandoned))),
    change("no labels of a hook's child", POD_NOTIFICATION, Victim::Child, no_labels),
    change("no owner of a hook's child", POD_NOTIFICATION, Victim::Child, no_owner),
    change("other owner of a hook's child", POD_NOTIFICATION, Victim::Child, other_owner),
    delete("deleted while frozen", POD_NOTIFICATION, Victim::Notification),
    delete("hook's child deleted while frozen", POD_NOTIFICATION, Victim::Child),
    of(
        "status",
        change("other recorded undo", POD_NOTIFICATION, Victim::Notification, |place| {
            let undo = json!({"action": place.command()});
            vec![(vec!["status", "containers"], json!([{"name": "main", "succeeded": true, "undo": undo}]))]
        }),
    ),
    of(
        "status",
        change("undo recorded as done", POD_NOTIFICATION, Victim::Notification, |_| {
            vec![(vec!["status", "conditions"], condition("Undone", "UndoSucceeded"))]
        }),
    ),
    of(
        "status",
        change("no recorded containers", POD_NOTIFICATION, Victim::Notification, |_| {
            vec![(vec!["status", "containers"], Value::Null)]
        }),
    ),
    change("other PreAction", HOOK_KIND, Victim::Hook, |place| vec![spec("preAction", place.command())]),
    change("other PostAction", HOOK_KIND, Victim::Hook, |place| vec![spec("postAction", place.command())]),
    change("no PostAction", HOOK_KIND, Victim::Hook, |_| vec![spec("postAction", Value::Null)]),
    change("thaw requested", HOOK_KIND, Victim::Hook, |_| vec![spec("thawRequested", json!(true))]),
    then_delete(change("no finalizers of a hook", HOOK_KIND, Victim::Hook, no_finalizers)),
    abandoning(then_delete(change("abandoned hook", HOOK_KIND, Victim::Hook, abandoned))),
    change("no labels of a hook", HOOK_KIND, Victim::Hook, no_labels),
    change("other owner of a hook", HOOK_KIND, Victim::Hook, other_owner),
    delete("hook deleted while frozen", HOOK_KIND, Victim::Hook),
    of(
        "status",
        change("other recorded PostAction", HOOK_KIND, Victim::Hook, |place| {
            vec![(vec!["status", "recorded", "postAction"], place.command())]
        }),
    ),
    of(
        "status",
        change("no recorded PostAction", HOOK_KIND, Victim::Hook, |_| {
            vec![(vec!["status", "recorded", "postAction"], Value::Null)]
        }),
    ),
    of(
        "status",
        change("recorded as thawed", HOOK_KIND, Victim::Hook, |_| {
            vec![(vec!["status", "postActionSucceed"], json!(true))]
        }),
    ),
    change("other PreAction of a template", TEMPLATE, Victim::Template, |place| {
        vec![spec("preAction", place.command())]
    }),
    change("other PostAction of a template", TEMPLATE, Victim::Template, |place| {
        vec![spec("postAction", place.command())]
    }),
    change("no PostAction of a template", TEMPLATE, Victim::Template, |_| vec![spec("postAction", Value::Null)]),
    change("notifier as PostAction of a template", TEMPLATE, Victim::Template, |_| {
        vec![spec("postAction", json!({"notifier": "quiet"}))]
    }),
    forging(of(
        "status",
        change("verdict of a failed snapshot", APPLICATION_SNAPSHOT, Victim::ApplicationSnapshot, |_| {
            vec![(vec!["status", "phase"], json!("Complete")), (vec!["status", "consistency"], json!("Application"))]
        }),
    )),
    then_delete(change(
        "no finalizers of a frozen snapshot",
        APPLICATION_SNAPSHOT,
        Victim::FrozenSnapshot,
        no_finalizers,
    )),
    abandoning(then_delete(change(
        "abandoned frozen snapshot",
        APPLICATION_SNAPSHOT,
        Victim::FrozenSnapshot,
        abandoned,
    ))),
    change("other owner of a frozen snapshot", APPLICATION_SNAPSHOT, Victim::FrozenSnapshot, other_owner),
    delete("frozen snapshot deleted", APPLICATION_SNAPSHOT, Victim::FrozenSnapshot),
    forging(of(
        "status",
        change("frozen snapshot recorded as complete", APPLICATION_SNAPSHOT, Victim::FrozenSnapshot, |_| {
            vec![(vec!["status", "phase"], json!("Complete")), (vec!["status", "consistency"], json!("Application"))]
        }),
    )),
    forging(change("verdict", VOLUME_SNAPSHOT, Victim::VolumeSnapshot, |_| {
        vec![annotation(CONSISTENCY, "Application"), annotation(EXECUTION_HOOK_NAMES, "hook")]
    })),
    forging(of(
        "status",
        change("verdict by status", VOLUME_SNAPSHOT, Victim::VolumeSnapshot, |_| {
            vec![annotation(CONSISTENCY, "Application"), (vec!["status", "readyToUse"], json!(true))]
        }),
    )),
    change("other declaration", POD, Victim::Pod, |place| vec![annotation(DECLARATION, &declares(place))]),
    change("no declaration", POD, Victim::Pod, |_| vec![(vec!["metadata", "annotations", DECLARATION], Value::Null)]),
    of(
        "status",
        change("declaration by status", POD, Victim::Pod, |place| vec![annotation(DECLARATION, &declares(place))]),
    ),
];
