//! Files of a volume that are replaced all at once: readers see the old ones or the new ones, never both.
//!
//! As on any node: the files lie in a hidden directory, `..data` points to it, and each name points through `..data`.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// A file's content and mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub bytes: Vec<u8>,
    pub mode: u32,
}

/// Relative paths and what is there.
pub(super) type Files = BTreeMap<String, Content>;

const DATA: &str = "..data";

/// Makes the volume hold exactly these files.
pub(super) fn write(volume: &Path, files: &Files) -> io::Result<()> {
    std::fs::create_dir_all(volume)?;
    if is_current(volume, files) {
        return Ok(());
    }
    let old = std::fs::read_link(volume.join(DATA)).ok();
    let version = format!("..{}", jiff::Timestamp::now().as_nanosecond());
    for (path, content) in files {
        let relative = inside(path)?;
        let target = volume.join(&version).join(&relative);
        std::fs::create_dir_all(target.parent().unwrap_or(volume))?;
        std::fs::write(&target, &content.bytes)?;
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(content.mode))?;
    }
    std::fs::create_dir_all(volume.join(&version))?;
    let next = volume.join("..data_tmp");
    std::fs::remove_file(&next).ok();
    symlink(&version, &next)?;
    std::fs::rename(&next, volume.join(DATA))?;

    let mut names: Vec<&str> = files.keys().filter_map(|path| path.split('/').next()).collect();
    names.dedup();
    for name in &names {
        match symlink(Path::new(DATA).join(name), volume.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
    }
    for entry in std::fs::read_dir(volume)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("..") && !names.contains(&name.as_str()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    if let Some(old) = old {
        std::fs::remove_dir_all(volume.join(old))?;
    }
    Ok(())
}

fn inside(path: &str) -> io::Result<PathBuf> {
    let path = PathBuf::from(path);
    let within = path.components().all(|part| matches!(part, Component::Normal(_)));
    within.then_some(path).ok_or_else(|| io::Error::other("a path of a volume's file must stay within the volume"))
}

fn is_current(volume: &Path, files: &Files) -> bool {
    let data = volume.join(DATA);
    let same =
        |(path, content): (&String, &Content)| std::fs::read(data.join(path)).is_ok_and(|bytes| bytes == content.bytes);
    data.exists() && count(&data) == files.len() && files.iter().all(same)
}

fn count(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_and_removed_together() {
        let dir = std::env::temp_dir().join(format!("boathook-files-{}", std::process::id()));
        let content = |text: &str| Content { bytes: text.as_bytes().to_vec(), mode: 0o640 };
        let files =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(path, text)| ((*path).to_owned(), content(text))).collect();
        write(&dir, &files(&[("a", "1"), ("deep/b", "1")])).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("deep/b")).unwrap(), "1");
        assert_eq!(std::fs::metadata(dir.join("a")).unwrap().permissions().mode() & 0o777, 0o640);
        let first = std::fs::read_link(dir.join(DATA)).unwrap();
        write(&dir, &files(&[("a", "1"), ("deep/b", "1")])).unwrap();
        assert_eq!(std::fs::read_link(dir.join(DATA)).unwrap(), first, "the same content is not written again");
        write(&dir, &files(&[("a", "2")])).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("a")).unwrap(), "2");
        assert!(!dir.join("deep").exists() && !dir.join(first).exists());
        assert!(write(&dir, &files(&[("../x", "1")])).is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
