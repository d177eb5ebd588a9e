//! Foreign text, made fit for a line: what a container printed must not steer somebody's terminal.

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
    fn a_command_can_be_typed_again() {
        let words = ["sh", "-c", "echo it's\nme", ""].map(str::to_owned);
        assert_eq!(command(&words), r"sh -c 'echo it'\''s\nme' ''");
    }
}
