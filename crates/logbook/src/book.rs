//! The book as its only writer has it: appended to, one record after the other.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    error::{Doing, Result},
    record::{Entry, HEAD, LINE},
    verify::{Problem, verify},
};

/// The records, one after the other.
pub(crate) const ENTRIES: &str = "entries";

/// A line for each record, written when it is there.
pub(crate) const INDEX: &str = "index";

/// In how many writes a record comes.
pub(crate) const PARTS: usize = 8;

pub(crate) struct Book {
    dir: PathBuf,
    entries: File,
    index: File,
    records: u64,
    end: u64,
}

impl Book {
    /// Opens it, made where there is none. What is wrong with its end, because its last writer was killed, is dropped
    /// and returned.
    pub(crate) fn open(dir: &Path) -> Result<(Self, Vec<Problem>)> {
        std::fs::create_dir_all(dir).doing(|| format!("make `{}`", dir.display()))?;
        let open = |name: &str| {
            let path = dir.join(name);
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            opened.doing(|| format!("open `{}`", path.display()))
        };
        let (entries, index) = (open(ENTRIES)?, open(INDEX)?);
        let report = verify(dir)?;
        let book = Self { dir: dir.to_owned(), entries, index, records: report.records, end: report.end };
        if report.is_torn() {
            book.drop_the_rest().doing(|| format!("drop what is torn in `{}`", dir.display()))?;
        }
        Ok((book, report.problems))
    }

    fn drop_the_rest(&self) -> io::Result<()> {
        self.entries.set_len(self.end)?;
        self.index.set_len(self.records * LINE as u64)
    }

    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Adds a record: its parts, with a pause after each, then its line in the index.
    pub(crate) fn append(&mut self, text: &[u8], pause: impl Fn()) -> Result<()> {
        let entry = Entry::of(self.records + 1, self.end, text);
        let written = self.write(&entry, text, pause);
        written.doing(|| format!("write record {} in `{}`", entry.number, self.dir.display()))?;
        (self.records, self.end) = (entry.number, entry.end());
        Ok(())
    }

    fn write(&mut self, entry: &Entry, text: &[u8], pause: impl Fn()) -> io::Result<()> {
        let record = [entry.head().as_bytes(), text].concat();
        debug_assert_eq!(record.len(), HEAD + text.len());
        for part in record.chunks(record.len().div_ceil(PARTS)) {
            self.entries.write_all(part)?;
            pause();
        }
        self.index.write_all(entry.line().as_bytes())
    }
}

/// Brings all that was written in this directory to the disk, by whichever handle it was written.
pub(crate) fn sync(dir: &Path) -> Result<()> {
    for path in [dir.join(ENTRIES), dir.join(INDEX), dir.to_owned()] {
        let synced = File::open(&path).and_then(|file| file.sync_all());
        synced.doing(|| format!("sync `{}`", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{record::text, scratch::Scratch};

    #[test]
    fn a_book_that_is_opened_again_goes_on_where_it_ended() {
        let dir = Scratch::new("again");
        let (mut book, _) = Book::open(dir.path()).unwrap();
        book.append(&text(1), || ()).unwrap();
        drop(book);
        let (mut book, problems) = Book::open(dir.path()).unwrap();
        assert_eq!((book.records(), problems), (1, vec![]));
        book.append(&text(2), || ()).unwrap();
        let report = verify(dir.path()).unwrap();
        assert_eq!((report.records, report.is_torn()), (2, false), "{report}");
    }

    #[test]
    fn what_a_killed_writer_left_is_dropped() {
        let dir = Scratch::new("killed");
        let (mut book, _) = Book::open(dir.path()).unwrap();
        book.append(&text(1), || ()).unwrap();
        book.entries.write_all(&text(2)[..100]).unwrap();
        let (mut book, problems) = Book::open(dir.path()).unwrap();
        assert_eq!((book.records(), problems.len()), (1, 1), "{problems:?}");
        book.append(&text(2), || ()).unwrap();
        assert!(!verify(dir.path()).unwrap().is_torn());
    }

    #[test]
    fn while_a_record_is_written_the_book_is_torn() {
        let dir = Scratch::new("midst");
        let (mut book, _) = Book::open(dir.path()).unwrap();
        book.append(&text(1), || ()).unwrap();
        let pauses = Cell::new(0);
        book.append(&text(2), || {
            let report = verify(dir.path()).unwrap();
            assert!(report.is_torn() && report.records == 1, "{report}");
            pauses.set(pauses.get() + 1);
        })
        .unwrap();
        assert_eq!(pauses.get(), PARTS);
        assert!(!verify(dir.path()).unwrap().is_torn());
    }
}
