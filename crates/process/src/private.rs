//! Directories and files of this host that only their owner may read.
//!
//! State of an agent and of an embedded cluster holds tokens, commands and application data: other users of the machine
//! must not read it, also when an earlier version created it with wider modes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// Creates the directory, or takes the rights of other users away from an existing one and from the files in it.
pub fn directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)?;
    restrict(path, DIRECTORY)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            restrict(&entry.path(), FILE)?;
        }
    }
    Ok(())
}

/// Creates the file, or empties an existing one.
pub fn create_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Like [`fs::write`], for a file that only its owner may read.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    create_file(path)?.write_all(contents)
}

fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        // Another process removed it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.permissions().mode() & 0o077 == 0 => Ok(()),
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(mode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn wide_modes_are_narrowed() {
        let dir = std::env::temp_dir().join(format!("boathook-private-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (old, new) = (dir.join("old"), dir.join("new"));
        fs::write(&old, "secret").unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        directory(&dir).unwrap();
        write(&new, b"secret").unwrap();
        assert_eq!([mode(&dir), mode(&old), mode(&new)], [DIRECTORY, FILE, FILE]);
        fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        write(&old, b"other").unwrap();
        assert_eq!((mode(&old), fs::read_to_string(&old).unwrap()), (FILE, "other".to_owned()));
        fs::remove_dir_all(dir).unwrap();
    }
}
