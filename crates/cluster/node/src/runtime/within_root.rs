//! Paths of an image: what they mean when the image's directory is `/`.
//!
//! An image is not trusted. Its links may name any path of this machine, so no path of it is handed to the kernel before
//! it is resolved here.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The kernel's own limit of links on one path.
const MOST_LINKS: usize = 40;

/// Where this path leads if `root` is `/`: a path below `root` (or `root` itself) without links and without `..`. Parts
/// that do not exist are taken as they are.
pub(crate) fn resolve(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut left: VecDeque<OsString> = parts(path).collect();
    let (mut inner, mut links) = (PathBuf::new(), 0);
    while let Some(part) = left.pop_front() {
        if part == "/" {
            inner.clear();
            continue;
        }
        if part == ".." {
            inner.pop();
            continue;
        }
        inner.push(&part);
        if !root.join(&inner).is_symlink() {
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::other(format!("{path:?} leads through too many links")));
        }
        let target = fs::read_link(root.join(&inner))?;
        inner.pop();
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            left.push_front(part);
        }
    }
    Ok(root.join(inner))
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned())
}

/// Opens the directory at a resolved path below `root`. With `create` it creates the parts that are missing.
///
/// It fails if another process has replaced a part by a link since the path was resolved.
pub(crate) fn open_directory(root: &Path, path: &Path, create: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(root, flags, Mode::empty())?;
    for part in parts(path.strip_prefix(root).map_err(io::Error::other)?) {
        let open = || rustix::fs::openat(&directory, &part, flags, Mode::empty());
        let opened = match open() {
            Err(rustix::io::Errno::NOENT) if create => {
                create_directory(&directory, part.as_ref())?;
                open()
            }
            opened => opened,
        };
        directory = opened?;
    }
    Ok(directory)
}

/// The text of a file below `root`. It must be a regular file of at most `most` bytes: a pipe could block the reader for ever.
pub(crate) fn read_text(root: &Path, path: &Path, most: u64) -> io::Result<String> {
    let resolved = resolve(root, path)?;
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let parent = open_directory(root, parent, false)?;
    // Without NONBLOCK, opening a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > most {
        return Err(io::Error::other(format!("{path:?} is not a regular file of at most {most} bytes")));
    }
    let mut text = String::new();
    file.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Creates a directory. Another container may have created it meanwhile, in a volume that both have.
pub(crate) fn create_directory(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    unless_exists(rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)))
}

/// Creates an empty file. Another container may have created it meanwhile, in a volume that both have.
pub(crate) fn create_file(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    unless_exists(rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644)).map(drop))
}

fn unless_exists(created: rustix::io::Result<()>) -> io::Result<()> {
    match created {
        Err(rustix::io::Errno::EXIST) => Ok(()),
        created => Ok(created?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn directories_are_created_where_links_lead_within_the_root() {
        let dir = std::env::temp_dir().join(format!("boathook-within-root-{}", std::process::id()));
        let (root, outside) = (dir.join("root"), dir.join("outside"));
        fs::create_dir_all(root.join("var")).unwrap();
        fs::create_dir(&outside).unwrap();
        symlink(outside.join("made"), root.join("var/run")).unwrap();
        let path = resolve(&root, Path::new("/var/run/secrets")).unwrap();
        assert_eq!(path, root.join(outside.strip_prefix("/").unwrap()).join("made/secrets"));
        assert!(open_directory(&root, &path, false).is_err(), "it is missing");
        open_directory(&root, &path, true).unwrap();
        assert!(path.is_dir());

        let linked_since = root.join("var/run/secrets");
        symlink(&outside, root.join("now-a-link")).unwrap();
        assert!(open_directory(&root, &linked_since, true).is_err());
        assert!(open_directory(&root, &root.join("now-a-link"), true).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "something was created outside");
        fs::remove_dir_all(dir).unwrap();
    }
}
