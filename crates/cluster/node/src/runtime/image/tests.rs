use std::io::Write;

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
    let below = tar_of(&[("etc/kept", b"1"), ("etc/gone", b"1"), ("opaque/old", b"1"), ("both", b"below")]);
    let above = tar_of(&[
        ("etc/.wh.gone", b""),
        ("opaque/new", b"2"),
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
