//! What is written into hooks, templates and snapshots is asked of their authors; and nothing else is asked of anyone.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate, pod_notification::Executor, words::GROUP,
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        installation::Installation,
        people::{Person, Written, refusal},
    },
    poll::Look,
};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

pub(crate) async fn who_may_not_run_commands_writes_none_into_hooks_and_templates(ctx: Ctx, _: Executor) -> Result<()> {
    let user = ctx.person("ishmael")?;
    for kind in ["executionhooktemplates", "applicationsnapshots"] {
        user.may(kind, GROUP, kind, &["create", "patch"]).await?;
    }
    let (command, notifier) = (json!({"exec": {"command": ["true"]}}), json!({"notifier": "freeze"}));
    let template: ExecutionHookTemplate = named("own", json!({"preAction": command}))?;
    let with_notifier: ExecutionHookTemplate = named("own", json!({"preAction": notifier}))?;
    let source = json!({"persistentVolumeClaimName": "data"});
    let without_hooks: ApplicationSnapshot = named("own", json!({"source": source}))?;
    let infos = json!([{"executionHookTemplateName": "mysql"}]);
    let with_hooks: ApplicationSnapshot = named("own", json!({"source": source, "executionHookInfos": infos}))?;
    user.in_force(async || user.try_to_create(&without_hooks).await).await?;
    lacks(&ctx, &user, &template, "create pods/exec").await?;
    lacks(&ctx, &user, &with_notifier, "create podnotifications").await?;
    lacks(&ctx, &user, &with_hooks, "create executionhooks").await?;

    // A hook that names a template asks for no more than to create hooks, and a command of its own for `pods/exec`.
    user.may("hooks", GROUP, "executionhooks", &["create", "patch"]).await?;
    let by_template: ExecutionHook = named("own", json!({"executionHookTemplateName": "mysql"}))?;
    user.in_force(async || user.try_to_create(&by_template).await).await?;
    user.try_to_create(&with_hooks).await.context("who may create hooks may have them run around a snapshot")?;
    lacks(&ctx, &user, &named::<ExecutionHook>("own", json!({"preAction": command}))?, "create pods/exec").await?;
    let undo = json!({"preAction": notifier, "postAction": command});
    lacks(&ctx, &user, &named::<ExecutionHook>("own", undo)?, "create pods/exec").await?;

    // Another user's template can be changed in all but its spec.
    let others: ExecutionHookTemplate = named("others", json!({"preAction": command, "postAction": command}))?;
    ctx.create(&others).await?;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    user.in_force(async || user.patch::<ExecutionHookTemplate>("others", label.clone()).await).await?;
    for change in [
        json!({"preAction": {"exec": {"command": ["false"]}}}),
        json!({"postAction": {"exec": {"command": ["false"]}}}),
        json!({"preAction": {"exec": null, "httpGet": {"port": 80}}}),
        json!({"postAction": null}),
        json!({"expirationSeconds": 9}),
    ] {
        let refused = refusal(user.patch::<ExecutionHookTemplate>("others", json!({"spec": change})).await)?;
        ensure!(refused.contains("create pods/exec"), "{change}: {refused}");
    }

    // Who may exec anyway may write it down too.
    user.may("executor", "", "pods/exec", &["create"]).await?;
    user.in_force(async || user.try_to_create(&template).await).await?;
    lacks(&ctx, &user, &with_notifier, "create podnotifications").await
}

pub(crate) async fn with_boathook_down_no_command_is_written_and_every_thaw_can_be_asked_for(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let command = json!({"exec": {"command": ["true"]}});
    ctx.create(&named::<ExecutionHookTemplate>("plain", json!({"preAction": command}))?).await?;
    controller.kill().await?;

    // By its own author, and by anyone who may: a hook is not a command.
    let admin = ctx.api::<ExecutionHook>();
    let hook: ExecutionHook = named("hook", json!({"executionHookTemplateName": "plain"}))?;
    admin.create(&PostParams::default(), &hook).await?;
    let asked = Patch::Merge(json!({"spec": {"thawRequested": true}}));
    admin.patch("hook", &PatchParams::default(), &asked).await.context("a thaw cannot be asked for")?;
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    ctx.api::<ExecutionHookTemplate>().patch("plain", &PatchParams::default(), &label).await?;

    let inline: ExecutionHook = named("inline", json!({"preAction": command}))?;
    let refused = admin.create(&PostParams::default(), &inline).await.err().context("nobody checked its author")?;
    ensure!(refused.to_string().contains("hook-actions.boathook.dev"), "{refused}");
    installation.bury_leader().await
}

/// Waits until only this right is missing: what was granted comes into force a moment later.
async fn lacks<K: Written>(ctx: &Ctx, user: &Person, object: &K, right: &str) -> Result<()> {
    let (kind, words) = (K::kind(&()), format!("`{right}`"));
    ctx.poll_until(DEADLINE, &format!("{kind} is refused for want of {words}"), async || {
        let refused = refusal(user.try_to_create(object).await).with_context(|| format!("of the {kind}"))?;
        Ok(if refused.contains(&words) { Look::Done(()) } else { Look::NotYet(refused) })
    })
    .await
}

fn named<K: Written>(name: &str, spec: Value) -> Result<K> {
    let api_version = format!("{}/{}", K::group(&()), K::version(&()));
    let object = json!({"apiVersion": api_version, "kind": K::kind(&()), "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).context("the object is not of its kind")
}
