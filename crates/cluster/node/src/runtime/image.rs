//! Images: `host`, which is this machine, and those unpacked from an archive.
//!
//! An archive is what `docker save` or an OCI tool writes to a tar file. Each image is a directory named by the
//! digest of its configuration; `names.json` says which name means which. There is no registry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::RootFiles;

/// The name of this machine's own root.
pub const HOST: &str = "host";
const NAMES: &str = "names.json";
const CONFIG: &str = "config.json";

#[derive(Debug)]
pub struct ImageError(String);

impl std::fmt::Display for ImageError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ImageError {}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> Self {
        ImageError(error.to_string())
    }
}

impl From<serde_json::Error> for ImageError {
    fn from(error: serde_json::Error) -> Self {
        ImageError(format!("not an image archive: {error}"))
    }
}

/// What an image says about the containers made from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ImageConfig {
    pub env: Option<Vec<String>>,
    pub cmd: Option<Vec<String>>,
    pub entrypoint: Option<Vec<String>>,
    pub working_dir: Option<String>,
    pub user: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Image {
    /// Its full name.
    pub name: String,
    /// What `imageID` says in a container's status.
    pub id: String,
    pub root: RootFiles,
    pub config: ImageConfig,
}

/// The images of a node, in a directory of their own.
#[derive(Clone, Debug)]
pub struct Images {
    dir: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerManifest {
    config: PathBuf,
    repo_tags: Option<Vec<String>>,
    layers: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct OciIndex {
    manifests: Vec<OciDescriptor>,
}

#[derive(Deserialize)]
struct OciManifest {
    config: OciDescriptor,
    layers: Vec<OciDescriptor>,
}

#[derive(Deserialize)]
struct OciDescriptor {
    digest: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl OciDescriptor {
    fn path(&self) -> PathBuf {
        Path::new("blobs").join(self.digest.replace(':', "/"))
    }
}

impl Images {
    pub fn new(dir: &Path) -> Images {
        Images { dir: dir.to_owned() }
    }

    pub fn find(&self, name: &str) -> Option<Image> {
        if name == HOST {
            let path = std::env::var("PATH").ok().map(|path| vec![format!("PATH={path}")]);
            let config = ImageConfig { env: path, ..ImageConfig::default() };
            return Some(Image { name: HOST.to_owned(), id: HOST.to_owned(), root: RootFiles::Host, config });
        }
        let name = full_name(name);
        let digest = self.names().get(&name)?.clone();
        let dir = self.dir.join(&digest);
        let config = serde_json::from_slice(&std::fs::read(dir.join(CONFIG)).ok()?).ok()?;
        Some(Image { name, id: format!("sha256:{digest}"), root: RootFiles::Directory(dir.join("root")), config })
    }

    fn names(&self) -> BTreeMap<String, String> {
        let names = std::fs::read(self.dir.join(NAMES)).unwrap_or_default();
        serde_json::from_slice(&names).unwrap_or_default()
    }

    /// Unpacks an archive and returns the names under which its images are now known.
    pub fn load(&self, archive: &Path) -> Result<Vec<String>, ImageError> {
        std::fs::create_dir_all(&self.dir)?;
        let unpacked = self.dir.join(format!("unpacking-{}", std::process::id()));
        std::fs::create_dir_all(&unpacked)?;
        let loaded = self.load_through(archive, &unpacked);
        std::fs::remove_dir_all(&unpacked)?;
        loaded
    }

    fn load_through(&self, archive: &Path, unpacked: &Path) -> Result<Vec<String>, ImageError> {
        tar::Archive::new(BufReader::new(File::open(archive)?))
            .unpack(unpacked.join("archive"))
            .map_err(|error| ImageError(format!("{} is not an image archive: {error}", archive.display())))?;
        let archive = unpacked.join("archive");
        let manifests = match std::fs::read(archive.join("manifest.json")) {
            Ok(manifest) => serde_json::from_slice(&manifest)?,
            Err(_) => oci_manifests(&archive)?,
        };
        let mut loaded = Vec::new();
        for manifest in manifests {
            let DockerManifest { config, repo_tags, layers } = manifest;
            let config = std::fs::read(archive.join(inside(&config)?))?;
            let digest = hex(ring::digest::digest(&ring::digest::SHA256, &config).as_ref());
            let dir = self.dir.join(&digest);
            if !dir.exists() {
                let new = unpacked.join("image");
                std::fs::create_dir_all(new.join("root"))?;
                for layer in &layers {
                    apply_layer(File::open(archive.join(inside(layer)?))?, &new.join("root"))?;
                }
                let config: serde_json::Value = serde_json::from_slice(&config)?;
                let config: ImageConfig = serde_json::from_value(config["config"].clone())?;
                std::fs::write(new.join(CONFIG), serde_json::to_vec(&config)?)?;
                std::fs::rename(new, dir)?;
            }
            let mut names = self.names();
            for name in repo_tags.unwrap_or_default() {
                let name = full_name(&name);
                names.insert(name.clone(), digest.clone());
                loaded.push(name);
            }
            let text = serde_json::to_vec(&names)?;
            std::fs::write(unpacked.join(NAMES), text)?;
            std::fs::rename(unpacked.join(NAMES), self.dir.join(NAMES))?;
        }
        Ok(loaded)
    }
}

fn oci_manifests(archive: &Path) -> Result<Vec<DockerManifest>, ImageError> {
    let index = std::fs::read(archive.join("index.json"))
        .map_err(|_| ImageError("the archive has neither manifest.json nor index.json".to_owned()))?;
    let index: OciIndex = serde_json::from_slice(&index)?;
    let read = |entry: OciDescriptor| {
        let manifest: OciManifest = serde_json::from_slice(&std::fs::read(archive.join(inside(&entry.path())?))?)?;
        let names = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
        let name = names.iter().find_map(|key| entry.annotations.get(*key));
        let layers = manifest.layers.iter().map(OciDescriptor::path).collect();
        Ok(DockerManifest { config: manifest.config.path(), repo_tags: name.map(|name| vec![name.clone()]), layers })
    };
    index.manifests.into_iter().map(read).collect()
}

/// A path of the archive that stays within it.
fn inside(path: &Path) -> Result<&Path, ImageError> {
    let within = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    within.then_some(path).ok_or_else(|| ImageError(format!("the archive names {path:?}, which is outside of it")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `web` is `docker.io/library/web:latest`, as for every container runtime.
pub fn full_name(name: &str) -> String {
    let (registry, rest) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest.to_owned()),
        Some(_) => ("docker.io", name.to_owned()),
        None => ("docker.io", format!("library/{name}")),
    };
    let tagged = rest.contains('@') || rest.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if tagged { format!("{registry}/{rest}") } else { format!("{registry}/{rest}:latest") }
}

/// Lays one layer over what is there: its files replace others, its whiteouts remove them.
fn apply_layer(mut layer: File, root: &Path) -> Result<(), ImageError> {
    let mut magic = [0; 4];
    let read = layer.read(&mut magic)?;
    layer.rewind()?;
    let layer = BufReader::new(layer);
    let stream: Box<dyn Read> = match &magic[..read] {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(layer)),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            return Err(ImageError("a layer is compressed with zstd: save the image with gzip layers".to_owned()));
        }
        _ => Box::new(layer),
    };
    let mut archive = tar::Archive::new(stream);
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(rustix::process::geteuid().is_root());
    let mut written = BTreeSet::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
        inside(&path)?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let parent = root.join(path.parent().unwrap_or(Path::new("")));
        if name == ".wh..wh..opq" {
            for old in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
                if !written.contains(&old.path()) {
                    remove(&old.path())?;
                }
            }
        } else if let Some(gone) = name.strip_prefix(".wh.") {
            remove(&parent.join(gone))?;
        } else if !name.is_empty() && !entry.header().entry_type().is_character_special() {
            let target = root.join(&path);
            let both_directories = entry.header().entry_type().is_dir() && target.is_dir() && !target.is_symlink();
            if !both_directories {
                remove(&target)?;
            }
            let mut parents = target.ancestors().skip(1).take_while(|path| *path != root);
            if let Some(file) = parents.find(|path| path.symlink_metadata().is_ok_and(|found| found.is_file())) {
                remove(file)?;
            }
            entry.unpack_in(root)?;
            written.extend(target.ancestors().take_while(|path| *path != root).map(Path::to_owned));
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => Ok(()),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests;
