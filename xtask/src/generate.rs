//! Code that is generated and committed: `cargo xtask generate` refreshes it, a test fails when it is stale.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// From the crate's folder, as are all paths here.
const PROTO: &str = "../crates/cri/proto/runtime.proto";
const GENERATED: &str = "../crates/cri/src/generated.rs";

pub(crate) fn run() -> Result<()> {
    let path = path(GENERATED);
    std::fs::write(&path, cri()?).with_context(|| format!("failed to write `{}`", path.display()))
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
}
