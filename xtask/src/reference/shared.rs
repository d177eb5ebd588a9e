//! Types that several fields have, known by their fields.

use serde_json::Value;

/// A type that is described once.
pub(super) struct Shared {
    pub(super) name: &'static str,
    /// All of its fields, misspellings that are rejected included.
    fields: &'static [&'static str],
}

pub(super) const SHARED: &[Shared] = &[
    Shared { name: "Action", fields: &["exec", "httpGet", "output", "signal", "tcpSocket", "timeoutSeconds"] },
    Shared {
        name: "HookAction",
        fields: &["actionTimeoutSeconds", "exec", "httpGet", "notifier", "output", "tcpSocket"],
    },
    Shared { name: "ExecAction", fields: &["command", "hold"] },
    Shared { name: "PodContainerNames", fields: &["containerName", "containerNames", "podName"] },
    Shared { name: "ContainerSelector", fields: &["ContainerName", "containerName"] },
    Shared {
        name: "ContainerExecutionHookStatus",
        fields: &["containerID", "containerName", "podName", "podUID", "postActionStatus", "preActionStatus"],
    },
    Shared {
        name: "ExecutionHookActionStatus",
        fields: &["actionSucceed", "actionTimestamp", "attempts", "completeTimestamp", "error"],
    },
    Shared { name: "FreezeWindow", fields: &["duration", "endTime", "startTime"] },
    Shared { name: "LifecycleHook", fields: &["execNewPod", "failurePolicy"] },
    Shared {
        name: "Rollout",
        fields: &[
            "completeTime",
            "hooks",
            "phase",
            "replicaSet",
            "request",
            "resumed",
            "revision",
            "stages",
            "startTime",
            "target",
        ],
    },
    Shared { name: "NotificationError", fields: &["message", "timestamp", "type"] },
];

/// Types of Kubernetes: a field that only they have, what they are called, and where they are documented.
const OF_KUBERNETES: &[(&str, &str, &str)] = &[
    (
        "matchExpressions",
        "LabelSelector",
        "https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/label-selector/",
    ),
    (
        "lastTransitionTime",
        "Condition",
        "https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties",
    ),
    (
        "valueFrom",
        "EnvVar",
        "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables",
    ),
    (
        "httpHeaders",
        "HTTPGetAction",
        "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#LifecycleHandler",
    ),
    (
        "host",
        "TCPSocketAction",
        "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#LifecycleHandler",
    ),
];

/// The shared type that this object has, and its fields beyond those of the type.
pub(super) fn find(schema: &Value) -> Option<(&'static Shared, Vec<&str>)> {
    let names = names(schema);
    SHARED.iter().find_map(|shared| {
        let extra: Vec<_> = names.iter().copied().filter(|name| !shared.fields.contains(name)).collect();
        let has_all = shared.fields.iter().all(|field| names.contains(field));
        // Only a rollout has a variant with one more field.
        (has_all && extra.len() <= usize::from(shared.name == "Rollout")).then_some((shared, extra))
    })
}

/// The type of Kubernetes that this object has, as a link.
pub(super) fn of_kubernetes(schema: &Value) -> Option<String> {
    let names = names(schema);
    let (_, name, address) = OF_KUBERNETES.iter().find(|(field, ..)| names.contains(field))?;
    Some(format!("[{name}]({address})"))
}

fn names(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}
