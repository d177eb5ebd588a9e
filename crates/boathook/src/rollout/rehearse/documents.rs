//! What a file says of rollouts: Deployments and their lifecycles. What else it holds, as files for kubectl do, is left
//! alone.

use anyhow::{Context, Result, anyhow, bail};
use boathook_api::{DeploymentLifecycle, snapshot_mark::without_meaning};
use kube::ResourceExt;
use serde_json::Value;

use super::super::deployment::RawDeployment;

/// All of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Documents {
    pub(super) deployments: Vec<RawDeployment>,
    pub(super) lifecycles: Vec<DeploymentLifecycle>,
    /// Of other kinds, by kind and name.
    pub(super) others: Vec<String>,
}

pub(crate) fn parse(text: &str) -> Result<Documents> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| anyhow!("not YAML: {error}"))?;
    let mut found = Documents::default();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let word = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, name) = (word("/kind"), word("/metadata/name"));
        match (word("/apiVersion").as_str(), kind.as_str()) {
            ("", _) | (_, "") => bail!("a document lacks apiVersion or kind"),
            ("apps/v1", "Deployment") | ("boathook.dev/v1alpha1", "DeploymentLifecycle") if name.is_empty() => {
                bail!("a {kind} has no name: write metadata.name")
            }
            ("apps/v1", "Deployment") => found.deployments.push(deployment(document, &name)?),
            ("boathook.dev/v1alpha1", "DeploymentLifecycle") => found.lifecycles.push(lifecycle(document, &name)?),
            _ => found.others.push(format!("{kind} {name}")),
        }
    }
    match found.deployments.is_empty() && found.lifecycles.is_empty() {
        true => bail!(
            "it contains neither a Deployment (apps/v1) nor a DeploymentLifecycle (boathook.dev/v1alpha1): add one of them"
        ),
        false => Ok(found),
    }
}

fn deployment(document: Value, name: &str) -> Result<RawDeployment> {
    if document.get("spec").is_none_or(Value::is_null) {
        bail!("Deployment `{name}` has no spec");
    }
    // What is looked into before the API server has seen it.
    for path in ["spec", "spec.template", "spec.template.metadata", "spec.template.metadata.annotations"] {
        let written = document.pointer(&format!("/{}", path.replace('.', "/")));
        if written.is_some_and(|written| !written.is_object() && !written.is_null()) {
            bail!("Deployment `{name}`: {path} is not a map of fields");
        }
    }
    serde_json::from_value(document).with_context(|| format!("Deployment `{name}`"))
}

/// Every word in its spec must have a meaning, as the API server has it for kubectl.
fn lifecycle(document: Value, name: &str) -> Result<DeploymentLifecycle> {
    let read: DeploymentLifecycle =
        serde_json::from_value(document.clone()).with_context(|| format!("DeploymentLifecycle `{name}`"))?;
    let meant = serde_json::to_value(&read.spec).with_context(|| format!("DeploymentLifecycle `{name}`"))?;
    if let Some(path) = document.get("spec").and_then(|written| without_meaning(written, &meant)) {
        bail!("DeploymentLifecycle `{}`: unknown field spec{path}", read.name_any());
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}";
    const LIFECYCLE: &str = "{apiVersion: boathook.dev/v1alpha1, kind: DeploymentLifecycle, metadata: {name: web},\
        spec: {pre: {execNewPod: {containerName: web, volumes: [data]}}}}";

    #[test]
    fn what_is_not_about_rollouts_is_left_alone() {
        let service = "{apiVersion: v1, kind: Service, metadata: {name: web}}";
        let found = parse(&format!("{DEPLOYMENT}\n---\n{service}\n---\n{LIFECYCLE}\n")).unwrap();
        assert_eq!((found.deployments.len(), found.lifecycles.len()), (1, 1));
        assert_eq!(found.others, ["Service web"]);
    }

    #[test]
    fn an_empty_list_is_no_mistake() {
        let written = LIFECYCLE.replace("volumes: [data]", "command: [], args: [], env: [], volumes: []");
        let found = parse(&written).unwrap();
        assert!(found.lifecycles[0].spec.pre.as_ref().unwrap().exec_new_pod.volumes.is_empty());
    }

    #[test]
    fn a_mistake_is_told_at_its_place() {
        let typo = LIFECYCLE.replace("volumes", "volume");
        let wrong = |spec: &str| DEPLOYMENT.replace("{replicas: 1}", spec);
        let template = |template: &str| wrong(&format!("{{template: {template}}}"));
        let nameless = DEPLOYMENT.replace("name: web", "");
        for (text, words) in [
            ("{apiVersion: v1, kind: Service}", "contains neither a Deployment"),
            ("kind: Deployment", "lacks apiVersion"),
            (typo.as_str(), "`web`: unknown field spec.pre.execNewPod.volume"),
            (nameless.as_str(), "has no name"),
            (&wrong("hello"), "Deployment `web`: spec is not a map"),
            (&wrong("[a]"), "Deployment `web`: spec is not a map"),
            (&wrong(""), "Deployment `web` has no spec"),
            (&template("hello"), "Deployment `web`: spec.template is not a map"),
            (&template("{metadata: hello}"), "Deployment `web`: spec.template.metadata is not a map"),
            (&template("{metadata: {annotations: [a]}}"), "`web`: spec.template.metadata.annotations is not a map"),
        ] {
            let told = parse(text).map_err(|error| crate::output::said_once(&error));
            assert!(told.as_ref().is_err_and(|told| told.contains(words)), "{text}: {told:?}");
        }
    }
}
