use std::fs;

use super::*;
use crate::{book::Book, record::text, scratch::Scratch};

/// Three whole records.
fn three(name: &str) -> Scratch {
    let dir = Scratch::new(name);
    let (mut book, _) = Book::open(dir.path()).unwrap();
    (1..=3).for_each(|number| book.append(&text(number), || ()).unwrap());
    dir
}

/// What is said of the book after its file was changed.
fn said(dir: &Scratch, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> (u64, Vec<String>) {
    let path = dir.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let report = verify(dir.path()).unwrap();
    (report.records, report.problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_whole_book_is_called_whole() {
    let report = verify(three("whole").path()).unwrap();
    assert_eq!(report.to_string(), "whole: 3 records");
    assert_eq!(report.json(), r#"{"records":3,"lastRecord":3,"torn":false,"problems":[]}"#);
}

#[test]
fn a_book_without_records_is_whole_and_no_book_cannot_be_read() {
    let dir = Scratch::new("empty");
    assert!(verify(dir.path()).unwrap_err().to_string().contains("failed to open `"));
    Book::open(dir.path()).unwrap();
    assert_eq!(verify(dir.path()).unwrap().records, 0);
}

#[test]
fn a_record_that_is_cut_off_is_named_with_its_place() {
    let dir = three("cut");
    let ends: Vec<u64> = read(dir.path(), ENTRIES, next_record).unwrap().0.iter().map(Entry::end).collect();
    let (records, problems) = said(&dir, ENTRIES, |bytes| bytes.truncate(bytes.len() - 1));
    let wanted = (ends[2] - ends[1]) as usize - HEAD;
    let cut = format!("entries at {}: record 3 is cut off: {} of {wanted} bytes", ends[1], wanted - 1);
    assert_eq!((records, problems), (2, vec![cut, "index at 104: record 3 is named, and is not whole".to_owned()]));
    let (_, problems) = said(&dir, ENTRIES, |bytes| bytes.truncate(ends[1] as usize + 10));
    assert!(problems[0].ends_with("the head of record 3 is cut off: 10 of 44 bytes"), "{problems:?}");
}

#[test]
fn an_index_that_is_older_or_newer_than_the_entries_is_told() {
    let dir = three("older");
    assert_eq!(
        said(&dir, INDEX, |bytes| bytes.truncate(2 * LINE)).1[0].split(": ").last(),
        Some("record 3 is not in the index")
    );
    assert!(said(&dir, INDEX, |bytes| bytes.truncate(LINE)).1[0].ends_with("records 2 to 3 are not in the index"));
    assert!(
        said(&dir, INDEX, |bytes| bytes.push(b'0')).1[0].ends_with("the line of record 2 is cut off: 1 of 52 bytes")
    );
    let dir = three("newer");
    let first = read(dir.path(), ENTRIES, next_record).unwrap().0[0].end() as usize;
    let told = said(&dir, ENTRIES, |bytes| bytes.truncate(first));
    assert_eq!(told, (1, vec!["index at 52: records 2 to 3 are named, and are not there".to_owned()]));
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let dir = three("changed");
    let middle = read(dir.path(), ENTRIES, next_record).unwrap().0[1].offset as usize;
    let (records, problems) = said(&dir, ENTRIES, |bytes| bytes[middle + HEAD + 5] ^= 1);
    assert!(records == 1 && problems[0].ends_with("record 2 has a wrong checksum"), "{problems:?}");
    let (_, problems) = said(&dir, ENTRIES, |bytes| bytes[middle] ^= 1);
    assert!(problems[0].ends_with("this is not the head of record 2"), "{problems:?}");
    let dir = three("line");
    let (records, problems) = said(&dir, INDEX, |bytes| bytes[LINE + 20] = b'7');
    assert_eq!((records, problems.len()), (1, 1));
    assert!(problems[0].ends_with("record 2 is named otherwise than it is"), "{problems:?}");
}
