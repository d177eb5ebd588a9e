use std::{
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use super::*;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("boathook-image-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn later_layers_replace_and_remove_files() {
    let dir = Scratch::new("whiteouts");
    let below = tar_of(&[
        ("etc/kept", b"1"),
        ("etc/gone", b"1"),
        ("opaque/old", b"1"),
        ("opaque/deep/old", b"1"),
        ("both", b"below"),
    ]);
    let above = tar_of(&[
        ("etc/.wh.gone", b""),
        ("opaque/new", b"2"),
        ("opaque/deep/new", b"2"),
        ("opaque/.wh..wh..opq", b""),
        ("both/now-a-directory", b"above"),
    ]);
    let manifest = br#"[{"Config": "c.json", "RepoTags": ["web:1"], "Layers": ["below/layer.tar", "above.tar.gz"]}]"#;
    let config = br#"{"config": {"Env": ["A=b"], "Cmd": ["serve"], "WorkingDir": "/srv", "User": "7"}, "os": "linux"}"#;
    let archive = tar_of(&[
        ("manifest.json", manifest),
        ("c.json", config),
        ("below/layer.tar", &below),
        ("above.tar.gz", &gzip(&above)),
    ]);
    std::fs::write(dir.0.join("web.tar"), archive).unwrap();

    let images = Images::new(&dir.0.join("images"));
    assert_eq!(images.load(&dir.0.join("web.tar")).unwrap(), ["docker.io/library/web:1"]);
    let image = images.find("web:1").unwrap();
    assert_eq!(image.config.cmd.as_deref(), Some(&["serve".to_owned()][..]));
    assert_eq!(image.config.user.as_deref(), Some("7"));
    let RootFiles::Directory(root) = &image.root else { panic!("a directory") };
    assert!(root.join("etc/kept").exists());
    assert!(!root.join("etc/gone").exists());
    assert!(!root.join("etc/.wh.gone").exists());
    assert!(!root.join("opaque/old").exists());
    assert!(root.join("opaque/new").exists());
    assert!(!root.join("opaque/deep/old").exists());
    assert!(root.join("opaque/deep/new").exists());
    assert_eq!(std::fs::read_to_string(root.join("both/now-a-directory")).unwrap(), "above");
    assert!(images.find("web:2").is_none());
}

#[test]
fn an_oci_archive_is_named_by_its_annotation() {
    let dir = Scratch::new("oci");
    let layer = tar_of(&[("hello", b"world")]);
    let index =
        br#"{"manifests": [{"digest": "sha256:m", "annotations": {"io.containerd.image.name": "reg.example/a/b:2"}}]}"#;
    let manifest = br#"{"config": {"digest": "sha256:c"}, "layers": [{"digest": "sha256:l"}]}"#;
    let archive = tar_of(&[
        ("index.json", index),
        ("blobs/sha256/m", manifest),
        ("blobs/sha256/c", br#"{"config": {}}"#),
        ("blobs/sha256/l", &layer),
    ]);
    std::fs::write(dir.0.join("oci.tar"), archive).unwrap();
    let images = Images::new(&dir.0.join("images"));
    assert_eq!(images.load(&dir.0.join("oci.tar")).unwrap(), ["reg.example/a/b:2"]);
    let RootFiles::Directory(root) = images.find("reg.example/a/b:2").unwrap().root else { panic!("a directory") };
    assert_eq!(std::fs::read_to_string(root.join("hello")).unwrap(), "world");
}

#[test]
fn a_file_that_is_no_archive_is_refused_and_leaves_nothing() {
    let dir = Scratch::new("foreign");
    std::fs::write(dir.0.join("x"), "not a tar").unwrap();
    let images = Images::new(&dir.0.join("images"));
    assert!(images.load(&dir.0.join("x")).is_err());
    assert_eq!(std::fs::read_dir(dir.0.join("images")).unwrap().count(), 0);
}

#[test]
fn short_names_are_completed() {
    assert_eq!(full_name("web"), "docker.io/library/web:latest");
    assert_eq!(full_name("team/web:1"), "docker.io/team/web:1");
    assert_eq!(full_name("localhost:5000/web"), "localhost:5000/web:latest");
}

/// One entry of a generated archive.
#[derive(Clone, Debug)]
struct Piece {
    kind: tar::EntryType,
    path: String,
    link: String,
}

/// A tar with any names: a builder would refuse some.
fn raw_tar(pieces: &[Piece]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for Piece { kind, path, link } in pieces {
        let mut header = tar::Header::new_gnu();
        let old = header.as_old_mut();
        old.name[..path.len()].copy_from_slice(path.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        let content: &[u8] = if kind.is_file() { b"of the archive" } else { b"" };
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_cksum();
        archive.append(&header, content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn archive_of(layers: &[Vec<Piece>], around: &[Piece]) -> Vec<u8> {
    let names: Vec<_> = (0..layers.len()).map(|number| format!("layer-{number}")).collect();
    let manifest = serde_json::json!([{"Config": "c.json", "RepoTags": ["web:1"], "Layers": names}]).to_string();
    let layers: Vec<_> = layers.iter().map(|pieces| raw_tar(pieces)).collect();
    let mut files: Vec<(&str, &[u8])> = vec![("manifest.json", manifest.as_bytes()), ("c.json", br#"{"config": {}}"#)];
    files.extend(names.iter().map(String::as_str).zip(layers.iter().map(Vec::as_slice)));
    let mut archive = raw_tar(around);
    // Without the two empty blocks that end an archive.
    archive.truncate(archive.len() - 1024);
    archive.extend(tar_of(&files));
    archive
}

/// A folder of the machine that no archive may touch, and what is in it.
struct Host(Scratch);

impl Host {
    fn new(name: &str) -> Host {
        let dir = Scratch::new(name);
        std::fs::create_dir_all(dir.0.join("host/inner")).unwrap();
        std::fs::write(dir.0.join("host/a"), "of the host").unwrap();
        std::fs::write(dir.0.join("host/inner/b"), "of the host").unwrap();
        for (path, mode) in Self::MODES {
            std::fs::set_permissions(dir.0.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        Host(dir)
    }

    /// None of them is the mode that the archives give.
    const MODES: [(&str, u32); 4] =
        [("host", 0o700), ("host/inner", 0o711), ("host/a", 0o640), ("host/inner/b", 0o600)];

    fn path(&self) -> String {
        self.0.0.join("host").to_str().unwrap().to_owned()
    }

    /// Loads the archive, whether it is accepted or not, and looks at what is there afterwards.
    fn survives(&self, archive: &[u8]) -> Result<Vec<String>, ImageError> {
        let (file, dir) = (self.0.0.join("web.tar"), self.0.0.join("images"));
        std::fs::remove_dir_all(&dir).ok();
        std::fs::write(&file, archive).unwrap();
        let loaded = Images::new(&dir).load(&file);
        for path in ["host/a", "host/inner/b"] {
            assert_eq!(std::fs::read_to_string(self.0.0.join(path)).unwrap(), "of the host", "{path}");
        }
        for (path, mode) in Self::MODES {
            let found = std::fs::symlink_metadata(self.0.0.join(path)).unwrap();
            assert_eq!(found.permissions().mode() & 0o7777, mode, "{path}");
            assert!(found.is_dir() || found.nlink() == 1, "{path} was linked to");
        }
        let count = |path: &str| std::fs::read_dir(self.0.0.join(path)).unwrap().count();
        assert_eq!((count("host"), count("host/inner"), count("")), (2, 1, 3), "something was made outside");
        let left = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("unpacking")));
        loaded
    }
}

fn piece(kind: tar::EntryType, path: &str, link: &str) -> Piece {
    Piece { kind, path: path.to_owned(), link: link.to_owned() }
}

#[test]
fn whiteout_below_a_link_removes_nothing_of_the_host() {
    use tar::EntryType::{Regular, Symlink};
    let host = Host::new("link");
    let first = vec![piece(Symlink, "out", &host.path())];
    for second in ["out/.wh.a", "out/.wh..wh..opq", "out/a", "out/inner/b", "out/.wh.inner", "out/.wh...", "out/.wh."] {
        // Refused or not: the host is what counts.
        let _ = host.survives(&archive_of(&[first.clone(), vec![piece(Regular, second, "")]], &[]));
    }
}

#[test]
fn manifest_cannot_name_a_file_of_the_host() {
    let host = Host::new("manifest");
    let out = piece(tar::EntryType::Symlink, "layer-0", &format!("{}/a", host.path()));
    let manifest = br#"[{"Config": "c.json", "RepoTags": ["web:1"], "Layers": ["layer-0"]}]"#;
    let mut archive = raw_tar(&[out]);
    archive.truncate(archive.len() - 1024);
    archive.extend(tar_of(&[("manifest.json", manifest), ("c.json", br#"{"config": {}}"#)]));
    let refused = host.survives(&archive).unwrap_err().to_string();
    assert!(refused.contains("has no file \"layer-0\""), "{refused}");
}

#[test]
fn links_are_followed_within_the_image() {
    use tar::EntryType::{Directory, Link, Regular, Symlink};
    let host = Host::new("within");
    let below =
        vec![piece(Directory, "usr/lib", ""), piece(Symlink, "lib", "usr/lib"), piece(Symlink, "run", "/var/run")];
    let above = vec![piece(Regular, "lib/libc", ""), piece(Regular, "run/pid", ""), piece(Link, "same", "lib/libc")];
    host.survives(&archive_of(&[below, above], &[])).unwrap();
    let images = Images::new(&host.0.0.join("images"));
    let RootFiles::Directory(root) = images.find("web:1").unwrap().root else { panic!("a directory") };
    for path in ["usr/lib/libc", "var/run/pid", "same"] {
        assert_eq!(std::fs::read_to_string(root.join(path)).unwrap(), "of the archive", "{path}");
    }
}

/// Always the same archives, unless `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for others.
fn any_archives() -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = given("PROPTEST_CASES").and_then(|cases| u32::try_from(cases).ok()).unwrap_or(300);
    let rng_seed = RngSeed::Fixed(given("PROPTEST_RNG_SEED").unwrap_or(14));
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

proptest::proptest! {
    #![proptest_config(any_archives())]

    /// Links, hard links, whiteouts, opaque folders and devices, in any order, in any layer and around them.
    #[test]
    fn no_archive_touches_the_host(layers in proptest::collection::vec(pieces(), 1..4), around in pieces()) {
        let host = Host::new("any");
        // The stand-in for a path of the host, which is not known when the pieces are chosen.
        let real = |pieces: Vec<Piece>| -> Vec<Piece> {
            let real = |text: String| text.replace("HOST", &host.path());
            pieces.into_iter().map(|piece| Piece { path: piece.path, link: real(piece.link), ..piece }).collect()
        };
        let layers: Vec<_> = layers.into_iter().map(real).collect();
        let _ = host.survives(&archive_of(&layers, &real(around)));
    }
}

fn pieces() -> impl proptest::strategy::Strategy<Value = Vec<Piece>> {
    use proptest::{prelude::*, sample::select};
    use tar::EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};
    let kind = prop_oneof![
        12 => select(vec![Regular, Directory, Symlink, Symlink]),
        1 => select(vec![Link, Char, Block, Fifo]),
    ];
    // The last kind of name is refused, and so the rest of its archive is not seen.
    let part = prop_oneof![
        20 => select(vec!["a", "b", "inner"]),
        8 => select(vec![".wh.a", ".wh.b", ".wh.inner", ".wh..wh..opq"]),
        1 => select(vec!["..", ".", "", ".wh...", ".wh."]),
    ];
    let path = proptest::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"));
    let link =
        select(vec!["HOST", "HOST", "HOST/a", "HOST/inner", "../../../../host", "..", "/", "a", "b", "inner", "a/b"]);
    let piece = (kind, path, link).prop_map(|(kind, path, link)| Piece { kind, path, link: link.to_owned() });
    proptest::collection::vec(piece, 0..5)
}
