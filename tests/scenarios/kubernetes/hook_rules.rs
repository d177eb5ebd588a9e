//! What the API server itself holds people to when they write hooks, snapshots and lifecycles: the rules of the CRDs.

use anyhow::Result;
use boathook_api::{ApplicationSnapshot, DeploymentLifecycle, ExecutionHook, ExecutionHookTemplate};
use boathook_tests::{Ctx, boathook::execution_hooks::with};
use serde_json::{Value, json};

use crate::kubernetes::written::Kind;

const ONE_ACTION: &str = "write exactly one of exec, httpGet, tcpSocket and notifier";
const OWN_TIMEOUT: &str = "actionTimeoutSeconds is not valid with notifier";
const HELD: &str = "postAction.exec.hold: only a preAction can hold its session";
const EXPIRATION: &str = "expirationTimeSeconds is called expirationSeconds";

fn exec() -> Value {
    json!({"exec": {"command": ["sync"]}, "actionTimeoutSeconds": 5})
}

fn held() -> Value {
    json!({"exec": {"command": ["lock"], "hold": true}})
}

/// Right, as templates have them and hooks too; beside `preAction`, which stands for both.
fn good_actions() -> Vec<Value> {
    vec![
        json!({"preAction": exec()}),
        json!({"preAction": exec(), "postAction": exec(), "expirationSeconds": 30, "policy": "ExecuteOnce"}),
        json!({"preAction": {"httpGet": {"port": 80, "path": "/freeze"}}}),
        json!({"preAction": {"tcpSocket": {"port": "web"}}}),
        json!({"preAction": {"notifier": "freeze"}, "postAction": {"notifier": "thaw"}}),
        json!({"preAction": held()}),
        json!({"preAction": held(), "postAction": {"exec": {"command": ["unlock"], "hold": false}}}),
    ]
}

/// Wrong, likewise.
fn bad_actions() -> Vec<(Value, &'static str)> {
    let two = json!({"exec": {"command": ["sync"]}, "notifier": "freeze"});
    let timed = json!({"notifier": "freeze", "actionTimeoutSeconds": 5});
    vec![
        (json!({"preAction": {}}), ONE_ACTION),
        (json!({"preAction": two}), ONE_ACTION),
        (json!({"preAction": exec(), "postAction": {}}), ONE_ACTION),
        (json!({"preAction": exec(), "postAction": two}), ONE_ACTION),
        (json!({"preAction": timed}), OWN_TIMEOUT),
        (json!({"preAction": exec(), "postAction": timed}), OWN_TIMEOUT),
        (json!({"preAction": exec(), "postAction": held()}), HELD),
        (json!({"preAction": exec(), "expirationTimeSeconds": 30}), EXPIRATION),
        (json!({"preAction": exec(), "expirationSeconds": 0}), "expirationSeconds"),
        (json!({"preAction": {"exec": {"command": []}}}), "command"),
        (json!({"preAction": {"exec": {"command": ["a", "b\0"]}}}), "spec.preAction.exec.command[1]"),
        (json!({"preAction": exec(), "policy": "Once"}), "Unsupported value"),
    ]
}

pub(crate) async fn a_template_says_what_to_run_and_where_it_belongs(ctx: Ctx) -> Result<()> {
    let templates = Kind::installed::<ExecutionHookTemplate>(&ctx).await?;
    templates.takes(&good_actions()).await?;
    templates.refuses(&bad_actions()).await?;
    templates.refuses(&[(json!({"postAction": exec()}), "preAction")]).await?;
    for (fields, words) in [
        (json!({}), "spec is missing: write the action to run in spec.preAction"),
        (json!({"preAction": exec()}), "under spec"),
        (json!({"spec": {"preAction": exec()}, "expirationTimeSeconds": 30}), "under spec"),
        (json!({"spec": {"preAction": exec()}, "expirationSeconds": 30}), "under spec"),
        (json!({"spec": {"preAction": exec()}, "policy": "ExecuteAll"}), "under spec"),
        (json!({"spec": {"preAction": exec()}, "postAction": exec()}), "under spec"),
    ] {
        templates.refuses_fields(&fields, words).await?;
    }
    // What was accepted is recorded, so a template may change.
    templates.create_for_good("kept", &json!({"preAction": exec()})).await?;
    templates.change("kept", &json!({"preAction": {"actionTimeoutSeconds": 7}})).await
}

