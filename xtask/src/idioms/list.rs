//! The phrases, and what to write instead.

use std::sync::LazyLock;

use regex::Regex;

use super::text::Piece;

struct Idiom {
    pattern: &'static str,
    instead: &'static str,
    /// Words before it, or after it, with which it is an ordinary phrase.
    unless: Unless,
}

enum Unless {
    Never,
    After(&'static [&'static str]),
    Question,
}

/// A phrase that was found in a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) line: usize,
    pub(super) phrase: String,
    pub(super) instead: &'static str,
}

const SUBJECT: &str = "a named subject: the caller, the user, the controller, the process, no pod";

/// Case counts: a sentence begins with a capital letter.
const IDIOMS: &[Idiom] = &[
    Idiom { pattern: r"\b[Aa]ny ?more\b", instead: "\"no longer\"", unless: Unless::Never },
    Idiom {
        pattern: r"\b(is|are|was|were) no\s+(?P<next>[a-z-]+)",
        instead: "\"is not a\" or \"are not\"",
        unless: Unless::After(&["there", "There"]),
    },
    Idiom {
        pattern: r"\b([Ll]eave|[Ll]eaves|[Ll]eaving|[Ll]eft)\s+(?:\S+\s+){0,4}?away\b",
        instead: "\"omit\" or \"remove\"",
        unless: Unless::Never,
    },
    Idiom { pattern: r"\b[Mm]end(s|ed|ing)?\b", instead: "\"fix\"", unless: Unless::Never },
    Idiom {
        pattern: r"\b[Tt]imes?\s+(is|are|was|were|has been|had been)\s+over\b",
        instead: "\"expired\" or \"timed out\"",
        unless: Unless::Never,
    },
    Idiom {
        pattern: r"\b([Ww]hoever|[Nn]obody|[Ss]omebody|[Ee]verybody|[Aa]nybody|[Oo]neself)\b",
        instead: SUBJECT,
        unless: Unless::Never,
    },
    Idiom { pattern: r"\b(whether|if|of|by|for|than|so)\s+who\b", instead: SUBJECT, unless: Unless::Never },
    Idiom {
        pattern: r"(?:^|[.!?;:|]\s+|\n\s*(?:[-*]\s+)?|\*\*)(?P<phrase>Who\s+[a-z]+)",
        instead: SUBJECT,
        unless: Unless::Question,
    },
    Idiom {
        pattern: r"(?:^|[.!?;:|]\s+|\*\*|[-*]\s+)(?P<phrase>One\s+(that|which|who|whose)\b)",
        instead: SUBJECT,
        unless: Unless::Never,
    },
    Idiom {
        pattern: r"(?:^|[.!?;:|]\s+|\*\*|[-*]\s+)(?P<phrase>What\s+[^.!?;:,|]{3,60}?\s(is|are|was|were)\s+((not|never|then|also|told)\s+)?([a-z]+ed|kept|run|left|made|lost|gone|said|seen|held|undone|done|owed|what|tried)\b)",
        instead: SUBJECT,
        unless: Unless::Question,
    },
];

/// Words after "is no" that make it an ordinary phrase.
const ORDINARY: [&str; 7] = ["longer", "more", "less", "later", "earlier", "different", "other"];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let pattern = |idiom: &Idiom| Regex::new(idiom.pattern).expect("the patterns of the list are regular expressions");
    IDIOMS.iter().map(pattern).collect()
});

/// Every phrase of the list in this piece, in the order of the text.
pub(super) fn search(piece: &Piece) -> Vec<Found> {
    let Piece { line, text } = piece;
    let mut found = Vec::new();
    for (idiom, pattern) in IDIOMS.iter().zip(PATTERNS.iter()) {
        for captures in pattern.captures_iter(text) {
            let Some(phrase) = captures.name("phrase").or_else(|| captures.get(0)) else { continue };
            let next = captures.name("next").map_or("", |next| next.as_str());
            let before = text[..phrase.start()].split_whitespace().next_back().unwrap_or_default();
            let is_ordinary = match idiom.unless {
                Unless::Never => false,
                Unless::After(words) => words.contains(&before) || ORDINARY.contains(&next),
                Unless::Question => is_question(&text[phrase.start()..]) || is_heading(text, phrase.start()),
            };
            if !is_ordinary {
                let line = line + text[..phrase.start()].matches('\n').count();
                let phrase = phrase.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
                found.push((
                    captures.get(0).map_or(0, |all| all.start()),
                    Found { line, phrase, instead: idiom.instead },
                ));
            }
        }
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, found)| found).collect()
}

fn is_question(rest: &str) -> bool {
    rest.find(['.', '!', '?', ';', '|']).is_some_and(|end| rest[end..].starts_with('?'))
}

fn is_heading(text: &str, place: usize) -> bool {
    let line = text[..place].rfind('\n').map_or(0, |end| end + 1);
    text[line..].starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let piece = Piece { line: 1, text: text.to_owned() };
        search(&piece).into_iter().map(|found| format!("{}: {}", found.line, found.phrase)).collect()
    }

    #[test]
    fn idioms_of_the_style_guide_are_found() {
        for (text, phrase) in [
            ("it is not frozen any more", "1: any more"),
            ("it is no\nsignal", "1: is no signal"),
            ("the names are no fields", "1: are no fields"),
            ("leave actionTimeoutSeconds away", "1: leave actionTimeoutSeconds away"),
            ("may be left\naway", "1: left away"),
            ("mend it", "1: mend"),
            ("before its\ntime was over", "2: time was over"),
            ("Whoever is frozen waits", "1: Whoever"),
            ("read by nobody", "1: nobody"),
            ("it says whether who asks may", "1: whether who"),
            ("By then. Who waits for room leaves", "1: Who waits"),
            ("What could not be undone is tried again", "1: What could not be undone is tried"),
            ("One that failed is retried", "1: One that"),
        ] {
            assert_eq!(found(text), [phrase], "{text}");
        }
    }

    #[test]
    fn ordinary_phrases_are_not_found() {
        for text in [
            "there is no pod",
            "There are no\nhooks",
            "it is no longer held",
            "it takes no more than 3 s and is no different",
            "the user who asked is recorded",
            "Who may do what?",
            "# Who may do what",
            "What happens to it:",
            "What is frozen",
            "an amendment is recommended",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
