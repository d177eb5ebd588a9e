//! That a book is frozen, noted on the disk: whoever serves it next keeps to it.
//!
//! The note names the file that it stands in: device, inode, and when it was made, because the number of an inode is given
//! to another file as soon as it is free. So it holds where it was written, and not in a copy of the volume: what is
//! restored from a snapshot is not frozen.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::error::{Doing, Result};

/// More than any note.
const LONGEST: u64 = 100;

pub(crate) struct Note {
    dir: PathBuf,
}

impl Note {
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Since when it is frozen, by what is noted.
    pub(crate) fn read(&self) -> Result<Option<SystemTime>> {
        match self.try_read() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            outcome => outcome.doing(|| format!("read `{}`", self.path().display())),
        }
    }

    fn try_read(&self) -> io::Result<Option<SystemTime>> {
        let file = File::open(self.path())?;
        let place = place(&file)?;
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text)?;
        let since = text.strip_suffix('\n').and_then(|line| line.strip_prefix(&place)?.strip_prefix(' ')?.parse().ok());
        Ok(since.map(|millis| UNIX_EPOCH + Duration::from_millis(millis)))
    }

    pub(crate) fn write(&self, since: SystemTime) -> Result<()> {
        self.try_write(since).doing(|| format!("write `{}`", self.path().display()))
    }

    fn try_write(&self, since: SystemTime) -> io::Result<()> {
        let mut file = File::create(self.path())?;
        writeln!(file, "{} {}", place(&file)?, millis(since))?;
        file.sync_all()?;
        File::open(&self.dir)?.sync_all()
    }

    pub(crate) fn remove(&self) -> Result<()> {
        match std::fs::remove_file(self.path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            outcome => outcome.doing(|| format!("remove `{}`", self.path().display())),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join("frozen")
    }
}

fn place(file: &File) -> io::Result<String> {
    let metadata = file.metadata()?;
    // Some file systems do not know it.
    let made = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(format!("{}:{}:{}", metadata.dev(), metadata.ino(), made.as_nanos()))
}

/// As a number, for other programs.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_note_holds_where_it_was_written_and_in_no_copy() {
        let (dir, copy) = (Scratch::new("note"), Scratch::new("note-copy"));
        let note = Note::in_dir(dir.path());
        assert_eq!(note.read().unwrap(), None);
        let since = UNIX_EPOCH + Duration::from_millis(1_733_000_000_123);
        note.write(since).unwrap();
        assert_eq!(Note::in_dir(dir.path()).read().unwrap(), Some(since));
        std::fs::copy(dir.path().join("frozen"), copy.path().join("frozen")).unwrap();
        assert_eq!(Note::in_dir(copy.path()).read().unwrap(), None);
        note.remove().unwrap();
        note.remove().unwrap();
        assert_eq!(note.read().unwrap(), None);
    }

    /// As a volume that is restored after the thaw: its file may well get the inode of the one that is gone.
    #[test]
    fn a_note_does_not_hold_in_a_copy_that_has_its_inode() {
        let dir = Scratch::new("note-again");
        let (note, path) = (Note::in_dir(dir.path()), dir.path().join("frozen"));
        note.write(UNIX_EPOCH + Duration::from_millis(1_733_000_000_123)).unwrap();
        let text = std::fs::read(&path).unwrap();
        // The clock of the file system moves in ticks; a volume takes longer than one.
        let made = |path: &Path| std::fs::metadata(path).unwrap().created().ok();
        let (first, later) = (made(&path), dir.path().join("later"));
        while first.is_some() && !(later.exists() && made(&later) > first) {
            let _ = std::fs::remove_file(&later);
            std::fs::write(&later, "").unwrap();
        }
        note.remove().unwrap();
        std::fs::write(&path, text).unwrap();
        assert_eq!(note.read().unwrap(), None);
    }
}