pub(crate) async fn a_hook_has_a_template_or_actions_of_its_own(ctx: Ctx) -> Result<()> {
    let hooks = Kind::installed::<ExecutionHook>(&ctx).await?;
    let of_template = json!({"executionHookTemplateName": "mysql"});
    hooks.takes(&good_actions()).await?;
    hooks.refuses(&bad_actions()).await?;
    hooks.takes(&[of_template.clone(), with(of_template.clone(), json!({"podSelector": {}}))]).await?;
    let of_the_template = "postAction, expirationSeconds and policy come from the template";
    let either = "write exactly one of executionHookTemplateName and preAction";
    hooks
        .refuses(&[
            (json!({}), either),
            (with(of_template.clone(), json!({"preAction": exec()})), either),
            (with(of_template.clone(), json!({"postAction": exec()})), of_the_template),
            (with(of_template.clone(), json!({"expirationSeconds": 30})), of_the_template),
            (with(of_template.clone(), json!({"policy": "ExecuteAll"})), of_the_template),
            (with(of_template.clone(), json!({"podContainerNamesList": [{"containerNames": ["main"]}]})), "podName"),
            (json!({"executionHookTemplateName": "My SQL"}), "spec.executionHookTemplateName"),
        ])
        .await?;
    let bad = bad_targets().into_iter();
    let bad: Vec<_> = bad.map(|(target, words)| (with(of_template.clone(), target), words)).collect();
    hooks.refuses(&bad).await
}

/// Targets, of a hook or of a snapshot's hook, that select nothing and that Kubernetes would refuse.
fn bad_targets() -> Vec<(Value, &'static str)> {
    let expression = |operator: &str, values: Value| json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}});
    let listed = |pod: Value| json!({"podContainerNamesList": [pod]});
    vec![
        (expression("Has", json!(["db"])), "podSelector.matchExpressions[0].operator: Unsupported value"),
        (expression("In", json!([])), "In and NotIn need values"),
        (expression("NotIn", json!([])), "In and NotIn need values"),
        (expression("Exists", json!(["db"])), "Exists and DoesNotExist take no values"),
        (expression("In", json!(["d b"])), "podSelector.matchExpressions[0].values[0]"),
        (
            json!({"podSelector": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}}),
            "matchExpressions[0].key",
        ),
        (json!({"podSelector": {"matchLabels": {"app": "d\0b"}}}), "podSelector.matchLabels.app"),
        (listed(json!({"podName": "d\0b", "containerNames": ["main"]})), "podContainerNamesList[0].podName"),
        (listed(json!({"podName": "db/../x", "containerNames": ["main"]})), "podContainerNamesList[0].podName"),
        (listed(json!({"podName": "db", "containerNames": ["Main"]})), "podContainerNamesList[0].containerNames[0]"),
        (listed(json!({"podName": "db", "containerName": "main"})), "containerName is called containerNames"),
        (json!({"containerSelector": {"containerName": "a.b"}}), "containerSelector.containerName"),
        (json!({"containerSelector": {"ContainerName": "main"}}), "ContainerName is called containerName"),
        (json!({"containerSelector": {}}), "containerName is missing: name a container"),
    ]
}

pub(crate) async fn a_hook_changes_only_by_being_asked_to_thaw(ctx: Ctx) -> Result<()> {
    let hooks = Kind::installed::<ExecutionHook>(&ctx).await?;
    let spec = json!({
        "preAction": exec(),
        "expirationSeconds": 30,
        "podSelector": {"matchLabels": {"app": "none"}},
    });
    hooks.create_for_good("kept", &spec).await?;
    hooks
        .keeps(
            "kept",
            "spec is immutable except thawRequested",
            &[
                json!({"preAction": null, "expirationSeconds": null, "executionHookTemplateName": "mysql"}),
                json!({"preAction": {"actionTimeoutSeconds": 6}}),
                json!({"postAction": exec()}),
                json!({"expirationSeconds": 31}),
                json!({"expirationSeconds": null}),
                json!({"policy": "ExecuteOnce"}),
                json!({"podSelector": {"matchLabels": {"app": "other"}}}),
                json!({"podContainerNamesList": [{"podName": "db-0", "containerNames": ["main"]}]}),
                json!({"containerSelector": {"containerName": "main"}}),
            ],
        )
        .await?;
    hooks.change("kept", &json!({"thawRequested": true})).await?;
    let taken_back = [json!({"thawRequested": false}), json!({"thawRequested": null})];
    hooks.keeps("kept", "thawRequested cannot be set back to false", &taken_back).await
}

/// A controller records actions as they were written, under the same rules.
pub(crate) async fn what_is_recorded_of_a_hook_is_as_right_as_what_was_written(ctx: Ctx) -> Result<()> {
    let hooks = Kind::installed::<ExecutionHook>(&ctx).await?;
    hooks.create_for_good("kept", &json!({"executionHookTemplateName": "mysql"})).await?;
    let recorded = |actions: Value| json!({"recorded": with(json!({"policy": "ExecuteAll"}), actions)});
    hooks.takes_status("kept", &recorded(json!({"preAction": exec(), "postAction": exec()}))).await?;
    let timed = json!({"notifier": "freeze", "actionTimeoutSeconds": 5});
    for (actions, words) in [
        (json!({"preAction": {}}), ONE_ACTION),
        (json!({"preAction": exec(), "postAction": {}}), ONE_ACTION),
        (json!({"preAction": timed}), OWN_TIMEOUT),
        (json!({"preAction": exec(), "postAction": timed}), OWN_TIMEOUT),
    ] {
        hooks.refuses_status("kept", &recorded(actions), words).await?;
    }
    Ok(())
}

