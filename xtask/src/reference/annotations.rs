//! What is written in annotations and labels instead of fields: on pods, Deployments and VolumeSnapshots, which are
//! Kubernetes' own kinds, and on ours.

use boathook_api::words;

/// Key, the object that has it, and its value.
const KEYS: &[(&str, &str, &str)] = &[
    (
        words::EXECUTION_HOOK_INFOS,
        "VolumeSnapshot, when it is created",
        "`executionHookInfos` as YAML or JSON: the hooks of the snapshot.",
    ),
    (
        words::EXECUTION_HOOK_TEMPLATE_LABEL,
        "the same, as a label",
        "Name of an ExecutionHookTemplate, for tools that set labels.",
    ),
    (words::OTHER_PODS, "the same, annotation or label", "`otherPods` of the ApplicationSnapshot."),
    (words::CONSISTENCY, "VolumeSnapshot, set by Boathook", "As `status.consistency` of the ApplicationSnapshot."),
    (words::EXECUTION_HOOK_NAMES, "VolumeSnapshot, set by Boathook", "Names of its ExecutionHooks."),
    (
        words::LIFECYCLE,
        "Deployment",
        "`required`: hold the first rollout until there is a DeploymentLifecycle. `managed`: set by Boathook.",
    ),
    (
        words::ABANDON_UNDO,
        "PodNotification, ExecutionHook, ApplicationSnapshot",
        "`true` gives up an undo that cannot succeed. Requires the right to `abandon` the object.",
    ),
];

/// A declared notifier, which is an entry of the annotation's list.
const NOTIFIER: &[(&str, &str, &str)] = &[
    ("**`name`**", "string", "Name of the notifier: a label key, unique in the container."),
    ("**`handler.exec`**", "[ExecAction](#execaction)", "Runs a command in the container. `hold` is not valid here."),
    (
        "**`handler.signal`**",
        "string",
        "Sends this Linux signal to the container's first process. Write either this or `exec`.",
    ),
    ("`timeoutSeconds`", "integer, at least 1, default 1", "Time limit in seconds for handler and probe together."),
    (
        "`probe`",
        "[Probe](https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Probe)",
        "Must pass after the handler, within the timeout: `exec`, `httpGet` or `tcpSocket`. `periodSeconds` defaults to 1.",
    ),
    ("`output`", "enum, default Tail", "As in [Action](#action)."),
];

pub(super) fn section() -> String {
    let notifiers = format!(
        "\n## Notifiers\n\nThe annotation `{}CONTAINER` of a pod declares the notifiers of one container, as a list in YAML or \
         JSON. Proposal: a field of the container.\n\n",
        words::NOTIFIERS_PREFIX
    );
    let keys = KEYS.iter().map(|(key, on, value)| format!("| `{key}` | {on} | {value} |\n"));
    let fields = NOTIFIER.iter().map(|(field, kind, about)| format!("| {field} | {kind} | {about} |\n"));
    let mut text = notifiers + "| field | type | description |\n|---|---|---|\n";
    text.extend(fields);
    text += "\n## Annotations and labels\n\n| key | on | value |\n|---|---|---|\n";
    text.extend(keys);
    text
}
