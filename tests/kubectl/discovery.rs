//! What the cluster is and serves: `version`, `api-resources`, `explain`.

use anyhow::{Context, Result, ensure};
use boathook_tests::Ctx;

use crate::{
    boats::Boats,
    kubectl::{Kubectl, has, rows},
};

pub(crate) async fn version_names_the_server(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let words = kubectl.ok("version").await?;
    has(&words, &["Client Version: v1.", "Kustomize Version: v", "Server Version: v1."])?;
    // A warning of skew would be on stderr.
    let outcome = kubectl.run("version -o json", None).await?;
    ensure!(outcome.stderr.is_empty(), "a warning\n{outcome}");
    let version: serde_json::Value = serde_json::from_str(&outcome.success()?)?;
    let server = version.get("serverVersion").context("no version of the server")?;
    for field in ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "platform"] {
        ensure!(server[field].is_string(), "no `{field}` in {server}");
    }
    assert_eq!(server["minor"], version["clientVersion"]["minor"]);
    Ok(())
}

pub(crate) async fn api_resources_lists_built_in_and_custom_kinds(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let Boats { group, short } = Boats::define(&ctx, &kubectl).await?;
    let all = kubectl.ok("api-resources").await?;
    let rows = rows(&all);
    let version = format!("{group}/v1");
    for wanted in [
        &["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"][..],
        &["pods", "po", "v1", "true", "Pod"],
        &["nodes", "no", "v1", "false", "Node"],
        &["deployments", "deploy", "apps/v1", "true", "Deployment"],
        &["storageclasses", "sc", "storage.k8s.io/v1", "false", "StorageClass"],
        &["volumesnapshots", "vs", "snapshot.storage.k8s.io/v1", "true", "VolumeSnapshot"],
        &["boats", &short, &version, "true", "Boat"],
    ] {
        ensure!(rows.iter().any(|row| row == wanted), "`{wanted:?}` is not in:\n{all}");
    }

    let names = kubectl.ok("api-resources --api-group=apps --namespaced=true -o name").await?;
    has(&names, &["deployments.apps\n", "replicasets.apps\n"])?;
    ensure!(!names.contains("pods"), "another group's:\n{names}");
    let cluster = kubectl.ok("api-resources --namespaced=false -o name").await?;
    ensure!(cluster.lines().any(|name| name == "nodes") && !cluster.contains("pods"), "{cluster}");
    let deletable = kubectl.ok("api-resources --verbs=delete -o wide").await?;
    has(&deletable, &["create,delete,deletecollection,get,list,patch,update,watch"])?;
    ensure!(!deletable.contains("SelfSubjectAccessReview"), "a review cannot be deleted:\n{deletable}");
    has(&kubectl.ok("api-resources --categories=all -o name").await?, &["pods\n", "services\n", "deployments.apps\n"])?;
    has(&kubectl.ok("api-versions").await?, &["apps/v1\n", "v1\n", &version])
}

pub(crate) async fn explain_knows_built_in_and_custom_fields(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let Boats { short, .. } = Boats::define(&ctx, &kubectl).await?;
    let pod = kubectl.ok("explain pod").await?;
    has(&pod, &["KIND:       Pod\n", "VERSION:    v1\n", "DESCRIPTION:\n", "FIELDS:\n"])?;
    has(&pod, &["  apiVersion\t<string>\n", "  spec\t<PodSpec>\n", "  metadata\t<ObjectMeta>\n"])?;
    let field = kubectl.ok("explain deploy.spec.strategy.rollingUpdate").await?;
    has(
        &field,
        &["GROUP:      apps\n", "FIELD: rollingUpdate <RollingUpdateDeployment>\n", "maxSurge\t<IntOrString>"],
    )?;
    has(&kubectl.ok("explain pod.spec.containers.image").await?, &["FIELD: image <string>\n"])?;
    let required = kubectl.ok("explain pod.spec.containers").await?;
    has(&required, &["FIELD: containers <[]Container>", "  name\t<string> -required-\n"])?;
    let policy = kubectl.ok("explain pod.spec.restartPolicy").await?;
    has(&policy, &["Restart policy for all containers within the pod"])?;
    let whole = kubectl.ok("explain configmap --recursive").await?;
    has(&whole, &["  data\t<map[string]string>\n", "    annotations\t<map[string]string>\n"])?;

    let own = kubectl.ok(&format!("explain {short}")).await?;
    has(&own, &["KIND:       Boat\n", "A boat with oars.", "  spec\t<Object>\n"])?;
    let oars = kubectl.ok(&format!("explain {short}.spec.oars")).await?;
    has(&oars, &["FIELD: oars <integer>\n", "How many oars it has."])?;

    has(&kubectl.fails("explain pod.spec.sails").await?, &["error: field \"sails\" does not exist"])?;
    let unknown = kubectl.fails("explain galleons").await?;
    has(&unknown, &["the server doesn't have a resource type \"galleons\""])
}
