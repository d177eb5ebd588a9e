//! One layer of an image, laid over the layers below it: its files replace others, its whiteouts remove them.
//!
//! An archive is not trusted. Every path is resolved within the root, as if the root were `/`, before anything is created,
//! linked or removed there. No other process writes below the root meanwhile, so a resolved path stays what it is.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode};
use tar::{Entry, EntryType};

use super::super::within_root::resolve;
use super::{ImageError, inside};

const WHITEOUT: &[u8] = b".wh.";
/// In a folder: nothing of the layers below is in it.
const OPAQUE: &[u8] = b".wh..wh..opq";

pub(super) fn apply(layer: File, root: &Path) -> Result<(), ImageError> {
    let mut archive = tar::Archive::new(decompressed(layer)?);
    // What this layer has written, with its folders.
    let mut written = BTreeSet::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path: PathBuf = entry.path()?.components().filter(|part| *part != Component::CurDir).collect();
        inside(&path)?;
        let Some(name) = path.file_name() else { continue };
        let parent = resolve(root, path.parent().unwrap_or(Path::new("")))?;
        if name.as_bytes() == OPAQUE {
            remove_others(&parent, &written)?;
        } else if let Some(gone) = name.as_bytes().strip_prefix(WHITEOUT) {
            let gone = Path::new(OsStr::from_bytes(gone));
            let [Component::Normal(gone)] = gone.components().collect::<Vec<_>>()[..] else {
                return Err(ImageError(format!("the archive removes {path:?}, which is not the name of a file")));
            };
            remove(&parent.join(gone))?;
        } else {
            make_folders(root, &parent)?;
            let target = parent.join(name);
            if write(&mut entry, root, &target)? {
                written.extend(target.ancestors().take_while(|path| *path != root).map(Path::to_owned));
            }
        }
    }
    Ok(())
}

fn decompressed(mut layer: File) -> Result<Box<dyn Read>, ImageError> {
    let mut magic = [0; 4];
    let read = layer.read(&mut magic)?;
    layer.rewind()?;
    let layer = BufReader::new(layer);
    match &magic[..read] {
        [0x1f, 0x8b, ..] => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(layer))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            Err(ImageError("a layer is compressed with zstd: save the image with gzip layers".to_owned()))
        }
        _ => Ok(Box::new(layer)),
    }
}

/// Makes the folders of a resolved path that are missing. A file in the way is replaced.
fn make_folders(root: &Path, folder: &Path) -> io::Result<()> {
    let mut missing: Vec<_> = folder.ancestors().take_while(|path| *path != root && !path.is_dir()).collect();
    while let Some(path) = missing.pop() {
        remove(path)?;
        fs::create_dir(path)?;
    }
    Ok(())
}

/// Writes one entry of the archive. The parent of `target` is resolved. Devices are left out, as is anything that is not a
/// file: returns whether something was written.
fn write<R: Read>(entry: &mut Entry<'_, R>, root: &Path, target: &Path) -> Result<bool, ImageError> {
    let kind = entry.header().entry_type();
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    match kind {
        EntryType::Directory => {
            if !is_folder(target) {
                remove(target)?;
                fs::create_dir(target)?;
            }
        }
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            remove(target)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
            io::copy(entry, &mut file)?;
        }
        EntryType::Symlink => {
            let to = link_name(entry)?;
            remove(target)?;
            symlink(to, target)?;
        }
        EntryType::Link => {
            let to = link_name(entry)?;
            let (name, parent) = (to.file_name().unwrap_or_default(), to.parent().unwrap_or(Path::new("")));
            let from = resolve(root, parent)?.join(name);
            // A file linked to itself is already there.
            if from != target {
                remove(target)?;
                let linked = fs::hard_link(&from, target);
                linked.map_err(|error| ImageError(format!("failed to link {target:?} to {to:?}: {error}")))?;
            }
            return Ok(true);
        }
        EntryType::Fifo => {
            remove(target)?;
            rustix::fs::mknodat(CWD, target, FileType::Fifo, Mode::from_raw_mode(0o600), 0).map_err(io::Error::from)?;
        }
        _ => return Ok(false),
    }
    let header = entry.header();
    if rustix::process::geteuid().is_root() {
        let (user, group) = (header.uid()?, header.gid()?);
        lchown(target, Some(id(user)?), Some(id(group)?))?;
    }
    if kind != EntryType::Symlink {
        // After the owner: a change of owner clears the set-user-id bit.
        fs::set_permissions(target, fs::Permissions::from_mode(header.mode()? & 0o7777))?;
    }
    if matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse)
        && let Some(time) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(header.mtime()?))
    {
        // A time that this file system cannot keep is not worth a failure.
        let _ = File::open(target).and_then(|file| file.set_modified(time));
    }
    Ok(true)
}

fn link_name<R: Read>(entry: &Entry<'_, R>) -> Result<PathBuf, ImageError> {
    let name = entry.link_name()?;
    Ok(name.ok_or_else(|| ImageError("the archive has a link to nothing".to_owned()))?.into_owned())
}

fn id(number: u64) -> Result<u32, ImageError> {
    u32::try_from(number)
        .map_err(|_| ImageError(format!("the archive names user or group {number}, which cannot exist")))
}

/// Removes everything in this folder, and in the folders below it, that this layer has not written.
fn remove_others(folder: &Path, written: &BTreeSet<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => return Err(error),
    };
    for old in entries {
        let old = old?.path();
        if !written.contains(&old) {
            remove(&old)?;
        } else if !old.is_symlink() {
            remove_others(&old, written)?;
        }
    }
    Ok(())
}

/// Removes what is at this path, and not what a link there leads to.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
