//! Names of objects, label keys and label values, with Kubernetes' words for those it refuses.

use serde_json::{Value, json};

use crate::object;
use crate::resource::NameRule;
use crate::selector::{label_key_problems, label_value_problems};
use crate::status::FieldError;

pub(crate) const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

pub(crate) fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

const LETTER_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Checks a name by the rule of its kind. A stem (`metadata.generateName`) may end in a dash.
pub(crate) fn check(field: &str, name: &str, rule: NameRule, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(field, &json!(name), detail));
    let stem = name.strip_suffix('-').filter(|_| field.ends_with("generateName"));
    let checked = stem.map_or(name.to_owned(), |stem| format!("{stem}a"));
    let name = checked.as_str();
    match rule {
        NameRule::Subdomain => {
            if name.len() > 253 {
                refuse("must be no more than 253 characters");
            }
            if !is_subdomain(name) {
                refuse(SUBDOMAIN);
            }
        }
        NameRule::Label | NameRule::LetterLabel => {
            if name.len() > 63 {
                refuse("must be no more than 63 characters");
            }
            let begins = rule == NameRule::Label || name.starts_with(|first: char| first.is_ascii_lowercase());
            if !begins || !is_label(name) {
                let dots = rule == NameRule::Label && name.split('.').all(is_label);
                refuse(match rule {
                    NameRule::Label if dots => "must not contain dots",
                    NameRule::Label => LABEL,
                    _ => LETTER_LABEL,
                });
            }
        }
        NameRule::Segment => match name {
            "." => refuse("may not be '.'"),
            ".." => refuse("may not be '..'"),
            _ if name.contains('/') => refuse("may not contain '/'"),
            _ if name.contains('%') => refuse("may not contain '%'"),
            _ => {}
        },
    }
}

/// Checks the keys of labels and annotations, and the values of labels.
pub(crate) fn check_labels(object: &Value, errors: &mut Vec<FieldError>) {
    let mut refuse = |field: &str, value: &str, problems: Vec<String>| {
        errors.extend(problems.iter().map(|problem| FieldError::invalid(field, &json!(value), problem)));
    };
    for (key, value) in object::labels(object) {
        refuse("metadata.labels", key, label_key_problems(key));
        refuse("metadata.labels", value, label_value_problems(value));
    }
    for (key, _) in object::annotations(object) {
        // Of these the case does not matter.
        refuse("metadata.annotations", key, label_key_problems(&key.to_lowercase()));
    }
}

/// A DNS label, but for its length.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, rule: NameRule) -> bool {
        let mut errors = Vec::new();
        check("metadata.name", name, rule, &mut errors);
        !errors.is_empty()
    }

    #[test]
    fn every_bad_label_and_annotation_is_told() {
        let object = json!({"metadata": {"labels": {"bad key": "bad value", "good": ""},
                                         "annotations": {"Example.COM/Good": "any thing", "bad key": ""}}});
        let mut errors = Vec::new();
        check_labels(&object, &mut errors);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["metadata.labels", "metadata.labels", "metadata.annotations"]);
        let text = errors[0].to_string();
        assert!(text.starts_with("metadata.labels: Invalid value: \"bad key\": name part must consist of"), "{text}");
    }

    #[test]
    fn each_rule_takes_what_it_should() {
        assert!(!refused("web.v1-2", NameRule::Subdomain) && refused("web.v1", NameRule::Label));
        assert!(!refused("system:node", NameRule::Segment) && refused("system:node", NameRule::Subdomain));
        for bad in ["Web", "-web", "web-", "we_b", "a..b", ""] {
            assert!(refused(bad, NameRule::Subdomain), "{bad}");
        }
        assert!(refused("..", NameRule::Segment) && refused("a/b", NameRule::Segment));
    }
}
