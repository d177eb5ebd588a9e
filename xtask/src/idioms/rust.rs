//! What a reader meets in a Rust file: string literals, comments, and the comments that become `--help` or the description
//! of a field.
//!
//! A small lexer, for files as `cargo fmt` leaves them.

use super::text::{Piece, without_code};

/// Derives whose comments users read.
const FOR_USERS: [&str; 7] =
    ["Args", "Subcommand", "Parser", "ValueEnum", "KubeSchema", "JsonSchema", "CustomResource"];

/// What is in one file.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// String literals outside tests, and comments that users read.
    pub(super) messages: Vec<Piece>,
    /// All other comments.
    pub(super) comments: Vec<Piece>,
    /// Of `messages`: the comments.
    pub(super) documentation_of_users: Vec<Piece>,
}

/// A comment or a string literal.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Comment(Piece),
    Text(Piece),
}

impl Source {
    pub(super) fn read(source: &str) -> Self {
        let lines: Vec<_> = source.lines().collect();
        let for_users = for_users(&lines);
        let tests = lines.iter().position(|line| *line == "#[cfg(test)]").map_or(usize::MAX, |place| place + 1);
        let mut read = Self::default();
        // Comments on lines that follow each other are one text.
        let mut last: Option<(usize, bool)> = None;
        for token in tokens(source) {
            match token {
                Token::Comment(piece) => {
                    let is_for_users = for_users.get(piece.line - 1) == Some(&true) && is_documentation(&lines, &piece);
                    let follows = last == Some((piece.line, is_for_users));
                    last = Some((piece.line + piece.text.matches('\n').count() + 1, is_for_users));
                    let pieces = if is_for_users { &mut read.documentation_of_users } else { &mut read.comments };
                    match pieces.last_mut().filter(|_| follows) {
                        Some(before) => before.text = format!("{}\n{}", before.text, piece.text),
                        None => pieces.push(piece),
                    }
                }
                Token::Text(piece) if piece.line < tests => read.messages.push(piece),
                Token::Text(_) => {}
            }
        }
        for piece in [&mut read.messages, &mut read.comments, &mut read.documentation_of_users].into_iter().flatten() {
            piece.text = without_code(&piece.text);
        }
        read.messages.extend(read.documentation_of_users.iter().cloned());
        read.messages.sort_by_key(|piece| piece.line);
        read
    }
}

fn is_documentation(lines: &[&str], piece: &Piece) -> bool {
    lines.get(piece.line - 1).is_some_and(|line| line.trim_start().starts_with("///"))
}

/// For each line, whether it belongs to an item whose comments users read.
fn for_users(lines: &[&str]) -> Vec<bool> {
    let mut marked = vec![false; lines.len()];
    for (place, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if !line.trim_start().starts_with("#[derive(") {
            continue;
        }
        let end = lines[place..].iter().position(|line| line.contains(")]")).map_or(place, |more| place + more);
        let derives = lines[place..=end].join(" ");
        let mut derives = derives.split(|one: char| !one.is_ascii_alphanumeric());
        if !derives.any(|derive| FOR_USERS.contains(&derive)) {
            continue;
        }
        let is_before = |line: &&&str| line.trim_start().starts_with("///") || line.trim_start().starts_with("#[");
        let before = lines[..place].iter().rev().take_while(is_before).count();
        let is_end = |line: &&str| {
            let text = line.trim_start();
            line.len() - text.len() == indent
                && (text == "}" || (text.starts_with("pub struct") && text.ends_with(';')))
        };
        let last = lines[end..].iter().position(is_end).map_or(end, |more| end + more);
        marked[place - before..=last].fill(true);
    }
    marked
}

/// The comments and string literals of a file. What an `expect` says is a comment: it states an invariant.
fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(one) = rest.chars().next() {
        let before = &source[..source.len() - rest.len()];
        let (token, length) = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let text = rest[..length].trim_start_matches('/').trim_start_matches('!').trim();
            (Some(Token::Comment(Piece { line, text: text.to_owned() })), length)
        } else if let Some(length) = raw_string(rest).filter(|_| !before.ends_with(is_word)) {
            (Some(Token::Text(Piece { line, text: rest[..length].to_owned() })), length)
        } else if one == '"' {
            let length = string(rest);
            let piece = Piece { line, text: unescaped(&rest[1..length - 1]) };
            let is_invariant = before.trim_end().ends_with(".expect(");
            (Some(if is_invariant { Token::Comment(piece) } else { Token::Text(piece) }), length)
        } else {
            (None, character(rest).unwrap_or(one.len_utf8()))
        };
        tokens.extend(token);
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn is_word(one: char) -> bool {
    one.is_alphanumeric() || one == '_'
}

/// The length of a raw string at the start.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let marks = after.chars().take_while(|one| *one == '#').count();
    let inside = after[marks..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    Some(rest.len() - inside.len() + inside.find(&end)? + end.len())
}

/// The length of the string at the start, with its quotes.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (place, one) in rest.char_indices().skip(1) {
        match one {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of the character literal at the start; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    match inside.strip_prefix('\\') {
        Some(escape) => Some(2 + escape.char_indices().skip(1).find(|(_, one)| *one == '\'')?.0 + 1),
        None => {
            let length = inside.chars().next()?.len_utf8();
            inside[length..].starts_with('\'').then_some(length + 2)
        }
    }
}

/// The text of a literal, on as many lines: an escaped line break joins two lines.
fn unescaped(literal: &str) -> String {
    let joined = literal.replace("\\\n", "\n");
    joined.replace("\\n", " ").replace("\\\"", "\"").replace("\\t", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r##"//! A module.
/// What a user reads,
/// on two lines.
#[derive(Debug, Args)]
struct Options {
    /// An option.
    one: char,
}

/// Not read by users.
fn main() {
    let quote = '"'; // a comment
    let lifetime: &'static str = "one \
        two";
    let raw = r#"raw "text""#;
    held().expect("an invariant");
}

#[cfg(test)]
mod tests {
    const TEST: &str = "of a test";
}
"##;

    fn texts(pieces: &[Piece]) -> Vec<(usize, &str)> {
        pieces.iter().map(|piece| (piece.line, piece.text.as_str())).collect()
    }

    #[test]
    fn literals_and_comments_are_told_apart() {
        let source = Source::read(SOURCE);
        let messages = [
            (2, "What a user reads,\non two lines."),
            (6, "An option."),
            (13, "one \n        two"),
            (15, "r#\"raw \"text\"\"#"),
        ];
        assert_eq!(texts(&source.messages), messages);
        let comments = [(1, "A module."), (10, "Not read by users."), (12, "a comment"), (16, "an invariant")];
        assert_eq!(texts(&source.comments), comments);
        assert_eq!(source.documentation_of_users.len(), 2);
    }
}
