//! What the real kubectl says of rollouts. It comes with a cluster that a kubeconfig names; on the embedded one
//! `docs/deployments.md` is tried with it.

use std::process::{Output, Stdio};

use anyhow::{Context, Result, ensure};
use boathook_api::{deployment_lifecycle::Stage, pod_notification::Executor};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        lifecycles::{FAILS_OR_PASSES, hook, policy},
        rollouts::{Web, web},
    },
};
use serde_json::json;
use tokio::{process::Command, time::timeout};

/// Whether it waited since before or asks afterwards; and it follows the version that is let in to its end.
pub(crate) async fn kubectl_rollout_status_fails_when_a_hook_aborts_and_not_after(ctx: Ctx, _: Executor) -> Result<()> {
    for at in [Stage::Pre, Stage::Mid] {
        let hooks = json!({at.as_str(): policy(hook(FAILS_OR_PASSES), "Abort")});
        let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), hooks).await?;
        web.roll_to("v2").await?;
        web.hook_runs(at).await?;
        let waits = tokio::spawn(rollout_status(&ctx)?);
        web.refuse(at).await?;
        web.aborted().await?;
        for output in [waits.await??, rollout_status(&ctx)?.await?] {
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.code() == Some(1), "{at}: kubectl ended with {output:?}");
            ensure!(said.contains("exceeded its progress deadline"), "{at}: kubectl says: {said}");
        }
        web.roll_to("v3").await?;
        web.hook_runs(at).await?;
        let waits = tokio::spawn(rollout_status(&ctx)?);
        web.release(at).await?;
        let output = waits.await??;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && said.contains("successfully rolled out"), "{at}: kubectl: {output:?}");
        web.completed().await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), [format!("{at} v2"), format!("{at} v3")]);
    }
    Ok(())
}

/// `kubectl rollout status`, begun at once; what it said when it has ended.
fn rollout_status(ctx: &Ctx) -> Result<impl Future<Output = Result<Output>> + use<>> {
    let mut command = Command::new("kubectl");
    command.args(["--namespace", ctx.namespace(), "rollout", "status", "deployment/web"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().context("failed to start kubectl")?;
    Ok(async move {
        let ended = timeout(DEADLINE, child.wait_with_output()).await;
        Ok(ended.context("`kubectl rollout status` does not end")??)
    })
}
