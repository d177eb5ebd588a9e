//! Files and folders, with errors that name them.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

pub(super) fn folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("failed to make the folder `{}`", path.display()))
}

/// An empty folder, whatever was there.
pub(super) fn fresh_folder(path: &Path) -> Result<()> {
    remove_folder(path)?;
    folder(path)
}

pub(super) fn remove_folder(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove the folder `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

pub(super) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, contents).with_context(|| format!("failed to write `{}`", path.display()))
}

/// A script, to be run.
pub(super) fn write_program(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    write(path, contents)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("failed to make `{}` a program", path.display()))
}

/// The last lines of a log, indented; a log that cannot be read says so instead.
pub(super) fn tail(path: &Path, lines: usize) -> String {
    match read_end(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].iter().map(|line| format!("    {line}\n")).collect()
        }
        Err(error) => format!("    (the log cannot be read: {error})\n"),
    }
}

/// As much of the end of a file as a person would look at: logs only grow.
fn read_end(path: &Path) -> std::io::Result<Vec<u8>> {
    const END: u64 = 64 * 1024;
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
