//! Nobody gains the right to run a command by using Boathook: seen by a user who may patch pods and not exec in them.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::Executor,
    words::{NOTIFIERS_PREFIX, reason},
};
use boathook_install::roles;
use boathook_tests::{
    Ctx,
    boathook::{
        notifications::{pod_notification, succeeded},
        people::{Person, refusal},
        recording::{freezer, recorder},
    },
};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::ResourceExt;
use serde_json::{Value, json};

pub(crate) async fn who_may_patch_pods_and_not_exec_runs_what_is_declared_and_no_more(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let user = ctx.person("starbuck")?;
    let declared = json!({"podName": "box", "notifier": "freeze", "undo": {"notifier": "thaw"}});
    ensure!(refused(&user, &declared).await?.contains("is forbidden"), "nothing was granted yet");

    user.may("patcher", "", "pods", &["get", "patch"]).await?;
    let notifier = format!("{}-notifier", ctx.namespace());
    ctx.create_cluster_scoped(roles::cluster_role(&notifier, roles::notifier())).await?;
    user.bind("ClusterRole", &notifier).await?;
    let frozen = created(&user, &declared).await?;

    // What is declared runs, and is taken back by the one who may.
    succeeded(&ctx.ended(&frozen).await?)?;
    let asked = json!({"spec": {"undoRequested": true}});
    user.patch::<PodNotification>(&frozen, asked).await.context("the user cannot ask for the undo")?;
    ctx.undone(&frozen, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);

    // A declaration is not the user's to change, though the pod is.
    let annotate = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    user.patch::<Pod>("box", annotate("example.com/note", "seen"))
        .await
        .context("the user cannot patch pods at all")?;
    let evil = "[{name: freeze, handler: {exec: {command: [sh, -c, id]}}}]";
    refusal(user.patch::<Pod>("box", annotate(&format!("{NOTIFIERS_PREFIX}main"), evil)).await)?;

    // Nor may a command of the user's own run, as the handler or as what takes it back.
    let action = json!({"exec": {"command": ["sh", "-c", "echo own >> log/lines"]}, "timeoutSeconds": 60});
    let own_undo = json!({"podName": "box", "notifier": "freeze", "undo": {"action": action}});
    for own in [json!({"podName": "box", "action": action}), own_undo] {
        let message = refused(&user, &own).await?;
        ensure!(message.contains("pods/exec"), "the right that is missing is not named: {message}");
    }
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);

    // Who may exec there anyway may write it down too.
    user.may("executor", "", "pods/exec", &["create", "get"]).await?;
    let own = created(&user, &json!({"podName": "box", "action": action})).await?;
    succeeded(&ctx.ended(&own).await?)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw", "own"]);
    Ok(())
}

fn by_user(spec: &Value) -> Result<PodNotification> {
    let mut object = pod_notification("", spec.clone())?;
    object.metadata = ObjectMeta { generate_name: Some("by-user-".to_owned()), ..ObjectMeta::default() };
    Ok(object)
}

async fn refused(user: &Person, spec: &Value) -> Result<String> {
    refusal(user.create(&by_user(spec)?).await)
}

/// Creates this as soon as the API server knows that the user may, and returns its name.
async fn created(user: &Person, spec: &Value) -> Result<String> {
    let object = by_user(spec)?;
    Ok(user.in_force(async || user.create(&object).await).await?.name_any())
}
