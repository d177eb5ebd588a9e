//! What a label's key and value may look like, and how Kubernetes says that one does not.

use crate::strategy::name::{SUBDOMAIN, is_label};

const MAX_LENGTH: usize = 63;
const MAX_PREFIX_LENGTH: usize = 253;
const CHARACTERS: &str =
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const KEY_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// All that is wrong with a label's key (an optional DNS prefix, `/`, a name); empty if it is right.
pub fn label_key_problems(key: &str) -> Vec<String> {
    let regex = format!(
        "must {CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY_REGEX}')"
    );
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            problems.extend(prefix_problems(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
        _ => {
            let prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {regex} {prefixed}")];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LENGTH {
        problems.push(format!("name part must be no more than {MAX_LENGTH} bytes"));
    }
    if !is_name(name) {
        problems.push(format!("name part {regex}"));
    }
    problems
}

/// All that is wrong with a label's value; empty if it is right.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_LENGTH {
        problems.push(format!("must be no more than {MAX_LENGTH} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        let examples = "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is";
        problems.push(format!("a valid label must be an empty string or {CHARACTERS} {examples} '({KEY_REGEX})?')"));
    }
    problems
}

fn prefix_problems(prefix: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if prefix.is_empty() {
        return vec!["must be non-empty".to_owned()];
    }
    if prefix.len() > MAX_PREFIX_LENGTH {
        problems.push(format!("must be no more than {MAX_PREFIX_LENGTH} bytes"));
    }
    if !prefix.split('.').all(is_label) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

fn is_name(text: &str) -> bool {
    let is_end = |character: char| character.is_ascii_alphanumeric();
    let inside = |character: char| is_end(character) || "-_.".contains(character);
    text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_keys_and_values_are_right() {
        for key in ["a", "app.kubernetes.io/name", "A_b-c.9", "x/Y"] {
            assert_eq!(label_key_problems(key), Vec::<String>::new(), "{key}");
        }
        for value in ["", "v1.2_3-x", "7"] {
            assert_eq!(label_value_problems(value), Vec::<String>::new(), "{value}");
        }
    }

    #[test]
    fn each_part_of_a_key_is_checked() {
        assert_eq!(label_key_problems("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_key_problems(&"x".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert_eq!(label_key_problems("a/").len(), 2);
        assert!(label_key_problems("A..b/c")[0].starts_with("prefix part a lowercase RFC 1123 subdomain"));
        assert!(label_key_problems("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert_eq!(label_key_problems("A_").len(), 1);
    }

    #[test]
    fn a_value_ends_with_a_letter_or_digit_and_is_short() {
        assert_eq!(label_value_problems("a-").len(), 1);
        assert_eq!(label_value_problems(&"x".repeat(64)), ["must be no more than 63 bytes"]);
    }
}
