//! Copies of directory trees: contents shared with the original where the file system can (reflink), else copied.
//! Modes, owners, times, links and fifos stay as they are. Sockets are left out: they are nothing without their process.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, Uid, chownat, ioctl_ficlone, mkfifoat, utimensat};

/// Copies the directory `from` to `to`, which must not exist: all of it or nothing.
pub(crate) fn tree(from: &Path, to: &Path) -> io::Result<()> {
    let partial = to.with_extension("partial");
    remove(&partial)?;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    directory(from, &partial, &mut HashMap::new())?;
    fs::rename(&partial, to)
}

/// Removes a tree; none is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The copies of files that have several names, by device and inode.
type Linked = HashMap<(u64, u64), PathBuf>;

fn directory(from: &Path, to: &Path, linked: &mut Linked) -> io::Result<()> {
    let meta = fs::symlink_metadata(from)?;
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        match one(&entry.path(), &to.join(entry.file_name()), linked) {
            // Gone between listing and copying: a live directory may do that.
            Err(error) if error.kind() == ErrorKind::NotFound && !entry.path().exists() => {}
            outcome => outcome?,
        }
    }
    like(&meta, to)
}

fn one(from: &Path, to: &Path, linked: &mut Linked) -> io::Result<()> {
    let meta = fs::symlink_metadata(from)?;
    let kind = meta.file_type();
    if kind.is_dir() {
        return directory(from, to, linked);
    }
    if meta.nlink() > 1 {
        let first = linked.entry((meta.dev(), meta.ino())).or_insert_with(|| to.to_owned());
        if first != to {
            return fs::hard_link(first, to);
        }
    }
    if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        contents(from, to)?;
    } else if kind.is_fifo() {
        mkfifoat(CWD, to, Mode::from_raw_mode(meta.mode()))?;
    } else {
        return Ok(());
    }
    like(&meta, to)
}

fn contents(from: &Path, to: &Path) -> io::Result<()> {
    let (source, target) = (File::open(from)?, File::create(to)?);
    if ioctl_ficlone(&target, &source).is_err() {
        // In the kernel where it can: `io::copy` on two files uses copy_file_range.
        io::copy(&mut &source, &mut &target)?;
    }
    Ok(())
}

/// Owner, mode and times of the original.
fn like(meta: &Metadata, to: &Path) -> io::Result<()> {
    let owner = (Uid::from_raw(meta.uid()), Gid::from_raw(meta.gid()));
    match chownat(CWD, to, Some(owner.0), Some(owner.1), AtFlags::SYMLINK_NOFOLLOW) {
        // Not root: then all files are this user's anyway.
        Err(rustix::io::Errno::PERM) | Ok(()) => {}
        Err(error) => return Err(error.into()),
    }
    if !meta.file_type().is_symlink() {
        fs::set_permissions(to, fs::Permissions::from_mode(meta.mode() & 0o7777))?;
    }
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(meta.atime(), meta.atime_nsec()),
        last_modification: time(meta.mtime(), meta.mtime_nsec()),
    };
    Ok(utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_like_its_original_and_independent_of_it() {
        let dir = std::env::temp_dir().join(format!("boathook-copy-{}", std::process::id()));
        remove(&dir).unwrap();
        let (from, to) = (dir.join("from"), dir.join("deep/to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/file"), "first").unwrap();
        fs::set_permissions(from.join("sub/file"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::hard_link(from.join("sub/file"), from.join("other-name")).unwrap();
        std::os::unix::fs::symlink("sub/file", from.join("link")).unwrap();
        let before = fs::metadata(from.join("sub/file")).unwrap();
        tree(&from, &to).unwrap();
        fs::write(from.join("sub/file"), "second").unwrap();
        let after = fs::metadata(to.join("sub/file")).unwrap();
        assert_eq!(fs::read_to_string(to.join("link")).unwrap(), "first");
        assert_eq!(after.mode(), before.mode());
        assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
        assert_eq!(after.ino(), fs::metadata(to.join("other-name")).unwrap().ino());
        remove(&dir).unwrap();
        remove(&dir).unwrap();
    }
}
