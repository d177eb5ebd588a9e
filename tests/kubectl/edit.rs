//! `edit`, with a script as the editor.

use std::{fs::Permissions, os::unix::fs::PermissionsExt};

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    kubectl::{EDITOR, Kubectl, Outcome, has},
    manifests::{config_map, deployment},
};

/// Edits with this script, which gets the file as `$1`.
async fn edit(kubectl: &Kubectl, what: &str, script: &str) -> Result<Outcome> {
    kubectl.file(EDITOR, &format!("#!/bin/sh\n{script}\n"))?;
    std::fs::set_permissions(kubectl.path(EDITOR), Permissions::from_mode(0o700))?;
    kubectl.run(&format!("edit {what}"), None).await
}

pub(crate) async fn an_edit_is_what_the_editor_leaves(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("course", "north"), ("ship", "pequod")])).await?;
    let edited = edit(&kubectl, "configmap map", "sed -i -e s/north/south/ -e /ship:/d $1").await?;
    assert_eq!(edited.success()?, "configmap/map edited\n");
    assert_eq!(kubectl.read("configmap/map", "{.data}").await?, r#"{"course":"south"}"#);

    let unchanged = edit(&kubectl, "configmap map", "true").await?;
    has(&unchanged.stderr, &["Edit cancelled, no changes made."])?;
    ensure!(unchanged.code == Some(0), "{unchanged}");

    kubectl.apply(&deployment("web", 1)).await?;
    let edited = edit(&kubectl, "deployment/web", "sed -i 's/replicas: 1/replicas: 0/' $1").await?;
    assert_eq!(edited.success()?, "deployment.apps/web edited\n");
    assert_eq!(kubectl.read("deployment/web", "{.spec.replicas}").await?, "0");
    Ok(())
}

pub(crate) async fn an_edit_that_is_refused_opens_again_with_the_reason(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&deployment("web", 1)).await?;
    // The second time it finds the reason in the file, and gives in.
    let script = "cp $1 seen; if grep -q 'is invalid\\|not valid' $1; then sed -i 's/replicas: -3/replicas: 0/' $1; else sed -i 's/replicas: 1/replicas: -3/' $1; fi";
    let edited = edit(&kubectl, "deployment/web", script).await?;
    assert_eq!(edited.success()?, "deployment.apps/web edited\n");
    let seen = std::fs::read_to_string(kubectl.path("seen"))?;
    has(
        &seen,
        &[
            "# deployments.apps \"web\" was not valid:\n",
            "# * spec.replicas: Invalid value: -3: must be greater than or equal to 0\n",
        ],
    )?;
    assert_eq!(kubectl.read("deployment/web", "{.spec.replicas}").await?, "0");
    Ok(())
}
