//! A lifecycle runs commands as its Deployment's service account: its author must be allowed to create pods.

use anyhow::{Result, ensure};
use boathook_api::{DeploymentLifecycle, deployment_lifecycle::Stage, pod_notification::Executor, words::GROUP};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        lifecycles::{hook, lifecycle, passes, waits},
        people::refusal,
        rollouts::{Web, web},
    },
    poll::Look,
};
use serde_json::json;

pub(crate) async fn who_may_not_create_pods_writes_no_lifecycle(ctx: Ctx, _: Executor) -> Result<()> {
    let user = ctx.person("ishmael")?;
    user.may("lifecycles", GROUP, "deploymentlifecycles", &["create", "patch"]).await?;
    let own = lifecycle("own", json!({"pre": passes()}))?;
    ctx.poll_until(DEADLINE, "what is missing is the right to create pods", async || {
        let refused = refusal(user.try_to_create(&own).await)?;
        Ok(match refused.contains("create pods") {
            true => Look::Done(()),
            // The API server's own, while it does not know of the grant.
            false => Look::NotYet(refused),
        })
    })
    .await?;

    // Another's can be changed in all but what it runs.
    ctx.create(&lifecycle("others", json!({"pre": passes()}))?).await?;
    let harmless = json!({"metadata": {"labels": {"a": "b"}}});
    user.in_force(async || user.patch::<DeploymentLifecycle>("others", harmless.clone()).await).await?;
    for change in [json!({"pre": hook("exit 1")}), json!({"post": passes()})] {
        let refused = refusal(user.patch::<DeploymentLifecycle>("others", json!({"spec": change})).await)?;
        ensure!(refused.contains("create pods"), "{change}: {refused}");
    }

    user.may("pods", "", "pods", &["create"]).await?;
    user.in_force(async || user.create(&own).await).await?;
    Ok(())
}

/// A rollout runs what its status has recorded, and its phase opens the gate: the right to create pods is not enough.
pub(crate) async fn only_boathook_writes_the_record_of_a_rollout(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": waits()})).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Pre).await?;
    let user = ctx.person("queequeg")?;
    user.may("records", GROUP, "deploymentlifecycles/status", &["patch"]).await?;
    user.may("pods", "", "pods", &["create"]).await?;
    let steals = json!({"rollout": {"hooks": {"post": hook("cat /proc/self/environ")}}});
    for change in [json!({"rollout": {"phase": "Rolling"}}), steals, json!({"checkedGeneration": 7})] {
        let change = json!({"status": change});
        ctx.poll_until(DEADLINE, "Boathook refuses the status", async || {
            let refused = refusal(user.patch_status::<DeploymentLifecycle>("web", change.clone()).await)?;
            Ok(match refused.contains("only Boathook writes the status of `deploymentlifecycles`") {
                true => Look::Done(()),
                // The API server's own, while it does not know of the grant.
                false => Look::NotYet(refused),
            })
        })
        .await?;
    }
    web.release(Stage::Pre).await?;
    web.completed().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"]);
    Ok(())
}
