//! `wait`.

use std::time::Duration;

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has},
    manifests::{IDLE, config_map, deployment, pod},
};

pub(crate) async fn a_condition_is_waited_for(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&deployment("web", 1)).await?;
    // It is not so yet, or was a moment ago: either way the wait ends when it is.
    assert_eq!(
        kubectl.ok("wait --for=condition=Available deployment/web").await?,
        "deployment.apps/web condition met\n"
    );
    assert_eq!(
        kubectl.ok("wait --for=condition=Available=True deployment --all").await?,
        "deployment.apps/web condition met\n"
    );
    let pods = kubectl.ok("wait --for=condition=Ready pod -l app=web").await?;
    ensure!(pods.starts_with("pod/web-") && pods.ends_with(" condition met\n"), "{pods}");
    kubectl.ok("scale deployment web --replicas=0").await?;
    kubectl.apply(&pod("over", "exit 0").replace("spec:\n", "spec:\n  restartPolicy: Never\n")).await?;
    kubectl.ok("wait --for=condition=Ready=False pod/over").await.map(drop)
}

pub(crate) async fn a_deletion_is_waited_for(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    let waiting = kubectl.start("wait --for=delete pod/box")?;
    kubectl.ok("delete pod box --wait=false").await?;
    // It says so only if it began before the pod was gone.
    waiting.end().await?;
    // What is not there is deleted.
    kubectl.ok("wait --for=delete pod/box").await?;
    has(
        &kubectl.fails("wait --for=condition=Ready pod/box").await?,
        &["Error from server (NotFound): pods \"box\" not found"],
    )
}

pub(crate) async fn a_field_is_waited_for(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("course", "north")])).await?;
    assert_eq!(
        kubectl.ok("wait --for=jsonpath={.data.course}=north configmap/map").await?,
        "configmap/map condition met\n"
    );
    let waiting = kubectl.start("wait --for=jsonpath={.data.course}=south configmap/map")?;
    let any = kubectl.start("wait --for=jsonpath={.data.speed} configmap/map")?;
    let created = kubectl.start("wait --for=create configmap/late")?;
    kubectl.apply(&config_map("map", &[("course", "south"), ("speed", "5")])).await?;
    kubectl.apply(&config_map("late", &[])).await?;
    assert_eq!(waiting.end().await?, "configmap/map condition met\n");
    assert_eq!(any.end().await?, "configmap/map condition met\n");
    assert_eq!(created.end().await?, "configmap/late condition met\n");
    Ok(())
}

pub(crate) async fn a_wait_in_vain_ends_at_its_timeout(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("course", "north")])).await?;
    let begun = std::time::Instant::now();
    let failed = kubectl.fails("wait --for=jsonpath={.data.course}=south configmap/map --timeout=1s").await?;
    assert_eq!(failed, "error: timed out waiting for the condition on configmaps/map\n");
    ensure!(begun.elapsed() >= Duration::from_secs(1), "it did not wait");
    Ok(())
}
