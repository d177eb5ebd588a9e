//! Images: `host`, which is this machine, and those unpacked from an archive.
//!
//! An archive is what `docker save` or an OCI tool writes to a tar file. Each image is a directory named by the
//! digest of its configuration; `names.json` says which name means which. There is no registry.

mod layer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::RootFiles;
use super::within_root;

/// The name of this machine's own root.
pub const HOST: &str = "host";
const NAMES: &str = "names.json";
const CONFIG: &str = "config.json";
/// Far more than a manifest or a configuration has.
const LARGEST_TEXT: u64 = 16 << 20;

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
        let files = unpacked.join("archive");
        std::fs::create_dir_all(&files)?;
        layer::apply(File::open(archive)?, &files)
            .map_err(|error| ImageError(format!("{} is not an image archive: {error}", archive.display())))?;
        let archive = files;
        let manifests = match read(&archive, Path::new("manifest.json")) {
            Ok(manifest) => serde_json::from_slice(&manifest)?,
            Err(_) => oci_manifests(&archive)?,
        };
        let mut loaded = Vec::new();
        for manifest in manifests {
            let DockerManifest { config, repo_tags, layers } = manifest;
            let config = read(&archive, &config)?;
            let digest = hex(ring::digest::digest(&ring::digest::SHA256, &config).as_ref());
            let dir = self.dir.join(&digest);
            if !dir.exists() {
                let new = unpacked.join("image");
                std::fs::create_dir_all(new.join("root"))?;
                for layer in &layers {
                    layer::apply(open(&archive, layer)?, &new.join("root"))?;
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
    let index = read(archive, Path::new("index.json"))
        .map_err(|_| ImageError("the archive has neither manifest.json nor index.json".to_owned()))?;
    let index: OciIndex = serde_json::from_slice(&index)?;
    let read = |entry: OciDescriptor| {
        let manifest: OciManifest = serde_json::from_slice(&read(archive, &entry.path())?)?;
        let names = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
        let name = names.iter().find_map(|key| entry.annotations.get(*key));
        let layers = manifest.layers.iter().map(OciDescriptor::path).collect();
        Ok(DockerManifest { config: manifest.config.path(), repo_tags: name.map(|name| vec![name.clone()]), layers })
    };
    index.manifests.into_iter().map(read).collect()
}

/// A file of the unpacked archive. A link leads to another file of the archive, never out of it.
fn open(archive: &Path, path: &Path) -> Result<File, ImageError> {
    let file = within_root::resolve(archive, inside(path)?)?;
    if !file.is_file() {
        return Err(ImageError(format!("the archive has no file {path:?}")));
    }
    Ok(File::open(file)?)
}

/// The same, of a file that is a JSON text.
fn read(archive: &Path, path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut text = Vec::new();
    open(archive, path)?.take(LARGEST_TEXT).read_to_end(&mut text)?;
    Ok(text)
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

#[cfg(test)]
mod tests;
