//! `label` and `annotate`.

use anyhow::Result;
use boathook_tests::Ctx;

use crate::{
    kubectl::{Kubectl, has},
    manifests::config_map,
};

pub(crate) async fn labels_are_set_overwritten_and_removed(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[])).await?;
    let labels = async || kubectl.read("configmap/map", "{.metadata.labels}").await;
    assert_eq!(kubectl.ok("label configmap map tier=front zone=a").await?, "configmap/map labeled\n");
    assert_eq!(labels().await?, r#"{"tier":"front","zone":"a"}"#);
    let refused = kubectl.fails("label configmap map tier=back").await?;
    has(&refused, &["error: 'tier' already has a value (front), and --overwrite is false"])?;
    assert_eq!(kubectl.ok("label configmap map tier=back --overwrite").await?, "configmap/map labeled\n");
    assert_eq!(kubectl.ok("label configmap map tier=back --overwrite").await?, "configmap/map not labeled\n");
    assert_eq!(kubectl.ok("label configmap map zone-").await?, "configmap/map unlabeled\n");
    assert_eq!(labels().await?, r#"{"tier":"back"}"#);
    assert_eq!(kubectl.ok("label configmap -l tier=back found=yes").await?, "configmap/map labeled\n");
    // In no order.
    has(&kubectl.ok("label configmap map --list").await?, &["found=yes\n", "tier=back\n"])?;
    has(
        &kubectl.fails("label configmap map 'bad key=1'").await?,
        &["The ConfigMap \"map\" is invalid: metadata.labels: Invalid value: \"bad key\": name part must consist of"],
    )?;
    has(&kubectl.fails("label configmap none a=b").await?, &["configmaps \"none\" not found"])
}

pub(crate) async fn annotations_are_set_overwritten_and_removed(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.ok("create configmap map").await?;
    let annotations = async || kubectl.read("configmap/map", "{.metadata.annotations}").await;
    assert_eq!(kubectl.ok("annotate configmap map note='call me' other=1").await?, "configmap/map annotated\n");
    assert_eq!(annotations().await?, r#"{"note":"call me","other":"1"}"#);
    has(
        &kubectl.fails("annotate configmap map other=2").await?,
        &["--overwrite is false but found the following declared annotation(s): 'other' already has a value (1)"],
    )?;
    kubectl.ok("annotate configmap map other=2 --overwrite").await?;
    assert_eq!(kubectl.ok("annotate configmap map note-").await?, "configmap/map annotated\n");
    assert_eq!(annotations().await?, r#"{"other":"2"}"#);
    assert_eq!(
        kubectl
            .ok("annotate configmap --all every=one")
            .await?
            .lines()
            .filter(|line| *line == "configmap/map annotated")
            .count(),
        1
    );
    Ok(())
}
