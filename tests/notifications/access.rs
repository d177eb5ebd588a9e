//! Nobody gains the right to run a command by using Boathook: seen by a user who may patch pods and not exec in them.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::Executor,
    words::{NOTIFIERS_PREFIX, reason},
};
use boathook_install::roles;
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        notifications::{pod_notification, succeeded},
        recording::{freezer, recorder},
    },
    poll::Look,
};
use k8s_openapi::{
    api::{
        core::v1::Pod,
        rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const USER: &str = "starbuck";

pub(crate) async fn who_may_patch_pods_and_not_exec_runs_what_is_declared_and_no_more(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    ctx.run_pod(freezer(recorder(&ctx, "box")).build()).await?;
    let user = ctx.client_as(USER)?;
    let declared = json!({"podName": "box", "notifier": "freeze", "undo": {"notifier": "thaw"}});
    ensure!(refusal(&ctx, &user, &declared).await?.contains("is forbidden"), "nothing was granted yet");

    grant(&ctx, "patcher", "pods", &["get", "patch"]).await?;
    let notifier = format!("{}-notifier", ctx.namespace());
    ctx.create_cluster_scoped(roles::cluster_role(&notifier, roles::notifier())).await?;
    bind(&ctx, "ClusterRole", &notifier).await?;
    let frozen = in_force(&ctx, &user, &declared).await?;

    // What is declared runs, and is taken back by the one who may.
    succeeded(&ctx.ended(&frozen).await?)?;
    let objects: Api<PodNotification> = Api::namespaced(user.clone(), ctx.namespace());
    let asked = Patch::Merge(json!({"spec": {"undoRequested": true}}));
    objects.patch(&frozen, &PatchParams::default(), &asked).await.context("the user cannot ask for the undo")?;
    ctx.undone(&frozen, reason::UNDO_SUCCEEDED).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);

    // A declaration is not the user's to change, though the pod is.
    let pods: Api<Pod> = Api::namespaced(user.clone(), ctx.namespace());
    let annotate = |key: &str, value: &str| Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    let harmless = annotate("example.com/note", "seen");
    pods.patch("box", &PatchParams::default(), &harmless).await.context("the user cannot patch pods at all")?;
    let evil = "[{name: freeze, handler: {exec: {command: [sh, -c, id]}}}]";
    let refused = pods.patch("box", &PatchParams::default(), &annotate(&format!("{NOTIFIERS_PREFIX}main"), evil)).await;
    let refused = refused.err().context("the user changed a declaration")?;
    ensure!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");

    // Nor may a command of the user's own run, as the handler or as what takes it back.
    let action = json!({"exec": {"command": ["sh", "-c", "echo own >> log/lines"]}});
    let own_undo = json!({"podName": "box", "notifier": "freeze", "undo": {"action": action}});
    for own in [json!({"podName": "box", "action": action}), own_undo] {
        let message = refusal(&ctx, &user, &own).await?;
        ensure!(message.contains("pods/exec"), "the right that is missing is not named: {message}");
    }
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);

    // Who may exec there anyway may write it down too.
    grant(&ctx, "executor", "pods/exec", &["create", "get"]).await?;
    let own = in_force(&ctx, &user, &json!({"podName": "box", "action": action})).await?;
    succeeded(&ctx.ended(&own).await?)?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw", "own"]);
    Ok(())
}

async fn create(ctx: &Ctx, user: &Client, spec: &Value) -> Result<kube::Result<PodNotification>> {
    let mut object = pod_notification("", spec.clone())?;
    object.metadata = ObjectMeta { generate_name: Some("by-user-".to_owned()), ..ObjectMeta::default() };
    let objects: Api<PodNotification> = Api::namespaced(user.clone(), ctx.namespace());
    Ok(objects.create(&PostParams::default(), &object).await)
}

/// In which words the user may not create this.
async fn refusal(ctx: &Ctx, user: &Client, spec: &Value) -> Result<String> {
    match create(ctx, user, spec).await? {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(status.message),
        Err(error) => Err(error).context("failed in another way than by being forbidden"),
        Ok(created) => anyhow::bail!("the user created {created:?}"),
    }
}

/// Creates this as soon as the API server knows that the user may, and returns its name.
async fn in_force(ctx: &Ctx, user: &Client, spec: &Value) -> Result<String> {
    ctx.poll_until(DEADLINE, "the new role binding is in force", async || match create(ctx, user, spec).await? {
        Ok(created) => Ok(Look::Done(created.name_any())),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Look::NotYet(status.message)),
        Err(error) => Err(error.into()),
    })
    .await
}

/// Lets the user do this with pods in the scenario's namespace.
async fn grant(ctx: &Ctx, name: &str, resource: &str, verbs: &[&str]) -> Result<()> {
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
        ..PolicyRule::default()
    };
    ctx.create(&Role { metadata: named(name), rules: Some(vec![rule]) }).await?;
    bind(ctx, "Role", name).await
}

async fn bind(ctx: &Ctx, kind: &str, role: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io".to_owned();
    let user =
        Subject { api_group: Some(group.clone()), kind: "User".to_owned(), name: USER.to_owned(), namespace: None };
    let binding = RoleBinding {
        metadata: named(role),
        role_ref: RoleRef { api_group: group, kind: kind.to_owned(), name: role.to_owned() },
        subjects: Some(vec![user]),
    };
    ctx.create(&binding).await.map(drop)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
