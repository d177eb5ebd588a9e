//! Code, manifests and documentation that are generated and committed: `cargo xtask generate` refreshes them, a test
//! fails when they are stale.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::reference;

/// From the crate's folder, as are all paths here.
const PROTO: &str = "../crates/cri/proto/runtime.proto";
const GENERATED: &str = "../crates/cri/src/generated.rs";

const REFERENCE: &str = "../docs/reference.md";

/// All of it is generated: what is in there and is not made here is removed.
const DEPLOY: &str = "../deploy";

pub(crate) fn run() -> Result<()> {
    let deploy = path(DEPLOY);
    if deploy.exists() {
        std::fs::remove_dir_all(&deploy).with_context(|| format!("failed to empty `{}`", deploy.display()))?;
    }
    let manifests = boathook_install::render::manifests();
    let manifests = manifests.into_iter().map(|manifest| (deploy.join(manifest.path), manifest.text));
    let others = [(path(GENERATED), cri()?), (path(REFERENCE), reference::page()?)];
    for (path, text) in manifests.chain(others) {
        let folder = path.parent().context("every file is in a folder")?;
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("failed to write `{}`", path.display()))?;
    }
    Ok(())
}

fn path(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(of)
}

/// The messages, the client and the server of the slice of CRI.
fn cri() -> Result<String> {
    let proto = path(PROTO);
    let folder = proto.parent().context("the proto file is in a folder")?;
    let files = protox::compile([&proto], [folder]).context("failed to compile the proto file")?;
    let out = std::env::temp_dir().join(format!("boathook-generate-{}", std::process::id()));
    std::fs::create_dir_all(&out)?;
    // Comments come along as documentation; nothing in there is code to test.
    let generated = tonic_prost_build::configure()
        .out_dir(&out)
        .compile_fds(files)
        .and_then(|()| std::fs::read_to_string(out.join("runtime.v1.rs")));
    std::fs::remove_dir_all(&out)?;
    generated.context("failed to generate the code")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_what_would_be_generated() {
        let committed = std::fs::read_to_string(path(GENERATED)).unwrap();
        assert!(committed == cri().unwrap(), "`{GENERATED}` is stale: run `cargo xtask generate` and commit it");
    }

    #[test]
    fn the_reference_is_that_which_would_be_generated() {
        let committed = std::fs::read_to_string(path(REFERENCE)).unwrap();
        let page = reference::page().unwrap();
        assert!(committed == page, "`docs/reference.md` is stale: run `cargo xtask generate` and commit it");
    }

    #[test]
    fn the_manifests_are_those_that_would_be_generated() {
        let mut committed = Vec::new();
        let mut folders = vec![path(DEPLOY)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let found = entry.unwrap().path();
                match found.is_dir() {
                    true => folders.push(found),
                    false => committed.push(found),
                }
            }
        }
        let manifests = boathook_install::render::manifests();
        assert_eq!(committed.len(), manifests.len(), "`deploy` is stale: run `cargo xtask generate` and commit it");
        for manifest in manifests {
            let committed = std::fs::read_to_string(path(DEPLOY).join(&manifest.path)).unwrap_or_default();
            assert!(
                committed == manifest.text,
                "`deploy/{}` is stale: run `cargo xtask generate` and commit it",
                manifest.path
            );
        }
    }
}
