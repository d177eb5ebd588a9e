//! Label selectors. A selector that Kubernetes would refuse selects nothing and says nothing: so the schema refuses it
//! ([`restrict`]), and [`parse`] refuses it in objects that were stored before the schema did.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use serde_json::{Value, json};

/// The key of a label: an optional DNS name and a slash, then up to 63 characters.
const KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// The value of a label.
const VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Limits of the lists: the API server takes a rule only if it knows how often it may run.
const MOST: u32 = 100;

/// The selector, if Kubernetes takes it; the error begins with the field in it.
pub fn parse(selector: &LabelSelector) -> Result<Selector, String> {
    for (key, value) in selector.match_labels.iter().flatten() {
        is_key("matchLabels", key)?;
        is_value(&format!("matchLabels[{key}]"), value)?;
    }
    for (place, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let field = format!("matchExpressions[{place}]");
        let values = expression.values.as_deref().unwrap_or_default();
        is_key(&format!("{field}.key"), &expression.key)?;
        match (expression.operator.as_str(), values) {
            ("In" | "NotIn", []) => {
                return Err(format!("{field}.values: is empty: {} needs values", expression.operator));
            }
            ("In" | "NotIn", _) | ("Exists" | "DoesNotExist", []) => {}
            ("Exists" | "DoesNotExist", _) => {
                return Err(format!("{field}.values: {} takes no values: remove them", expression.operator));
            }
            (unknown, _) => {
                return Err(format!("{field}.operator: {unknown:?} is unknown: write {}", OPERATORS.join(", ")));
            }
        }
        for (place, value) in values.iter().enumerate() {
            is_value(&format!("{field}.values[{place}]"), value)?;
        }
    }
    Selector::try_from(selector.clone()).map_err(|wrong| wrong.to_string())
}

fn is_key(field: &str, key: &str) -> Result<(), String> {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_is_good = prefix.is_none_or(|prefix| crate::names::object(field, prefix).is_ok() && prefix.len() <= 253);
    match prefix_is_good && !name.is_empty() && is_word(name) {
        true => Ok(()),
        false => Err(format!(
            "{field}: {key:?} is not the key of a label: write {OF_WORDS}, after a DNS name and `/` or not"
        )),
    }
}

fn is_value(field: &str, value: &str) -> Result<(), String> {
    match is_word(value) {
        true => Ok(()),
        false => Err(format!("{field}: {value:?} is not the value of a label: write {OF_WORDS}, or nothing")),
    }
}

const OF_WORDS: &str = "up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";

/// At most 63 characters of a label's key or value; none is as good.
fn is_word(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    let is_good = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
    text.len() <= 63 && ends.iter().flatten().all(char::is_ascii_alphanumeric) && text.chars().all(is_good)
}

