//! Names of objects, label keys and label values, with Kubernetes' words for those it refuses.

use serde_json::{Value, json};

use crate::object;
use crate::resource::NameRule;
use crate::selector::{label_key_problems, label_value_problems};
use crate::status::FieldError;

pub(crate) const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Keys of ConfigMaps and Secrets become names of files and of variables.
pub(crate) fn check_config_keys(object: &Value, errors: &mut Vec<FieldError>) {
    let keys = |list: &str| object.get(list).and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key);
    for (list, other) in [("data", "binaryData"), ("binaryData", "data")] {
        for key in keys(list) {
            let mut refuse =
                |detail: &str| errors.push(FieldError::invalid(format!("{list}[{key}]"), &json!(key), detail));
            if key.len() > 253 {
                refuse("must be no more than 253 characters");
            }
            if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
                refuse(CONFIG_KEY);
            } else if key == "." || key == ".." {
                refuse(&format!("must not be '{key}'"));
            } else if key.starts_with("..") {
                refuse("must not start with '..'");
            }
            if list == "data" && object.get(other).is_some_and(|other| other.get(key).is_some()) {
                refuse("duplicate of key present in binaryData");
            }
        }
    }
}

/// Checks `metadata.name` by the rule of its kind.
pub(crate) fn check(name: &str, rule: NameRule, errors: &mut Vec<FieldError>) {
    check_at("metadata.name", name, rule, errors);
}

pub(crate) fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

/// Checks a name that stands elsewhere.
pub(crate) fn check_at(at: &str, name: &str, rule: NameRule, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(at, &json!(name), detail));
    match rule {
        NameRule::Subdomain => {
            if name.len() > 253 {
                refuse("must be no more than 253 characters");
            }
            if !is_subdomain(name) {
                refuse(SUBDOMAIN);
            }
        }
        NameRule::Label => {
            if name.len() > 63 {
                refuse("must be no more than 63 characters");
            }
            if !is_label(name) {
                refuse(LABEL);
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
        check(name, rule, &mut errors);
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
