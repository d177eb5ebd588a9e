//! `delete`: finalizers, dependents, grace.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has},
    manifests::{IDLE, config_map, deployment, pod},
};

pub(crate) async fn a_finalizer_holds_an_object_until_it_is_taken_off(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let held = config_map("map", &[]).replace("  name: map", "  name: map\n  finalizers: [example.com/held]");
    kubectl.apply(&held).await?;
    let deleted = format!("configmap \"map\" deleted from {} namespace\n", kubectl.namespace());
    assert_eq!(kubectl.ok("delete configmap map --wait=false").await?, deleted);
    ensure!(
        !kubectl.read("configmap/map", "{.metadata.deletionTimestamp}").await?.is_empty(),
        "it is not being deleted"
    );
    let in_vain = kubectl.fails("delete configmap map --timeout=5s").await?;
    has(&in_vain, &["timed out waiting for the condition on configmaps/map"])?;

    let mut waiting = kubectl.start("delete configmap map")?;
    waiting.line("that it is deleted", |line| line.starts_with("configmap \"map\" deleted")).await?;
    kubectl.ok(r#"patch configmap map --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'"#).await?;
    waiting.end().await?;
    has(&kubectl.fails("get configmap map").await?, &["NotFound"])
}

/// A Deployment of one pod, rolled out.
async fn rolled_out(kubectl: &Kubectl) -> Result<()> {
    kubectl.apply(&deployment("web", 1)).await?;
    kubectl.ok("rollout status deployment/web").await.map(drop)
}

async fn are_gone(kubectl: &Kubectl) -> Result<()> {
    kubectl
        .until("get replicasets,pods -l app=web -o name", "the dependents are gone", |outcome| {
            outcome.stdout.is_empty()
        })
        .await
        .map(drop)
}

pub(crate) async fn background_deletion_takes_the_dependents_afterwards(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    rolled_out(&kubectl).await?;
    let deleted = kubectl.ok("delete deployment web").await?;
    assert_eq!(deleted, format!("deployment.apps \"web\" deleted from {} namespace\n", kubectl.namespace()));
    are_gone(&kubectl).await?;
    rolled_out(&kubectl).await?;
    kubectl.ok("delete deployment web --cascade=background").await?;
    are_gone(&kubectl).await
}

pub(crate) async fn foreground_deletion_waits_for_the_dependents(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    rolled_out(&kubectl).await?;
    let pod = kubectl.ok("get pods -l app=web -o name").await?;
    let pod = pod.trim();
    // While the pod is held, its owners stay.
    kubectl.ok(&format!(r#"patch {pod} --type=json -p '[{{"op":"add","path":"/metadata/finalizers","value":["example.com/held"]}}]'"#)).await?;
    kubectl.ok("delete deployment web --cascade=foreground --wait=false").await?;
    assert_eq!(kubectl.read("deployment/web", "{.metadata.finalizers}").await?, r#"["foregroundDeletion"]"#);
    kubectl.ok(&format!("wait --for=jsonpath={{.metadata.deletionTimestamp}} {pod}")).await?;
    has(
        &kubectl.ok("get deployment,replicaset -l app=web -o name").await?,
        &["deployment.apps/web\n", "replicaset.apps/web-"],
    )?;
    kubectl.ok(&format!(r#"patch {pod} --type=json -p '[{{"op":"remove","path":"/metadata/finalizers"}}]'"#)).await?;
    kubectl.ok("wait --for=delete deployment/web").await?;
    assert_eq!(kubectl.ok("get replicasets,pods -l app=web -o name").await?, "", "the owner went first");
    Ok(())
}

pub(crate) async fn orphaned_dependents_stay(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    rolled_out(&kubectl).await?;
    kubectl.ok("delete deployment web --cascade=orphan").await?;
    let sets = kubectl
        .ok("get replicasets -l app=web -o 'jsonpath={.items[*].metadata.ownerReferences}|{.items[*].metadata.name}'")
        .await?;
    ensure!(sets.starts_with("|web-"), "not an orphan: {sets}");
    let pods = kubectl.ok("get pods -l app=web --field-selector status.phase=Running -o name").await?;
    assert_eq!(pods.lines().count(), 1, "{pods}");
    // The set alone, and its pod stays too.
    kubectl.ok("delete replicaset -l app=web --cascade=orphan").await?;
    assert_eq!(kubectl.ok("get pods -l app=web -o name").await?, pods);
    assert_eq!(kubectl.ok("get pods -l app=web -o 'jsonpath={.items[*].metadata.ownerReferences}'").await?, "");
    Ok(())
}

pub(crate) async fn the_grace_period_is_the_one_that_was_given(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    // These do not end when they are told to.
    let script = "trap '' TERM; while :; do sleep 1; done";
    for name in ["long", "short", "now"] {
        kubectl.apply(&pod(name, script).replace("PeriodSeconds: 1", "PeriodSeconds: 600")).await?;
    }
    kubectl.ok("wait --for=condition=Ready pod --all").await?;

    kubectl.ok("delete pod long --grace-period=300 --wait=false").await?;
    assert_eq!(kubectl.read("pod/long", "{.metadata.deletionGracePeriodSeconds}").await?, "300");
    has(&kubectl.ok("get pod long").await?, &["1/1 Terminating 0 "])?;
    let forced = kubectl.run("delete pod long --grace-period=0 --force", None).await?;
    let warning =
        "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated.";
    has(&forced.stderr, &[warning])?;
    assert_eq!(forced.success()?, format!("pod \"long\" force deleted from {} namespace\n", kubectl.namespace()));

    // Either ends long before the pod's own grace is over.
    kubectl.ok("delete pod short --grace-period=3").await?;
    kubectl.ok("delete pod now --now").await?;
    assert_eq!(kubectl.ok("get pods -o name").await?, "");

    // One that ends when it is told to does so long before its grace is over.
    kubectl.apply(&pod("willing", IDLE).replace("PeriodSeconds: 1", "PeriodSeconds: 600")).await?;
    kubectl.ok("wait --for=condition=Ready pod/willing").await?;
    kubectl.ok("delete pod willing").await.map(drop)
}

pub(crate) async fn objects_are_deleted_by_label_by_file_and_all(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let namespace = kubectl.namespace().to_owned();
    for name in ["a", "b", "c", "d"] {
        kubectl.ok(&format!("create secret generic {name}")).await?;
    }
    kubectl.ok("label secret a b part=of").await?;
    let deleted = kubectl.ok("delete secrets -l part=of").await?;
    assert_eq!(
        deleted,
        format!("secret \"a\" deleted from {namespace} namespace\nsecret \"b\" deleted from {namespace} namespace\n")
    );
    assert_eq!(kubectl.ok("get secrets -o name").await?, "secret/c\nsecret/d\n");
    kubectl.ok("delete secrets --all").await?;
    assert_eq!(kubectl.ok("get secrets -o name").await?, "");
    kubectl.file("map.yaml", &config_map("map", &[]))?;
    kubectl.ok("create -f map.yaml").await?;
    assert_eq!(
        kubectl.ok("delete -f map.yaml").await?,
        format!("configmap \"map\" deleted from {namespace} namespace\n")
    );
    assert_eq!(
        kubectl.fails("delete -f map.yaml").await?,
        "Error from server (NotFound): error when deleting \"map.yaml\": configmaps \"map\" not found\n"
    );
    assert_eq!(kubectl.ok("delete configmap map --ignore-not-found").await?, "");
    let other = format!("{}-b", &namespace[..namespace.len().min(60)]);
    assert_eq!(kubectl.ok(&format!("create namespace {other}")).await?, format!("namespace/{other} created\n"));
    kubectl.ok(&format!("create configmap inside -n {other}")).await?;
    assert_eq!(kubectl.ok(&format!("delete namespace {other}")).await?, format!("namespace \"{other}\" deleted\n"));
    has(&kubectl.fails(&format!("get namespace {other}")).await?, &["NotFound"])
}
