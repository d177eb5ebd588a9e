//! The images that pods of the tests run: made here, because none can be pulled.
//!
//! | image | what is in it |
//! |---|---|
//! | `localhost/busybox:1` | a shell and the usual tools, one static program |
//! | `localhost/distroless:3` | one static program (`e2e/images/lantern.rs`) and nothing else |
//! | `localhost/logbook:1` | likewise, the database that is frozen and snapshotted (`crates/logbook`) |
//! | `localhost/pause:1` | that of `distroless:3`, as the container that holds a pod's namespaces |

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use ring::digest::{SHA256, digest};
use serde_json::json;
use tar::{Builder, EntryType, Header};

use super::layout::Layout;
use super::{files, packages};
use crate::say::Step;

const BUSYBOX: &str = "/bin/busybox";

/// An image: a name, one layer, and what runs when nobody says.
struct Image {
    name: &'static str,
    layer: Vec<u8>,
    command: &'static [&'static str],
}

/// Makes the images and puts them into containerd, unless they are there.
pub(super) fn import(layout: &Layout) -> Result<()> {
    let listed = ctr(layout).args(["images", "ls", "-q"]).output().context("failed to run `ctr`")?;
    let there = String::from_utf8_lossy(&listed.stdout).into_owned();
    if NAMES.iter().all(|name| there.lines().any(|line| line == *name)) {
        return Ok(());
    }
    let step = Step::start("making images");
    for image in make(layout, &layout.dir)? {
        let path = layout.path("image.tar");
        files::write(&path, archive(&image)?)?;
        let output = ctr(layout).args(["images", "import"]).arg(&path).output().context("failed to run `ctr`")?;
        if !output.status.success() {
            bail!("failed to import the image {}: {}", image.name, String::from_utf8_lossy(&output.stderr).trim());
        }
        std::fs::remove_file(&path).context("failed to remove the archive of an imported image")?;
    }
    step.done();
    Ok(())
}

/// Writes each image as an archive into `dir`, for `boathook image load`.
pub(super) fn save(layout: &Layout, dir: &Path) -> Result<()> {
    packages::install(layout)?;
    files::folder(dir)?;
    for image in make(layout, dir)? {
        let file = image.name.trim_start_matches("localhost/").replace(':', "-");
        files::write(&dir.join(format!("{file}.tar")), archive(&image)?)?;
    }
    Ok(())
}

const NAMES: [&str; 4] = ["localhost/busybox:1", "localhost/distroless:3", "localhost/pause:1", "localhost/logbook:1"];

/// The images; `work` is where programs may be built.
fn make(layout: &Layout, work: &Path) -> Result<[Image; 4]> {
    let [lantern, logbook] = [lantern(layout, work)?, logbook(layout, work)?];
    let distroless = layer(|tar| file(tar, "lantern", &lantern, 0o755))?;
    let with_logbook = layer(|tar| file(tar, "logbook", &logbook, 0o755))?;
    Ok([
        Image { name: NAMES[0], layer: busybox()?, command: &["/bin/sh"] },
        Image { name: NAMES[1], layer: distroless.clone(), command: &["/lantern"] },
        Image { name: NAMES[2], layer: distroless, command: &["/lantern"] },
        Image { name: NAMES[3], layer: with_logbook, command: &["/logbook"] },
    ])
}

/// containerd's own client, in the namespace that the kubelet looks in.
pub(super) fn ctr(layout: &Layout) -> Command {
    let mut ctr = Command::new("ctr");
    ctr.arg("--address")
        .arg(layout.path("containerd.sock"))
        .args(["--namespace", "k8s.io", "--timeout", "120s"])
        .stdin(Stdio::null());
    ctr
}

/// The program of the image without a shell.
fn lantern(layout: &Layout, work: &Path) -> Result<Vec<u8>> {
    program(layout, work, "lantern", &[])
}

/// The database, whose library is a crate of its own.
fn logbook(layout: &Layout, work: &Path) -> Result<Vec<u8>> {
    const LIBRARY: &str = "boathook_logbook";
    let library = work.join("libboathook_logbook.rlib");
    let source = layout.sources.join("../crates/logbook/src/lib.rs");
    let as_library = ["--crate-type", "lib", "--crate-name", LIBRARY];
    rustc(layout, &source, &library, &as_library)?;
    let extern_library = format!("{LIBRARY}={}", library.display());
    let built = program(layout, work, "logbook", &["--extern", &extern_library])?;
    std::fs::remove_file(&library).with_context(|| format!("failed to remove `{}`", library.display()))?;
    Ok(built)
}

/// A program of `e2e/images`, in memory.
fn program(layout: &Layout, work: &Path, name: &str, more: &[&str]) -> Result<Vec<u8>> {
    let (source, program) = (layout.sources.join("images").join(name).with_extension("rs"), work.join(name));
    rustc(layout, &source, &program, &[&["-C", "strip=symbols"], more].concat())?;
    let built = std::fs::read(&program).with_context(|| format!("failed to read `{}`", program.display()))?;
    std::fs::remove_file(&program).with_context(|| format!("failed to remove `{}`", program.display()))?;
    Ok(built)
}

