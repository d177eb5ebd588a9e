//! `apply`, on the client's side and on the server's.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    boats::Boats,
    kubectl::{Kubectl, has},
    manifests::{config_map, deployment},
};

pub(crate) async fn a_second_apply_removes_what_the_first_had(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let first = deployment("web", 2).replace(
        "        command:",
        "        env: [{name: KEPT, value: '1'}, {name: GONE, value: '2'}]\n        command:",
    );
    let first =
        first.replace("labels: {app: web}\nspec:\n  replicas", "labels: {app: web, tier: front}\nspec:\n  replicas");
    assert_eq!(kubectl.apply(&first).await?, "deployment.apps/web created\n");
    assert_eq!(kubectl.apply(&first).await?, "deployment.apps/web unchanged\n");

    // What another has set in the meantime is not the file's, and stays.
    kubectl.ok("annotate deployment web kept-by=another").await?;
    kubectl.ok("set env deployment/web ADDED=3").await?;
    let second =
        first.replace(", {name: GONE, value: '2'}", "").replace(", tier: front", "").replace("  replicas: 2\n", "");
    assert_eq!(kubectl.apply(&second).await?, "deployment.apps/web configured\n");

    let read = async |path: &str| kubectl.read("deployment/web", path).await;
    assert_eq!(read("{.spec.template.spec.containers[0].env[*].name}").await?, "KEPT ADDED");
    assert_eq!(read("{.metadata.labels}").await?, r#"{"app":"web"}"#);
    assert_eq!(read("{.metadata.annotations.kept-by}").await?, "another");
    assert_eq!(read("{.spec.replicas}").await?, "1", "a removed number goes back to its default");
    has(&kubectl.ok("apply view-last-applied deployment web").await?, &["name: KEPT"])?;
    Ok(())
}

pub(crate) async fn a_custom_object_is_applied_twice_too(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let boats = Boats::define(&ctx, &kubectl).await?;
    let object = format!("{}/gig", boats.short);
    let name = format!("boat.{}/gig", boats.group);
    let first = boats.boat("gig", 4).replace("oars: 4", "oars: 4, captain: ahab, crew: [queequeg, tashtego]");
    assert_eq!(kubectl.apply(&first).await?, format!("{name} created\n"));
    assert_eq!(kubectl.apply(&first).await?, format!("{name} unchanged\n"));
    assert_eq!(
        kubectl.apply(&first.replace("captain: ahab, crew: [queequeg, tashtego]", "crew: [pip]")).await?,
        format!("{name} configured\n")
    );
    // Lists are replaced whole, a removed field has its default again.
    assert_eq!(kubectl.read(&object, "{.spec}").await?, r#"{"captain":"nobody","crew":["pip"],"oars":4}"#);
    Ok(())
}

pub(crate) async fn two_appliers_of_one_field_conflict_until_one_forces(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.file("one.yaml", &config_map("log", &[("course", "north"), ("ship", "pequod")]))?;
    kubectl.file("two.yaml", &config_map("log", &[("course", "south")]))?;
    let created = kubectl.ok("apply --server-side --field-manager=one -f one.yaml").await?;
    assert_eq!(created, "configmap/log serverside-applied\n");

    let conflict = kubectl.fails("apply --server-side --field-manager=two -f two.yaml").await?;
    has(
        &conflict,
        &[
            "error: Apply failed with 1 conflict: conflict with \"one\": .data.course\n",
            "Please review the fields above--they currently have other managers.",
        ],
    )?;
    assert_eq!(kubectl.read("configmap/log", "{.data.course}").await?, "north", "a conflict changed it");

    let forced = kubectl.ok("apply --server-side --field-manager=two --force-conflicts -f two.yaml").await?;
    assert_eq!(forced, "configmap/log serverside-applied\n");
    assert_eq!(kubectl.read("configmap/log", "{.data}").await?, r#"{"course":"south","ship":"pequod"}"#);
    let owners = kubectl
        .read(
            "configmap/log --show-managed-fields",
            "{range .metadata.managedFields[*]}{.manager}={.operation}={.fieldsV1.f:data} {end}",
        )
        .await?;
    assert_eq!(owners, r#"one=Apply={"f:ship":{}} two=Apply={"f:course":{}} "#);

    // The same value twice is no conflict: both own it.
    kubectl.file("three.yaml", &config_map("log", &[("course", "south")]))?;
    kubectl.ok("apply --server-side --field-manager=three -f three.yaml").await?;
    let several = kubectl.fails("apply --server-side --field-manager=one -f one.yaml").await?;
    has(&several, &["Apply failed with 2 conflicts: conflicts with", "\"two\"", "\"three\"", ".data.course"])
}

pub(crate) async fn what_an_applier_no_longer_says_is_removed(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let first = deployment("web", 1)
        .replace("        command:", "        env: [{name: A, value: '1'}, {name: B, value: '2'}]\n        command:");
    kubectl.file("web.yaml", &first)?;
    kubectl.ok("apply --server-side -f web.yaml").await?;
    kubectl.ok("set env deployment/web C=3").await?;
    kubectl.file("web.yaml", &first.replace(", {name: B, value: '2'}", ""))?;
    kubectl.ok("apply --server-side -f web.yaml").await?;
    assert_eq!(kubectl.read("deployment/web", "{.spec.template.spec.containers[0].env[*].name}").await?, "A C");

    // From the client's side to the server's: kubectl carries the ownership over, so that a removal still works.
    kubectl.apply(&config_map("log", &[("kept", "1"), ("gone", "2")])).await?;
    kubectl.file("log.yaml", &config_map("log", &[("kept", "1")]))?;
    kubectl.ok("apply --server-side -f log.yaml").await?;
    let data = kubectl.read("configmap/log", "{.data}").await?;
    ensure!(data == r#"{"kept":"1"}"#, "after the move to the server's side: {data}");
    Ok(())
}
