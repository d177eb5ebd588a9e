//! The CustomResourceDefinitions, as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::{
    ApplicationSnapshot, DeploymentLifecycle, ExecutionHook, ExecutionHookTemplate, Notification, PodNotification,
    selector,
};

/// Every kind's, in the order of their names.
pub fn all() -> Vec<CustomResourceDefinition> {
    let all = [
        ApplicationSnapshot::crd(),
        DeploymentLifecycle::crd(),
        ExecutionHook::crd(),
        fields_under_spec(ExecutionHookTemplate::crd()),
        Notification::crd(),
        PodNotification::crd(),
    ];
    all.map(without_nulls).map(with_selectors_checked).map(with_flowing_text).into()
}

/// Refuses fields that were written beside `spec` instead of under it, with words: the API server would drop them.
fn fields_under_spec(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition made of our own types is JSON");
    let root = &mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = root["properties"]["spec"]["properties"].as_object().expect("a spec has fields");
    let fields: Vec<_> = fields.iter().map(|(name, field)| (name.clone(), field["type"].clone())).collect();
    for (name, kind) in &fields {
        // A rule sees only what has a type.
        let mut field =
            json!({"type": kind, "description": format!("Not a field: always rejected. Write `spec.{name}`.")});
        if kind == "object" {
            field["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        root["properties"][name] = field;
    }
    let none = fields.iter().map(|(name, _)| format!("!has(self.{name})")).collect::<Vec<_>>().join(" && ");
    root["required"] = json!([]);
    root["x-kubernetes-validations"] = json!([
        {"rule": none, "message": "policy, preAction, postAction and expirationSeconds belong under spec: move them there"},
        {"rule": "has(self.spec)", "message": "spec is missing: write the action to run in spec.preAction"},
    ]);
    serde_json::from_value(value).expect("it is a definition still")
}

/// Optional fields are absent or there, never null: so `has()` in a rule means what it says, and a null that a person
/// writes is dropped by the API server.
fn without_nulls(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition made of our own types is JSON");
    strip(&mut value);
    serde_json::from_value(value).expect("what is left is a definition still")
}

/// Every label selector is held to Kubernetes' rules for it.
fn with_selectors_checked(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition made of our own types is JSON");
    selector::restrict(&mut value);
    serde_json::from_value(value).expect("it is a definition still")
}

/// Descriptions are paragraphs without line breaks of the source: `kubectl explain` wraps them itself.
fn with_flowing_text(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition made of our own types is JSON");
    flow(&mut value);
    serde_json::from_value(value).expect("it is a definition still")
}

fn flow(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                let paragraphs: Vec<_> = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
                *text = paragraphs.join("\n\n");
            }
            fields.values_mut().for_each(flow);
        }
        Value::Array(items) => items.iter_mut().for_each(flow),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| !(key == "nullable" && value == &Value::Bool(true)));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(strip);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_can_be_null() {
        for crd in all() {
            let text = serde_json::to_string(&crd).unwrap();
            assert!(!text.contains("nullable") && !text.contains("null,") && !text.contains("null]"), "{text}");
        }
    }

    /// Fields of Kubernetes' own types, which have a documentation of their own.
    const OF_KUBERNETES: [&str; 4] = ["conditions", "selector", "podSelector", "env"];

    /// Every field of ours, with its path.
    fn fields<'a>(path: &str, schema: &'a Value, found: &mut Vec<(String, &'a Value)>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            found.push((path.clone(), field));
            if !OF_KUBERNETES.contains(&name.as_str()) {
                fields(&path, field, found);
                fields(&path, &field["items"], found);
            }
        }
    }

    fn assert_of_every_field(holds: impl Fn(&str, &Value) -> bool) {
        for crd in all() {
            let value = serde_json::to_value(&crd).unwrap();
            let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut found = Vec::new();
            fields(&crd.spec.names.kind, schema, &mut found);
            for (path, field) in found {
                assert!(holds(&path, field), "{path}: {:?}", field["description"]);
            }
        }
    }

    #[test]
    fn every_field_has_its_own_description() {
        assert_of_every_field(|_, field| {
            let description = field["description"].as_str().unwrap_or_default();
            description.ends_with('.') && !description.starts_with("MicroTime is")
        });
    }

    #[test]
    fn default_in_spec_is_described() {
        assert_of_every_field(|path, field| {
            let default = match &field["default"] {
                Value::Null | Value::Array(_) => return true,
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let description = field["description"].as_str().unwrap_or_default();
            path.contains(".status") || description.ends_with(&format!("Default: {default}."))
        });
    }

    #[test]
    fn an_agent_can_select_what_is_its_nodes() {
        let crd = all().into_iter().find(|crd| crd.spec.names.kind == "PodNotification").unwrap();
        let fields = crd.spec.versions[0].selectable_fields.as_ref().unwrap();
        assert_eq!(fields[0].json_path, ".status.nodeName");
    }

    #[test]
    fn controller_can_select_undecided_snapshots() {
        let crd = all().into_iter().find(|crd| crd.spec.names.kind == "ApplicationSnapshot").unwrap();
        let fields = crd.spec.versions[0].selectable_fields.as_ref().unwrap();
        assert_eq!(fields[0].json_path, ".status.phase");
    }
}
