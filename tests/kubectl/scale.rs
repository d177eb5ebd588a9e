//! `scale`.

use anyhow::Result;
use boathook_tests::Ctx;

use crate::{
    boats::Boats,
    kubectl::{Kubectl, has, rows},
    manifests::{config_map, deployment},
};

pub(crate) async fn a_deployment_is_scaled(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&deployment("web", 1)).await?;
    kubectl.ok("rollout status deployment/web").await?;
    assert_eq!(kubectl.ok("scale deployment web --replicas=3").await?, "deployment.apps/web scaled\n");
    kubectl.ok("wait --for=jsonpath={.status.readyReplicas}=3 deployment/web").await?;
    assert_eq!(kubectl.ok("get pods -l app=web -o name").await?.lines().count(), 3);
    assert_eq!(rows(&kubectl.ok("get deployment web").await?)[1][..4], ["web", "3/3", "3", "3"]);
    let refused = kubectl.fails("scale deployment web --replicas=1 --current-replicas=2").await?;
    has(&refused, &["error: Expected replicas to be 2, was 3"])?;
    kubectl.ok("scale deployment web --replicas=0 --current-replicas=3").await?;
    kubectl.until("get pods -l app=web -o name", "no pod is left", |outcome| outcome.stdout.is_empty()).await?;
    has(&kubectl.fails("scale deployment none --replicas=1").await?, &["deployments.apps \"none\" not found"])?;
    has(&kubectl.fails("scale deployment web --replicas=-1").await?, &["The --replicas=COUNT flag is required"])?;
    kubectl.apply(&config_map("map", &[])).await?;
    has(
        &kubectl.fails("scale configmap map --replicas=1").await?,
        &["the server could not find the requested resource"],
    )
}

pub(crate) async fn a_custom_object_is_scaled(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let boats = Boats::define(&ctx, &kubectl).await?;
    kubectl.apply(&boats.boat("gig", 4)).await?;
    let scaled = kubectl.ok(&format!("scale {} gig --replicas=6", boats.short)).await?;
    assert_eq!(scaled, format!("boat.{}/gig scaled\n", boats.group));
    assert_eq!(kubectl.read(&format!("{}/gig", boats.short), "{.spec.oars}").await?, "6");
    let scale = kubectl
        .ok(&format!("get {} gig --subresource=scale -o 'jsonpath={{.kind}} {{.spec.replicas}}'", boats.short))
        .await?;
    assert_eq!(scale, "Scale 6");
    Ok(())
}
