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
    /// One program, [`LOGBOOK`], and nothing else.
    pub logbook: &'static str,
}

/// As `cargo xtask cluster up` imports them.
pub const IMPORTED: Images =
    Images { shell: "localhost/busybox:1", lantern: "localhost/distroless:3", logbook: "localhost/logbook:1" };

/// On the embedded cluster this machine is the shell, so that a machine with nothing but Rust will do.
pub(crate) const EMBEDDED: Images = Images { shell: "host", ..IMPORTED };

/// The program of the image without a shell, and its default command; `e2e/images/lantern.rs` says what it does.
pub const LANTERN: &str = "/lantern";

/// The database that can be frozen, and its image's default command; `crates/logbook` says what it does.
pub const LOGBOOK: &str = "/logbook";

/// Both images of one program, as `docker save` writes them. `lantern` is its program; that of the logbook lies beside it,
/// as cargo builds both for every test of this package.
pub(crate) fn archives(lantern: &Path) -> Result<[Vec<u8>; 2]> {
    let listed = Command::new(lantern).arg("files").output();
    let listed = listed.with_context(|| format!("failed to run `{}`", lantern.display()))?;
    ensure!(listed.status.success(), "`{}` does not say its files", lantern.display());
    let listed = String::from_utf8(listed.stdout).context("a file of the lantern has no printable name")?;
    // Those of any program that is std alone.
    let libraries: Vec<&str> = listed.lines().filter(|path| Path::new(path) != lantern).collect();
    let logbook = lantern.with_file_name("logbook");
    let of_lantern = archive(EMBEDDED.lantern, LANTERN, lantern, &libraries)?;
    Ok([of_lantern, archive(EMBEDDED.logbook, LOGBOOK, &logbook, &libraries)?])
}

/// An image of this program: what it is made of, at the places where it looks for that.
fn archive(image: &str, path: &str, program: &Path, libraries: &[&str]) -> Result<Vec<u8>> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("failed to read `{}`", path.display()));
    let mut layer = Builder::new(Vec::new());
    add(&mut layer, path, &read(program)?)?;
    for library in libraries {
        add(&mut layer, library, &read(Path::new(library))?)?;
    }
    let mut archive = Builder::new(Vec::new());
    let manifest = json!([{"Config": "config.json", "RepoTags": [image], "Layers": ["layer.tar"]}]);
    add(&mut archive, "manifest.json", manifest.to_string().as_bytes())?;
    add(&mut archive, "config.json", json!({"config": {"Cmd": [path]}}).to_string().as_bytes())?;
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
