//! The images that scenarios use, by what is in them. Which names they have depends on the cluster.
//! Nothing is ever pulled: pods use them with `imagePullPolicy: Never`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tar::{Builder, Header};

/// The names of a cluster's images.
#[derive(Clone, Copy, Debug)]
pub struct Images {
    /// A shell and the usual small programs of coreutils.
    pub shell: &'static str,
    /// One program, [`LANTERN`], and nothing else: no shell, no `/etc`.
    pub lantern: &'static str,
}

/// As `cargo xtask cluster up` imports them.
pub const IMPORTED: Images = Images { shell: "localhost/busybox:1", lantern: "localhost/distroless:2" };

/// On the embedded cluster this machine is the shell, so that a machine with nothing but Rust will do.
pub(crate) const EMBEDDED: Images = Images { shell: "host", lantern: IMPORTED.lantern };

/// The program of the image without a shell, and its default command; `e2e/images/lantern.rs` says what it does.
pub const LANTERN: &str = "/lantern";

/// An image of this program, as `docker save` writes one: what it is made of, at the places where it looks for that.
pub(crate) fn lantern_archive(program: &Path) -> Result<Vec<u8>> {
    let listed = Command::new(program).arg("files").output();
    let listed = listed.with_context(|| format!("failed to run `{}`", program.display()))?;
    ensure!(listed.status.success(), "`{}` does not say its files", program.display());
    let listed = String::from_utf8(listed.stdout).context("a file of the lantern has no printable name")?;
    let mut layer = Builder::new(Vec::new());
    add(&mut layer, LANTERN, &std::fs::read(program).context("failed to read the lantern")?)?;
    for path in listed.lines().filter(|path| Path::new(path) != program) {
        add(&mut layer, path, &std::fs::read(path).with_context(|| format!("failed to read `{path}`"))?)?;
    }
    let mut archive = Builder::new(Vec::new());
    let manifest = json!([{"Config": "config.json", "RepoTags": [EMBEDDED.lantern], "Layers": ["layer.tar"]}]);
    add(&mut archive, "manifest.json", manifest.to_string().as_bytes())?;
    add(&mut archive, "config.json", json!({"config": {"Cmd": [LANTERN]}}).to_string().as_bytes())?;
    add(&mut archive, "layer.tar", &layer.into_inner()?)?;
    Ok(archive.into_inner()?)
}

fn add(tar: &mut Builder<Vec<u8>>, path: &str, contents: &[u8]) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(contents.len() as u64);
    tar.append_data(&mut header, path.trim_start_matches('/'), contents)
        .with_context(|| format!("failed to pack `{path}`"))
}
