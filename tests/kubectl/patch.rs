//! `patch`, of its three kinds.

use anyhow::Result;
use boathook_tests::Ctx;

use crate::{
    boats::Boats,
    kubectl::{Kubectl, has},
    manifests::{BUSYBOX, config_map, deployment},
};

pub(crate) async fn the_three_patches_treat_a_list_each_in_its_way(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&deployment("web", 0)).await?;
    let names = async || kubectl.read("deployment/web", "{.spec.template.spec.containers[*].name}").await;

    // Strategic, the default: the list is merged by name.
    let more =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"IMAGE"}]}}}}"#.replace("IMAGE", BUSYBOX);
    assert_eq!(kubectl.ok(&format!("patch deployment web -p '{more}'")).await?, "deployment.apps/web patched\n");
    assert_eq!(names().await?, "side main");
    kubectl.ok(&format!("patch deployment web -p '{more}'")).await?;
    assert_eq!(names().await?, "side main");
    let without = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}"#;
    kubectl.ok(&format!("patch deployment web -p '{without}'")).await?;
    assert_eq!(names().await?, "main");

    // Merge: the list is replaced whole.
    kubectl.ok(&format!("patch deployment web --type=merge -p '{more}'")).await?;
    assert_eq!(names().await?, "side");

    // Json: by place, and only if the test holds.
    let operations = r#"[{"op":"test","path":"/spec/template/spec/containers/0/name","value":"side"},{"op":"replace","path":"/spec/template/spec/containers/0/name","value":"third"},{"op":"add","path":"/metadata/labels/by","value":"json"}]"#;
    kubectl.ok(&format!("patch deployment web --type=json -p '{operations}'")).await?;
    assert_eq!(names().await?, "third");
    assert_eq!(kubectl.read("deployment/web", "{.metadata.labels.by}").await?, "json");

    // From a file, as YAML, with null to remove.
    kubectl.file("patch.yaml", "metadata: {labels: {by: null, from: file}}\n")?;
    kubectl.ok("patch deployment web --patch-file patch.yaml").await?;
    assert_eq!(kubectl.read("deployment/web", "{.metadata.labels}").await?, r#"{"app":"web","from":"file"}"#);
    Ok(())
}

/// Of an object that nobody else writes: kubectl compares what it read before with what it got.
pub(crate) async fn a_patch_that_changes_nothing_says_so(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("a", "1")])).await?;
    let patch =
        async |value: &str| kubectl.ok(&format!(r#"patch configmap map -p '{{"data":{{"a":"{value}"}}}}'"#)).await;
    assert_eq!(patch("1").await?, "configmap/map patched (no change)\n");
    assert_eq!(patch("2").await?, "configmap/map patched\n");
    Ok(())
}

pub(crate) async fn a_bad_patch_is_refused_and_changes_nothing(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("a", "1")])).await?;
    let failed = kubectl.fails(r#"patch configmap map --type=json -p '[{"op":"test","path":"/data/a","value":"2"},{"op":"remove","path":"/data/a"}]'"#).await?;
    has(&failed, &["the server rejected our request due to an error in our request"])?;
    let missing = kubectl.fails(r#"patch configmap map --type=json -p '[{"op":"remove","path":"/data/b"}]'"#).await?;
    has(&missing, &["the server rejected our request due to an error in our request"])?;
    let shape = kubectl.fails(r#"patch configmap map -p '{"data":["a"]}'"#).await?;
    has(&shape, &["data"])?;
    let name = kubectl.fails(r#"patch configmap map -p '{"metadata":{"name":"other"}}'"#).await?;
    has(&name, &["the name of the object (other) does not match the name on the URL (map)"])?;
    has(
        &kubectl.fails("patch configmap none -p {}").await?,
        &["Error from server (NotFound): configmaps \"none\" not found"],
    )?;
    assert_eq!(kubectl.read("configmap/map", "{.data}").await?, r#"{"a":"1"}"#);
    Ok(())
}

pub(crate) async fn the_status_is_patched_alone(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let boats = Boats::define(&ctx, &kubectl).await?;
    let (short, object) = (&boats.short, format!("{}/gig", boats.short));
    kubectl.apply(&boats.boat("gig", 4)).await?;
    let patch = r#"{"spec":{"oars":9},"status":{"oars":3}}"#;
    kubectl.ok(&format!("patch {short} gig --subresource=status --type=merge -p '{patch}'")).await?;
    assert_eq!(kubectl.read(&object, "{.spec.oars} {.status.oars}").await?, "4 3");
    kubectl.ok(&format!("patch {short} gig --type=merge -p '{}'", patch.replace('3', "7"))).await?;
    assert_eq!(kubectl.read(&object, "{.spec.oars} {.status.oars}").await?, "9 3");
    // A kind of one's own has no merge keys for a strategic patch.
    let refused = kubectl.fails(&format!("patch {short} gig -p '{patch}'")).await?;
    has(&refused, &["error: application/strategic-merge-patch+json is not supported by"])
}
