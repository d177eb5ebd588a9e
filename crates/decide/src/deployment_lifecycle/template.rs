//! When two templates are the same, and the digest by which one is known.

use serde_json::Value;

use super::quantity::nanos;
use crate::naming;

/// Fields of quantities, or of objects of them, each with what it is a field of: anybody may call a label `limits`.
const QUANTITIES: [(&str, &str); 5] = [
    ("resources", "limits"),
    ("resources", "requests"),
    ("emptyDir", "sizeLimit"),
    ("resourceFieldRef", "divisor"),
    ("spec", "overhead"),
];

/// The label that the Deployment controller adds to the template of a ReplicaSet.
const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// A digest of a pod template as the API server writes it, without what the Deployment controller adds to a ReplicaSet's.
/// It is taken of the raw text: a field that is not known here counts too. Quantities count by what they are worth.
pub fn digest(template: &Value) -> String {
    let mut template = template.clone();
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        // The API server writes it into each, and it means nothing.
        metadata.remove("creationTimestamp");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(POD_TEMPLATE_HASH);
            if labels.is_empty() {
                metadata.remove("labels");
            }
        }
        if metadata.is_empty() {
            template.as_object_mut().map(|template| template.remove("metadata"));
        }
    }
    let mut text = String::new();
    write(&template, "", false, &mut text);
    format!("{:016x}", naming::digest(&[&text]))
}

/// As JSON, with its keys in order. `name` is the field that has the value.
fn write(value: &Value, name: &str, quantities: bool, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in fields {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write(value, key, quantities || QUANTITIES.contains(&(name, key.as_str())), text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, name, quantities, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let worth = value.as_str().filter(|_| quantities).and_then(nanos);
            text.push_str(&worth.map_or_else(|| value.to_string(), |worth| worth.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_deployment_controller_adds_does_not_count_and_everything_else_does() {
        let of = |value: Value| digest(&value);
        let bare = of(json!({"metadata": {"labels": {"app": "web"}}, "spec": {"a": 1, "later": [1, {"b": 2}]}}));
        let with = json!({"spec": {"later": [1, {"b": 2}], "a": 1}, "metadata": {"creationTimestamp": null, "labels": {"pod-template-hash": "abc", "app": "web"}}});
        assert_eq!(of(with), bare);
        assert_ne!(of(json!({"metadata": {"labels": {"app": "web"}}, "spec": {"a": 1, "later": [1, {"b": 3}]}})), bare);
        assert_ne!(of(json!({"metadata": {"labels": {"app": "wob"}}, "spec": {"a": 1, "later": [1, {"b": 2}]}})), bare);
    }

    #[test]
    fn quantities_count_by_what_they_are_worth_and_other_texts_by_their_letters() {
        let of = |memory: &str, arg: &str| {
            let container = json!({"resources": {"limits": {"memory": memory}}, "args": [arg]});
            digest(&json!({"spec": {"containers": [container]}}))
        };
        assert_eq!(of("1Gi", "1"), of("1073741824", "1"));
        assert_ne!(of("1Gi", "1"), of("1G", "1"));
        assert_ne!(of("1Gi", "1"), of("1Gi", "1000m"));
        let labelled = |limits: &str| digest(&json!({"metadata": {"labels": {"limits": limits}}}));
        assert_ne!(labelled("1"), labelled("1000m"));
        let above = |cpu: &str| digest(&json!({"spec": {"overhead": {"cpu": cpu}}}));
        assert_eq!(above("250m"), above("0.25"));
    }
}
