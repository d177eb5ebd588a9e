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
    all.map(without_nulls).map(with_selectors_checked).into()
}

/// Refuses fields that were written beside `spec` instead of under it, with words: the API server would drop them.
fn fields_under_spec(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition made of our own types is JSON");
    let root = &mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = root["properties"]["spec"]["properties"].as_object().expect("a spec has fields");
    let fields: Vec<_> = fields.iter().map(|(name, field)| (name.clone(), field["type"].clone())).collect();
    for (name, kind) in &fields {
        root["properties"][name] = match kind == "object" {
            true => json!({"type": kind, "x-kubernetes-preserve-unknown-fields": true}),
            // A rule sees only what has a type.
            false => json!({"type": kind}),
        };
    }
    let names: Vec<_> = fields.into_iter().map(|(name, _)| name).collect();
    let none = names.iter().map(|name| format!("!has(self.{name})")).collect::<Vec<_>>().join(" && ");
    root["required"] = json!([]);
    root["x-kubernetes-validations"] = json!([
        {"rule": none, "message": format!("write {} under spec", names.join(", "))},
        {"rule": "has(self.spec)", "message": "spec is missing: it says what to run, in preAction"},
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