/// Builds something static, with the toolchain that is here anyway.
fn rustc(layout: &Layout, source: &Path, to: &Path, more: &[&str]) -> Result<()> {
    let output = Command::new("rustc")
        .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "panic=abort"])
        .args(more)
        .arg("-o")
        .args([to, source])
        // The toolchain is the one that the checkout pins.
        .current_dir(&layout.sources)
        .output()
        .context("failed to run `rustc`")?;
    if !output.status.success() {
        bail!("failed to build `{}`:\n{}", source.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn busybox() -> Result<Vec<u8>> {
    let program = std::fs::read(BUSYBOX).with_context(|| format!("failed to read `{BUSYBOX}`"))?;
    let listed = Command::new(BUSYBOX).arg("--list").output().context("failed to ask busybox for its tools")?;
    let tools = String::from_utf8(listed.stdout).context("busybox lists its tools as text")?;
    layer(|tar| {
        for name in ["bin", "dev", "etc", "home", "proc", "root", "sys", "var", "var/run"] {
            folder(tar, name, 0o755)?;
        }
        folder(tar, "tmp", 0o1777)?;
        file(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", 0o644)?;
        file(tar, "etc/group", b"root:x:0:\nnobody:x:65534:\n", 0o644)?;
        file(tar, "bin/busybox", &program, 0o755)?;
        tools
            .lines()
            .filter(|tool| *tool != "busybox")
            .try_for_each(|tool| link(tar, &format!("bin/{tool}"), "busybox"))
    })
}

/// An image as `docker save` writes it: a layer, a configuration that names it, a manifest that names both.
fn archive(image: &Image) -> Result<Vec<u8>> {
    let layer_digest = hex(&image.layer);
    let configuration = json!({
        "architecture": architecture()?,
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": image.command, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
        "history": [{"created_by": "cargo xtask cluster up"}],
    })
    .to_string();
    let configuration_file = format!("{}.json", hex(configuration.as_bytes()));
    let layer_file = format!("{layer_digest}/layer.tar");
    let manifest =
        json!([{"Config": configuration_file, "RepoTags": [image.name], "Layers": [layer_file]}]).to_string();
    layer(|tar| {
        file(tar, &configuration_file, configuration.as_bytes(), 0o644)?;
        file(tar, &layer_file, &image.layer, 0o644)?;
        file(tar, "manifest.json", manifest.as_bytes(), 0o644)
    })
}

fn architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("no image can be made for the processor `{other}`: only x86_64 and aarch64 are known here"),
    }
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn layer(fill: impl FnOnce(&mut Builder<Vec<u8>>) -> Result<()>) -> Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    fill(&mut tar)?;
    tar.into_inner().context("failed to end an archive")
}

fn file(tar: &mut Builder<Vec<u8>>, path: &str, contents: &[u8], mode: u32) -> Result<()> {
    let mut header = header(EntryType::Regular, mode);
    header.set_size(contents.len() as u64);
    tar.append_data(&mut header, path, contents).with_context(|| format!("failed to add `{path}`"))
}

fn folder(tar: &mut Builder<Vec<u8>>, path: &str, mode: u32) -> Result<()> {
    let mut header = header(EntryType::Directory, mode);
    tar.append_data(&mut header, path, std::io::empty()).with_context(|| format!("failed to add `{path}`"))
}

fn link(tar: &mut Builder<Vec<u8>>, path: &str, target: &str) -> Result<()> {
    let mut header = header(EntryType::Symlink, 0o777);
    tar.append_link(&mut header, Path::new(path), target).with_context(|| format!("failed to add `{path}`"))
}

/// Owner, group and time are always 0, so that the same contents are the same image.
fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut tar = tar::Archive::new(archive);
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut contents = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut contents).unwrap();
            (entry.path().unwrap().display().to_string(), contents)
        };
        tar.entries().unwrap().map(read).collect()
    }

    #[test]
    fn an_archive_names_its_layer_by_its_digest() {
        let contents = layer(|tar| file(tar, "lantern", b"program", 0o755)).unwrap();
        let image = Image { name: "localhost/distroless:3", layer: contents.clone(), command: &["/lantern"] };
        let archive = entries(&archive(&image).unwrap());
        let manifest: serde_json::Value = serde_json::from_slice(&archive[2].1).unwrap();
        assert_eq!(manifest[0]["RepoTags"][0], "localhost/distroless:3");
        assert_eq!(manifest[0]["Config"], archive[0].0);
        assert_eq!(manifest[0]["Layers"][0], archive[1].0);
        let configuration: serde_json::Value = serde_json::from_slice(&archive[0].1).unwrap();
        assert_eq!(configuration["rootfs"]["diff_ids"][0], format!("sha256:{}", hex(&contents)));
    }

    #[test]
    fn the_same_contents_are_the_same_layer() {
        let make = || layer(|tar| folder(tar, "tmp", 0o1777)).unwrap();
        assert_eq!(make(), make());
    }
}
