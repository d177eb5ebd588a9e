//! Pieces of text, as a reader meets them: paragraphs, comments, messages.

/// A piece of text; its line breaks are those of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The line of the file on which it begins, from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The paragraphs of a page, without blocks of code: they show what programs print.
pub(super) fn pieces(page: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (place, line) in page.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if is_fence || fenced || line.trim().is_empty() {
            open = false;
        } else if let Some(last) = pieces.last_mut().filter(|_| open) {
            last.text.push('\n');
            last.text.push_str(line);
        } else {
            pieces.push(Piece { line: place + 1, text: line.to_owned() });
            open = true;
        }
    }
    pieces.iter_mut().for_each(|piece| piece.text = without_code(&piece.text));
    pieces
}

/// The text with all that stands between backticks blanked: names are not words.
pub(super) fn without_code(text: &str) -> String {
    let mut inside = false;
    let pairs = text.matches('`').count() / 2;
    let mut seen = 0;
    text.chars()
        .map(|one| {
            if one == '`' && seen < 2 * pairs {
                seen += 1;
                inside = !inside;
                return '`';
            }
            if inside && one != '\n' { '_' } else { one }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_spans_of_code_are_left_out() {
        let pieces = pieces("# A\n\none `nobody`\ntwo\n```sh\nsomebody\n```\nthree ` four\n");
        let told: Vec<_> = pieces.iter().map(|piece| (piece.line, piece.text.as_str())).collect();
        assert_eq!(told, [(1, "# A"), (3, "one `______`\ntwo"), (8, "three ` four")]);
    }
}
