//! `rollout` and `set image`.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has, rows},
    manifests::{BUSYBOX, DISTROLESS, deployment},
};

pub(crate) async fn an_image_is_set_rolled_out_and_undone(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    // The image's own command: both images have one that stays.
    let manifest = deployment("web", 2);
    let manifest = manifest.lines().filter(|line| !line.contains("command:")).collect::<Vec<_>>().join("\n");
    kubectl.apply(&manifest.replace(BUSYBOX, &format!("{BUSYBOX}\n        stdin: true"))).await?;
    let first = kubectl.ok("rollout status deployment/web").await?;
    ensure!(first.ends_with("deployment \"web\" successfully rolled out\n"), "{first}");
    kubectl.ok("annotate deployment web kubernetes.io/change-cause=first").await?;

    assert_eq!(
        kubectl.ok(&format!("set image deployment/web main={DISTROLESS}")).await?,
        "deployment.apps/web image updated\n"
    );
    kubectl.ok("annotate deployment web kubernetes.io/change-cause=second --overwrite").await?;
    let told = kubectl.ok("rollout status deployment/web").await?;
    has(&told, &["successfully rolled out"])?;
    let images = async || {
        kubectl.ok("get pods -l app=web --field-selector status.phase=Running -o 'jsonpath={.items[*].spec.containers[0].image}'").await
    };
    kubectl
        .until("get pods -l app=web -o name", "the old pods are gone", |outcome| outcome.stdout.lines().count() == 2)
        .await?;
    assert_eq!(images().await?, format!("{DISTROLESS} {DISTROLESS}"));

    let history = kubectl.ok("rollout history deployment/web").await?;
    assert_eq!(history, "deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         first\n2         second\n\n");
    let one = kubectl.ok("rollout history deployment/web --revision=1").await?;
    has(
        &one,
        &[
            "deployment.apps/web with revision #1\n",
            "kubernetes.io/change-cause: first",
            &format!("Image:\t{BUSYBOX}\n"),
        ],
    )?;
    has(
        &kubectl.fails("rollout history deployment/web --revision=7").await?,
        &["error: unable to find the specified revision"],
    )?;

    assert_eq!(kubectl.ok("rollout undo deployment/web").await?, "deployment.apps/web rolled back\n");
    kubectl.ok("rollout status deployment/web").await?;
    kubectl
        .until("get pods -l app=web -o name", "the undone pods are gone", |outcome| outcome.stdout.lines().count() == 2)
        .await?;
    assert_eq!(images().await?, format!("{BUSYBOX} {BUSYBOX}"));
    let history = kubectl.ok("rollout history deployment/web").await?;
    assert_eq!(rows(&history)[2..4], [["2", "second"], ["3", "first"]], "{history}");
    assert_eq!(kubectl.ok("get replicasets -l app=web -o name").await?.lines().count(), 2, "the old set is used again");
    kubectl.ok("rollout undo deployment/web --to-revision=2").await?;
    assert_eq!(kubectl.read("deployment/web", "{.spec.template.spec.containers[0].image}").await?, DISTROLESS);
    has(
        &kubectl.fails("set image deployment/web nobody=x").await?,
        &["error: unable to find container named \"nobody\""],
    )
}

pub(crate) async fn a_paused_rollout_goes_on_when_resumed(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&deployment("web", 1)).await?;
    kubectl.ok("rollout status deployment/web").await?;
    assert_eq!(kubectl.ok("rollout pause deployment/web").await?, "deployment.apps/web paused\n");
    has(&kubectl.fails("rollout pause deployment/web").await?, &["error: deployments.apps \"web\" is already paused"])?;
    has(
        &kubectl.fails("rollout restart deployment/web").await?,
        &["can't restart paused deployment (run rollout resume first)"],
    )?;
    kubectl.ok("set env deployment/web A=1").await?;
    kubectl.ok("wait --for=jsonpath={.status.observedGeneration}=3 deployment/web").await?;
    assert_eq!(kubectl.ok("get replicasets -l app=web -o name").await?.lines().count(), 1, "it went on while paused");
    has(&kubectl.ok("describe deployment web").await?, &["Progressing    Unknown  DeploymentPaused\n"])?;

    assert_eq!(kubectl.ok("rollout resume deployment/web").await?, "deployment.apps/web resumed\n");
    has(&kubectl.fails("rollout resume deployment/web").await?, &["is not paused"])?;
    kubectl.ok("rollout status deployment/web").await?;
    assert_eq!(kubectl.ok("get replicasets -l app=web -o name").await?.lines().count(), 2);
    Ok(())
}

pub(crate) async fn a_restart_replaces_every_pod(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&deployment("web", 2)).await?;
    kubectl.ok("rollout status deployment/web").await?;
    let before = kubectl.ok("get pods -l app=web -o name").await?;
    assert_eq!(kubectl.ok("rollout restart deployment/web").await?, "deployment.apps/web restarted\n");
    kubectl.ok("rollout status deployment/web --watch").await?;
    let after = kubectl
        .until("get pods -l app=web -o name", "the old pods are gone", |outcome| outcome.stdout.lines().count() == 2)
        .await?
        .success()?;
    ensure!(after.lines().all(|pod| !before.contains(pod)), "an old pod stays:\n{before}\n{after}");
    let at = kubectl
        .read("deployment/web", r"{.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}")
        .await?;
    ensure!(!at.is_empty(), "no time of the restart");
    Ok(())
}

pub(crate) async fn a_rollout_that_cannot_go_on_fails(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let manifest = deployment("web", 1).replace("  replicas:", "  progressDeadlineSeconds: 2\n  replicas:");
    kubectl.apply(&manifest).await?;
    kubectl.ok("wait --for=condition=Available deployment/web").await?;
    kubectl.ok("set image deployment/web main=localhost/no-such:1").await?;
    let failed = kubectl.run("rollout status deployment/web", None).await?;
    has(&failed.failure(1)?, &["error: deployment \"web\" exceeded its progress deadline\n"])?;
    kubectl.shows("get pods -l app=web", &["ErrImageNeverPull", "1/1 Running"]).await.map(drop)
}