/// Makes a schema refuse what [`parse`] refuses, wherever it has a label selector. Keys of `matchLabels` are left to
/// [`parse`]: a structural schema has no pattern for keys.
pub(crate) fn restrict(schema: &mut Value) {
    let is_selector = |fields: &&mut Value| fields.get("matchExpressions").and(fields.get("matchLabels")).is_some();
    if let Some(fields) = schema.get_mut("properties").filter(is_selector) {
        fields["matchLabels"]["additionalProperties"]["pattern"] = json!(VALUE);
        let expressions = &mut fields["matchExpressions"];
        expressions["maxItems"] = json!(MOST);
        let expression = &mut expressions["items"];
        expression["properties"]["key"]["pattern"] = json!(KEY);
        expression["properties"]["key"]["maxLength"] = json!(317);
        expression["properties"]["operator"]["enum"] = json!(OPERATORS);
        expression["properties"]["values"]["maxItems"] = json!(MOST);
        expression["properties"]["values"]["items"]["pattern"] = json!(VALUE);
        expression["properties"]["values"]["items"]["maxLength"] = json!(63);
        let has_values = "(has(self.values) && self.values.size() > 0)";
        expression["x-kubernetes-validations"] = json!([
            {"rule": format!("!(self.operator in ['In', 'NotIn']) || {has_values}"),
                "message": "operators In and NotIn need values: write at least one", "fieldPath": ".values"},
            {"rule": format!("!(self.operator in ['Exists', 'DoesNotExist']) || !{has_values}"),
                "message": "operators Exists and DoesNotExist take no values: remove them", "fieldPath": ".values"},
        ]);
        return;
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(restrict),
        Value::Array(items) => items.iter_mut().for_each(restrict),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(selector: Value) -> Result<Selector, String> {
        parse(&serde_json::from_value(selector).unwrap())
    }

    fn expression(key: &str, operator: &str, values: Value) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    #[test]
    fn valid_selectors_are_taken() {
        for good in [
            json!({}),
            json!({"matchLabels": {"app": "db", "example.com/tier": "", "A_b.c": "D-e_f.1"}}),
            expression("app", "In", json!(["db"])),
            expression("app", "NotIn", json!(["db", ""])),
            expression("app", "Exists", json!([])),
            expression("app", "DoesNotExist", json!(null)),
        ] {
            parsed(good.clone()).unwrap_or_else(|wrong| panic!("{good}: {wrong}"));
        }
    }

    #[test]
    fn mistake_is_told_at_its_place() {
        for (wrong, words) in [
            (
                expression("app", "Has", json!(["a"])),
                r#"matchExpressions[0].operator: "Has" is unknown: write In, NotIn"#,
            ),
            (expression("app", "In", json!([])), "matchExpressions[0].values: is empty: In needs values"),
            (expression("app", "NotIn", json!(null)), "matchExpressions[0].values: is empty: NotIn needs values"),
            (expression("app", "Exists", json!(["a"])), "matchExpressions[0].values: Exists takes no values"),
            (
                expression("app", "DoesNotExist", json!(["a"])),
                "matchExpressions[0].values: DoesNotExist takes no values",
            ),
            (expression("a b", "In", json!(["a"])), r#"matchExpressions[0].key: "a b" is not the key of a label"#),
            (expression("", "Exists", json!([])), "matchExpressions[0].key: "),
            (expression("A.com/a", "Exists", json!([])), "matchExpressions[0].key: "),
            (expression("app", "In", json!(["a", "b\0"])), r#"matchExpressions[0].values[1]: "b\0" is not the value"#),
            (json!({"matchLabels": {"a\0": "b"}}), r#"matchLabels: "a\0" is not the key"#),
            (json!({"matchLabels": {"app": "-b"}}), r#"matchLabels[app]: "-b" is not the value"#),
        ] {
            let told = parsed(wrong.clone()).unwrap_err();
            assert!(told.starts_with(words), "{wrong}: {told}");
        }
    }

    #[test]
    fn patterns_agree_with_the_functions() {
        let (key, value) = (regex::Regex::new(KEY).unwrap(), regex::Regex::new(VALUE).unwrap());
        let (long, longer) = ("a".repeat(63), "a".repeat(64));
        for text in
            ["app", "a.b/c", "A.b/c", "a/b/c", "/a", "a/", "", "-a", "a-", "a b", "a\n", "a\0", "A_.-z", &long, &longer]
        {
            assert_eq!(key.is_match(text), is_key("key", text).is_ok(), "{text:?}");
            assert_eq!(value.is_match(text), is_value("value", text).is_ok(), "{text:?}");
        }
    }

    /// Every label selector of every kind refuses an unknown operator.
    #[test]
    fn every_selector_of_the_kinds_is_restricted() {
        fn count(schema: &Value, selectors: &mut usize) {
            if let Some(expressions) = schema["properties"].get("matchExpressions") {
                let expression = &expressions["items"];
                assert_eq!(expression["properties"]["operator"]["enum"], json!(OPERATORS));
                assert_eq!(expression["x-kubernetes-validations"].as_array().map(Vec::len), Some(2));
                *selectors += 1;
            }
            match schema {
                Value::Object(fields) => fields.values().for_each(|field| count(field, selectors)),
                Value::Array(items) => items.iter().for_each(|item| count(item, selectors)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let mut selectors = 0;
        crate::crds::all().iter().for_each(|crd| count(&serde_json::to_value(crd).unwrap(), &mut selectors));
        assert_eq!(selectors, 4, "of Notification, ExecutionHook, and of a snapshot's source and hooks");
    }
}
