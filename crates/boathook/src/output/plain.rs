//! Foreign text, made fit for a line: what a container printed must not steer the reader's terminal.

use serde::Serialize;
use serde_json::Value;

/// One line: what would move the cursor is written out.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => line.push_str("    "),
            control if control.is_control() => line.extend(control.escape_default()),
            other => line.push(other),
        }
    }
    line
}

/// Its beginning, if it is longer than this many characters.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => text.chars().take(longest.saturating_sub(3)).chain("...".chars()).collect(),
    }
}

/// A value of an enum as the API spells it.
pub(crate) fn in_words(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}

/// In lines of at most this many characters, the first and the others, broken between words; a longer word has a line to
/// itself.
pub(crate) fn folded(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for (place, word) in text.split(' ').enumerate() {
        let room = if lines.is_empty() { first } else { others };
        if place == 0 {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(std::mem::replace(&mut line, word.to_owned()));
        }
    }
    lines.push(line);
    lines
}

/// A number of things: `1 pod`, `3 pods`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Names for a sentence: the first few, and how many more there are.
pub(crate) fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let all: Vec<_> = all.into_iter().collect();
    let shown = all.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A command as one would type it.
pub(crate) fn command(words: &[String]) -> String {
    let is_bare = |character: char| character.is_ascii_alphanumeric() || "%+,-./:=@_".contains(character);
    let typed = words.iter().map(|word| match !word.is_empty() && word.chars().all(is_bare) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    one_line(&typed.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(one_line("a\tb\x1b[2Jc\rd\u{9b}é"), "a    b\\u{1b}[2Jc\\rd\\u{9b}é");
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(cut("éééé", 4), "éééé");
        assert_eq!(cut("ééééé", 4), "é...");
        assert_eq!(names(["a", "b"]), "a, b");
        assert_eq!(names(["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
        assert_eq!((count(1, "pod"), count(0, "pod")), ("1 pod".to_owned(), "0 pods".to_owned()));
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(folded("to be or  not to be", 9, 6), ["to be or ", "not to", "be"]);
        assert_eq!(folded("a verylongword b", 4, 4), ["a", "verylongword", "b"]);
        assert_eq!(folded("", 4, 4), [""]);
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["sh", "-c", "echo it's\nme", ""].map(str::to_owned);
        assert_eq!(command(&words), r"sh -c 'echo it'\''s\nme' ''");
    }
}
