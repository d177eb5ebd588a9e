//! What the API server itself holds people to when they write notifications: the rules of the CRDs.

use anyhow::{Context, Result};
use boathook_api::{Notification, PodNotification};
use boathook_tests::{Ctx, DEADLINE};
use futures::future::try_join_all;
use kube::Api;
use serde_json::json;

use crate::kubernetes::written::Kind;

pub(crate) async fn the_kinds_are_installed_by_many_at_once_and_again(ctx: Ctx) -> Result<()> {
    let client = ctx.client();
    try_join_all((0..4).map(|_| boathook_install::apply(&client, ctx.namespace(), DEADLINE))).await?;
    let notifications: Api<Notification> = ctx.api();
    notifications.list(&Default::default()).await.context("a kind is not served that was waited for")?;
    Ok(())
}

pub(crate) async fn a_pod_notification_does_exactly_one_thing_and_so_does_its_undo(ctx: Ctx) -> Result<()> {
    let notifications = Kind::installed::<PodNotification>(&ctx).await?;
    let exec = json!({"exec": {"command": ["sync"]}});
    let held = json!({"exec": {"command": ["lock"], "hold": true}});
    let good = [
        json!({"podName": "db-0", "notifier": "reload"}),
        json!({"podName": "db-0", "notifier": "reload", "containers": ["main"]}),
        json!({"podName": "db-0", "action": exec, "containers": ["main"], "undo": {"notifier": "thaw"}}),
        json!({"podName": "db-0", "notifier": "freeze", "undo": {"action": {"signal": "SIGHUP"}, "afterSeconds": 3}}),
        json!({"podName": "db-0", "action": {"tcpSocket": {"port": 80}}, "notifier": null}),
        json!({"podName": "db-0", "action": held, "undo": {}}),
        json!({"podName": "db-0", "action": held, "undo": {"afterSeconds": 3}}),
        json!({"podName": "db-0", "action": held, "undo": {"notifier": "thaw"}}),
    ];
    notifications.takes(&good).await?;
    let bad = [
        (json!({"podName": "db-0"}), "write exactly one of notifier and action"),
        (json!({"podName": "db-0", "notifier": "a", "action": exec}), "write exactly one of notifier and action"),
        (json!({"podName": "db-0", "action": {}}), "write exactly one of exec, signal, httpGet and tcpSocket"),
        (
            json!({"podName": "db-0", "action": {"exec": {"command": ["a"]}, "signal": "HUP"}}),
            "write exactly one of exec, signal, httpGet and tcpSocket",
        ),
        (json!({"podName": "db-0", "action": {"signal": "SIGFOO"}}), "Unsupported value"),
        (json!({"podName": "db-0", "action": {"exec": {"command": []}}}), "command"),
        (json!({"podName": "db-0", "notifier": "a", "undo": {}}), "write exactly one of notifier and action"),
        (json!({"podName": "db-0", "notifier": "a", "undo": {"action": {}}}), "write exactly one of exec"),
        (json!({"podName": "db-0", "action": exec, "undo": {}}), "may be omitted only with action.exec.hold"),
        (json!({"podName": "db-0", "action": held}), "write `undo: {}`"),
        (json!({"podName": "db-0", "action": exec, "undo": {"action": held}}), "an undo cannot hold its session"),
        (json!({"podName": "db-0", "notifier": "a", "startDeadlineSeconds": 0}), "startDeadlineSeconds"),
        (json!({"podName": "", "notifier": "a"}), "podName"),
        (json!({"podName": "db\0", "notifier": "a"}), "spec.podName"),
        (json!({"podName": "db/../x", "notifier": "a"}), "spec.podName"),
        (json!({"podName": "db-0", "notifier": "a", "containers": ["Main"]}), "spec.containers[0]"),
        (json!({"podName": "db-0", "action": {"exec": {"command": ["a", "\0"]}}}), "spec.action.exec.command[1]"),
        (json!({"notifier": "a"}), "podName"),
    ];
    notifications.refuses(&bad).await
}

pub(crate) async fn a_pod_notification_changes_only_in_what_may_change(ctx: Ctx) -> Result<()> {
    let notifications = Kind::installed::<PodNotification>(&ctx).await?;
    let spec = json!({"podName": "db-0", "notifier": "freeze", "undo": {"notifier": "thaw", "afterSeconds": 3600}});
    notifications.create_for_good("kept", &spec).await?;
    let changes = [
        json!({"podName": "db-1"}),
        json!({"notifier": "other"}),
        json!({"notifier": null, "action": {"exec": {"command": ["sync"]}}}),
        json!({"startDeadlineSeconds": 61}),
        json!({"retry": "UntilTimeout"}),
        json!({"undo": null}),
        json!({"undo": {"notifier": "other"}}),
        json!({"undo": {"notifier": null, "action": {"exec": {"command": ["sync"]}}}}),
        json!({"undo": {"afterSeconds": null}}),
    ];
    notifications.keeps("kept", "spec is immutable except undoRequested and ttlSecondsAfterFinished", &changes).await?;
    notifications.change("kept", &json!({"ttlSecondsAfterFinished": 3600})).await?;
    notifications.change("kept", &json!({"undoRequested": true})).await?;
    let taken_back = [json!({"undoRequested": false}), json!({"undoRequested": null})];
    notifications.keeps("kept", "undoRequested cannot be set back to false", &taken_back).await?;
    notifications.change("kept", &json!({"ttlSecondsAfterFinished": null})).await
}

pub(crate) async fn a_notification_never_changes(ctx: Ctx) -> Result<()> {
    let notifications = Kind::installed::<Notification>(&ctx).await?;
    let operator = json!({"matchExpressions": [{"key": "app", "operator": "Has"}]});
    let unknown = "spec.selector.matchExpressions[0].operator: Unsupported value";
    notifications.refuses(&[(json!({"selector": operator, "notifier": "reload"}), unknown)]).await?;
    let spec = json!({"selector": {"matchLabels": {"app": "none"}}, "notifier": "reload", "parallelism": -1});
    notifications.create_for_good("kept", &spec).await?;
    let changes = [
        json!({"notifier": "other"}),
        json!({"parallelism": 1}),
        json!({"policy": "PreExistingPods"}),
        json!({"selector": {"matchLabels": {"app": "other"}}}),
    ];
    notifications.keeps("kept", "spec is immutable", &changes).await
}
