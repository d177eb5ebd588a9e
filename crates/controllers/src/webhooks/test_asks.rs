//! For tests: what the API server asks.

use boathook_runtime::webhook::Ask;
use serde_json::{Value, json};

/// About this change of an object in the namespace `default`.
pub(super) fn ask(operation: &str, object: Option<Value>, old_object: Option<Value>) -> Ask {
    let kind = json!({"group": "", "version": "v1", "kind": "Any"});
    let resource = json!({"group": "", "version": "v1", "resource": "any"});
    let ask = json!({"uid": "1", "kind": kind, "resource": resource, "namespace": "default", "operation": operation,
        "userInfo": {}, "object": object, "oldObject": old_object});
    serde_json::from_value(ask).unwrap()
}

/// About a new one of these.
pub(super) fn ask_about(resource: &str, object: Value) -> Ask {
    let mut ask = ask("CREATE", Some(object), None);
    resource.clone_into(&mut ask.resource.resource);
    ask
}