pub(crate) async fn a_snapshot_is_of_one_claim_or_of_those_selected_and_never_changes(ctx: Ctx) -> Result<()> {
    let snapshots = Kind::installed::<ApplicationSnapshot>(&ctx).await?;
    let of = |source: Value| json!({"source": source});
    let marked = json!({"volumeSnapshotName": "nightly", "volumeSnapshotUID": "1-2-3"});
    let claim = json!({"persistentVolumeClaimName": "data"});
    snapshots
        .takes(&[
            of(claim.clone()),
            of(json!({"selector": {"matchLabels": {"app": "db"}}})),
            of(with(claim.clone(), marked.clone())),
        ])
        .await?;
    let (either, all_three) = (
        "write exactly one of persistentVolumeClaimName and selector",
        "volumeSnapshotName and volumeSnapshotUID are set by Boathook",
    );
    snapshots
        .refuses(&[
            (of(json!({})), either),
            (of(with(claim.clone(), json!({"selector": {}}))), either),
            (of(with(claim.clone(), json!({"volumeSnapshotName": "nightly"}))), all_three),
            (of(with(claim.clone(), json!({"volumeSnapshotUID": "1-2-3"}))), all_three),
            (of(with(marked, json!({"selector": {}}))), all_three),
            (json!({}), "source"),
            (with(of(claim.clone()), json!({"cutTimeoutSeconds": 0})), "cutTimeoutSeconds"),
            (with(of(claim.clone()), json!({"onHookFailure": "Ignore"})), "Unsupported value"),
            (with(of(claim.clone()), json!({"executionHookInfos": [{}]})), "executionHookTemplateName"),
            (with(of(claim.clone()), json!({"volumeSnapshotClassName": "Fast"})), "spec.volumeSnapshotClassName"),
            (of(json!({"persistentVolumeClaimName": "da\0ta"})), "spec.source.persistentVolumeClaimName"),
            (
                of(json!({"selector": {"matchExpressions": [{"key": "app", "operator": "has"}]}})),
                "spec.source.selector.matchExpressions[0].operator: Unsupported value",
            ),
        ])
        .await?;
    let info = json!({"executionHookTemplateName": "mysql"});
    let with_target = |target: Value| json!({"executionHookInfos": [with(info.clone(), target)]});
    let bad = bad_targets().into_iter();
    let bad: Vec<_> = bad.map(|(target, words)| (with(of(claim.clone()), with_target(target)), words)).collect();
    snapshots.refuses(&bad).await?;
    snapshots.create_for_good("kept", &of(claim)).await?;
    let changes = [
        json!({"source": {"persistentVolumeClaimName": "other"}}),
        json!({"cutTimeoutSeconds": 61}),
        json!({"onHookFailure": "CrashConsistent"}),
        json!({"volumeSnapshotClassName": "fast"}),
        json!({"executionHookInfos": [{"executionHookTemplateName": "mysql"}]}),
    ];
    snapshots.keeps("kept", "spec is immutable", &changes).await
}

pub(crate) async fn a_lifecycle_has_a_hook_at_some_stage(ctx: Ctx) -> Result<()> {
    let lifecycles = Kind::installed::<DeploymentLifecycle>(&ctx).await?;
    let hook = json!({"execNewPod": {"containerName": "main", "command": ["migrate"]}, "failurePolicy": "Abort"});
    lifecycles.takes(&[json!({"pre": hook}), json!({"mid": hook}), json!({"post": hook})]).await?;
    let none = "write at least one of pre, mid and post";
    lifecycles
        .refuses(&[
            (json!({}), none),
            (json!({"pre": {}}), "execNewPod"),
            (json!({"pre": {"execNewPod": {}}}), "containerName"),
            (json!({"pre": {"execNewPod": {"containerName": "Main"}}}), "spec.pre.execNewPod.containerName"),
            (json!({"pre": {"execNewPod": {"containerName": "main", "args": ["\0"]}}}), "spec.pre.execNewPod.args[0]"),
            (json!({"pre": with(hook.clone(), json!({"failurePolicy": "Undo"}))}), "Unsupported value"),
        ])
        .await?;
    lifecycles.create_for_good("kept", &json!({"pre": hook})).await?;
    lifecycles.change("kept", &json!({"pre": null, "post": hook})).await?;
    lifecycles.keeps("kept", none, &[json!({"post": null})]).await
}
