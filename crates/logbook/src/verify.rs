//! Reads a copy of a book, and says whether all of it is there. Nothing is changed.

use std::{
    fmt::{self, Write as _},
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use crate::{
    book::{ENTRIES, INDEX},
    error::{Doing, Error, Result},
    record::{Entry, HEAD, LINE, checksum},
};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many records are whole, from the first on, and named by the index. The last one has this number.
    pub records: u64,
    /// What is wrong after those; nothing if the copy is whole.
    pub problems: Vec<Problem>,
    /// Where the last whole record ends.
    pub(crate) end: u64,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `entries` or `index`.
    pub file: &'static str,
    /// In that file.
    pub offset: u64,
    pub what: String,
}

/// Reads the book in this directory. Fails when there is none to be read.
pub fn verify(dir: &Path) -> Result<Report, Error> {
    // In the other order than they are written.
    let (index, bad_line) = read(dir, INDEX, next_line)?;
    let (entries, bad_record) = read(dir, ENTRIES, next_record)?;
    let agreeing = entries.iter().zip(&index).take_while(|(entry, line)| entry == line).count();
    let disagreement = compare(&entries[agreeing..], &index[agreeing..], bad_record.is_some());
    let end = entries[..agreeing].last().map_or(0, Entry::end);
    let problems = [bad_record, bad_line, disagreement].into_iter().flatten().collect();
    Ok(Report { records: agreeing as u64, problems, end })
}

/// What the rest of `entries` and the rest of `index` have against each other.
fn compare(entries: &[Entry], index: &[Entry], cut_off: bool) -> Option<Problem> {
    let at_line = |line: &Entry| (line.number - 1) * LINE as u64;
    let problem = |file, offset, what| Some(Problem { file, offset, what });
    match (entries, index) {
        ([], []) => None,
        ([entry, .., last], []) => {
            let (first, last) = (entry.number, last.number);
            problem(ENTRIES, entry.offset, format!("records {first} to {last} are not in the index"))
        }
        ([entry], []) => problem(ENTRIES, entry.offset, format!("record {} is not in the index", entry.number)),
        ([], [line, .., last]) => {
            let (first, last) = (line.number, last.number);
            problem(INDEX, at_line(line), format!("records {first} to {last} are named, and are not there"))
        }
        ([], [line]) if cut_off => {
            problem(INDEX, at_line(line), format!("record {} is named, and is not whole", line.number))
        }
        ([], [line]) => problem(INDEX, at_line(line), format!("record {} is named, and is not there", line.number)),
        ([_, ..], [line, ..]) => {
            problem(INDEX, at_line(line), format!("record {} is named otherwise than it is", line.number))
        }
    }
}

/// Reads one: `None` at the end of the file.
type Next = fn(&mut dyn Read, number: u64, offset: u64) -> std::io::Result<Option<Result<Entry, String>>>;

/// All that is in order, up to the first that is not: nothing can be known of what comes after it.
fn read(dir: &Path, file: &'static str, next: Next) -> Result<(Vec<Entry>, Option<Problem>)> {
    let path = dir.join(file);
    let opened = File::open(&path).doing(|| format!("open `{}`", path.display()))?;
    let mut reader = BufReader::new(opened);
    let (mut found, mut offset) = (Vec::new(), 0);
    loop {
        let number = found.len() as u64 + 1;
        match next(&mut reader, number, offset).doing(|| format!("read `{}`", path.display()))? {
            None => return Ok((found, None)),
            Some(Err(what)) => return Ok((found, Some(Problem { file, offset, what }))),
            Some(Ok(entry)) => {
                offset = if file == INDEX { offset + LINE as u64 } else { entry.end() };
                found.push(entry);
            }
        }
    }
}

fn next_line(from: &mut dyn Read, number: u64, _: u64) -> std::io::Result<Option<Result<Entry, String>>> {
    let line = up_to(from, LINE)?;
    Ok(match line.len() {
        0 => None,
        LINE => Some(
            Entry::parse_line(&line)
                .filter(|entry| entry.number == number)
                .ok_or_else(|| format!("this is not the line of record {number}")),
        ),
        there => Some(Err(format!("the line of record {number} is cut off: {there} of {LINE} bytes"))),
    })
}

fn next_record(from: &mut dyn Read, number: u64, offset: u64) -> std::io::Result<Option<Result<Entry, String>>> {
    let head = up_to(from, HEAD)?;
    let entry = match head.len() {
        0 => return Ok(None),
        HEAD => Entry::parse_head(&head, offset).filter(|entry| entry.number == number),
        there => return Ok(Some(Err(format!("the head of record {number} is cut off: {there} of {HEAD} bytes")))),
    };
    let Some(entry) = entry else {
        return Ok(Some(Err(format!("this is not the head of record {number}"))));
    };
    let wanted = usize::try_from(entry.length).unwrap_or(usize::MAX);
    let text = up_to(from, wanted)?;
    Ok(Some(match text.len() == wanted {
        false => Err(format!("record {number} is cut off: {} of {wanted} bytes", text.len())),
        true if checksum(number, &text) != entry.checksum => Err(format!("record {number} has a wrong checksum")),
        true => Ok(entry),
    }))
}

/// This many bytes, or fewer at the end of the file.
fn up_to(from: &mut dyn Read, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Report {
    pub fn is_torn(&self) -> bool {
        !self.problems.is_empty()
    }

    /// For a program.
    pub fn json(&self) -> String {
        let mut problems = String::new();
        for (place, Problem { file, offset, what }) in self.problems.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            // The words are all from here: nothing in them needs to be escaped.
            write!(problems, r#"{comma}{{"file":"{file}","offset":{offset},"what":"{what}"}}"#)
                .expect("a text takes what is written to it");
        }
        let (records, torn) = (self.records, self.is_torn());
        format!(r#"{{"records":{records},"lastRecord":{records},"torn":{torn},"problems":[{problems}]}}"#)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_torn() { "torn after" } else { "whole:" };
        write!(to, "{word} {} records", self.records)?;
        self.problems.iter().try_for_each(|problem| write!(to, "\n  {problem}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} at {}: {}", self.file, self.offset, self.what)
    }
}

#[cfg(test)]
mod tests;
