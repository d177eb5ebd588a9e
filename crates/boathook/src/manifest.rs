//! What a person has written down to be done: a file of YAML documents, as kubectl reads them.

use std::io::Read;

use anyhow::{Context, Result, anyhow, bail};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate, snapshot_mark::without_meaning,
    volume_snapshot::VolumeSnapshot,
};
use kube::ResourceExt;
use serde_json::Value;

use crate::objects::Kind;

/// More than the API server would take.
const LONGEST: u64 = 3 << 20;

const WHAT_TO_WRITE: &str = "write an ApplicationSnapshot, ExecutionHook or ExecutionHookTemplate \
    (boathook.dev/v1alpha1), or a VolumeSnapshot (snapshot.storage.k8s.io/v1)";

/// All documents of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    /// They count as if they were there.
    pub(crate) templates: Vec<ExecutionHookTemplate>,
    pub(crate) wanted: Vec<Wanted>,
}

/// Something that freezes when it is created.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Snapshot(Box<ApplicationSnapshot>),
    Hook(Box<ExecutionHook>),
    /// Marked or not: who writes one in such a file means it to be.
    Marked(Box<VolumeSnapshot>),
}

impl Wanted {
    pub(crate) fn namespace(&self) -> Option<String> {
        match self {
            Self::Snapshot(object) => object.namespace(),
            Self::Hook(object) => object.namespace(),
            Self::Marked(object) => object.namespace(),
        }
    }
}

/// All of a file; `-` is what comes in.
pub(crate) fn read(file: &str) -> Result<String> {
    let opened: Box<dyn Read> = match file {
        "-" => Box::new(std::io::stdin()),
        path => Box::new(std::fs::File::open(path).with_context(|| format!("failed to open `{path}`"))?),
    };
    let mut text = String::new();
    let read = opened.take(LONGEST + 1).read_to_string(&mut text);
    match read.with_context(|| format!("failed to read `{file}`"))? as u64 > LONGEST {
        true => bail!("`{file}` is longer than {LONGEST} bytes"),
        false => Ok(text),
    }
}

pub(crate) fn parse(text: &str) -> Result<Manifest> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| anyhow!("not YAML: {error}"))?;
    let mut manifest = Manifest::default();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let word = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match (word("apiVersion").as_str(), word("kind").as_str()) {
            ("boathook.dev/v1alpha1", "ExecutionHookTemplate") => manifest.templates.push(object(document)?),
            ("boathook.dev/v1alpha1", "ExecutionHook") => {
                manifest.wanted.push(Wanted::Hook(Box::new(object(document)?)));
            }
            ("boathook.dev/v1alpha1", "ApplicationSnapshot") => {
                manifest.wanted.push(Wanted::Snapshot(Box::new(object(document)?)));
            }
            ("snapshot.storage.k8s.io/v1", "VolumeSnapshot") => {
                manifest.wanted.push(Wanted::Marked(Box::new(object(document)?)));
            }
            ("", _) | (_, "") => bail!("a document lacks apiVersion or kind: {WHAT_TO_WRITE}"),
            (version, kind) => bail!("unsupported kind `{kind}` of `{version}`: {WHAT_TO_WRITE}"),
        }
    }
    match manifest.templates.is_empty() && manifest.wanted.is_empty() {
        true => bail!("it contains no document: {WHAT_TO_WRITE}"),
        false => Ok(manifest),
    }
}

/// One object; every word in its spec must have a meaning, as the API server has it for kubectl.
fn object<K: Kind>(document: Value) -> Result<K> {
    let kind = K::kind(&());
    let name = document.pointer("/metadata/name").or_else(|| document.pointer("/metadata/generateName"));
    let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
    let read: K = serde_json::from_value(document.clone()).with_context(|| format!("{kind} `{name}`"))?;
    let meant = serde_json::to_value(&read).with_context(|| format!("{kind} `{name}`"))?;
    let (Some(written), Some(meant)) = (document.get("spec"), meant.get("spec")) else {
        bail!("{kind} `{name}` has no spec")
    };
    if let Some(path) = without_meaning(written, meant) {
        bail!("{kind} `{name}`: unknown field spec{path}");
    }
    if read.name_any().is_empty() {
        bail!("a {kind} has no name: write metadata.name");
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "
apiVersion: boathook.dev/v1alpha1
kind: ExecutionHookTemplate
metadata: {name: mysql}
spec: {preAction: {exec: {command: [quiesce]}}}
---
";

    #[test]
    fn a_file_has_several_documents() {
        let snapshot = "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {generateName: a-},\
            spec: {source: {persistentVolumeClaimName: data}}}";
        let read = parse(&format!("---{TEMPLATE}---\n{snapshot}\n")).unwrap();
        assert_eq!((read.templates[0].name_any().as_str(), read.wanted.len()), ("mysql", 1));
        assert!(matches!(&read.wanted[0], Wanted::Marked(snapshot) if snapshot.name_any() == "a-"));
    }

    #[test]
    fn a_mistake_is_told_at_its_place() {
        let typo = TEMPLATE.replace("preAction:", "expirationSecond: 3, preAction:");
        let nameless = TEMPLATE.replace("name: mysql", "");
        let missing = TEMPLATE.replace("preAction", "postAction");
        for (text, words) in [
            ("", "contains no document"),
            ("kind: Pod\napiVersion: v1", "unsupported kind `Pod` of `v1`"),
            ("a: [", "not YAML"),
            ("just words", "lacks apiVersion or kind"),
            (typo.as_str(), "`mysql`: unknown field spec.expirationSecond"),
            (nameless.as_str(), "has no name"),
            (missing.as_str(), "`mysql`: missing field `preAction`"),
        ] {
            let told = parse(text).map_err(|error| crate::output::said_once(&error));
            assert!(told.as_ref().is_err_and(|told| told.contains(words)), "{text}: {told:?}");
        }
    }
}
