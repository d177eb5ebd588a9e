//! The ways to write an object: one intended write as each request that the API server takes for it.

use anyhow::{Context, Result};
use boathook_tests::Ctx;
use serde_json::{Map, Value, json};

use super::attacks::Kind;

/// One request of the adversary.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Value,
}

/// A field by its path, and its new value; null removes it.
pub(super) type Field = (Vec<&'static str>, Value);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Create,
    GenerateName,
    Update,
    MergePatch,
    JsonPatch,
    StrategicPatch,
    Apply,
    Delete,
    DeleteOrphaning,
    DeleteCollection,
}

impl Door {
    pub(super) const TO_CREATE: [Self; 4] = [Self::Create, Self::GenerateName, Self::Update, Self::Apply];
    /// A binding has the name of its pod, and is not kept.
    pub(super) const TO_BIND: [Self; 1] = [Self::Create];
    pub(super) const TO_CHANGE: [Self; 5] =
        [Self::Update, Self::MergePatch, Self::JsonPatch, Self::StrategicPatch, Self::Apply];
    /// Of the subresource `scale`, whose objects are of another kind.
    pub(super) const TO_SCALE: [Self; 3] = [Self::Update, Self::MergePatch, Self::JsonPatch];
    pub(super) const TO_DELETE: [Self; 3] = [Self::Delete, Self::DeleteOrphaning, Self::DeleteCollection];

    /// The verb that a role must grant for it.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Create | Self::GenerateName => "create",
            Self::Update => "update",
            Self::MergePatch | Self::JsonPatch | Self::StrategicPatch | Self::Apply => "patch",
            Self::Delete | Self::DeleteOrphaning => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::GenerateName => "generateName",
            Self::Update => "update",
            Self::MergePatch => "merge patch",
            Self::JsonPatch => "JSON patch",
            Self::StrategicPatch => "strategic patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteOrphaning => "delete orphaning",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// This object, as a new one of this name.
pub(super) fn to_create(door: Door, kind: &Kind, namespace: &str, name: &str, mut object: Value) -> Request {
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    object["metadata"]["name"] = json!(name);
    let collection = kind.path(namespace);
    let (method, path, content_type) = match door {
        Door::GenerateName => {
            object["metadata"]["generateName"] = json!(format!("{name}-"));
            _ = object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("name"));
            ("POST", collection, JSON)
        }
        Door::Update => ("PUT", format!("{collection}/{name}"), JSON),
        Door::Apply => ("PATCH", format!("{collection}/{name}?{AS_MANAGER}"), APPLY),
        _ => ("POST", collection, JSON),
    };
    Request { method, path, content_type, body: object }
}

/// These fields of an object that is there. An update reads the object first, as the scenario's own user.
pub(super) async fn to_change(
    ctx: &Ctx,
    door: Door,
    kind: &Kind,
    (name, subresource): (&str, Option<&str>),
    fields: &[Field],
) -> Result<Request> {
    let object = format!("{}/{name}", kind.path(ctx.namespace()));
    let path = subresource.map_or_else(|| object.clone(), |subresource| format!("{object}/{subresource}"));
    let merged = || {
        let mut merged = Value::Object(Map::new());
        fields.iter().for_each(|(path, value)| put(&mut merged, path, value.clone()));
        merged
    };
    let (method, path, content_type, body) = match door {
        Door::JsonPatch => {
            let ops = fields.iter().map(|(path, value)| {
                let path: String = path.iter().map(|part| format!("/{}", part.replace('/', "~1"))).collect();
                match value {
                    Value::Null => json!({"op": "remove", "path": path}),
                    value => json!({"op": "add", "path": path, "value": value}),
                }
            });
            ("PATCH", path, "application/json-patch+json", Value::from(ops.collect::<Vec<_>>()))
        }
        Door::StrategicPatch => ("PATCH", path, "application/strategic-merge-patch+json", merged()),
        Door::Apply => {
            let mut object = merged();
            object["apiVersion"] = json!(kind.api_version());
            object["kind"] = json!(kind.kind);
            object["metadata"]["name"] = json!(name);
            ("PATCH", format!("{path}?{AS_MANAGER}"), APPLY, object)
        }
        Door::Update => {
            let object = if subresource == Some("scale") { path.clone() } else { object };
            let read = Request { method: "GET", path: object, content_type: JSON, body: Value::Null };
            let mut object = send(ctx, None, &read).await.context("failed to read what is to be updated")?;
            for (path, value) in fields {
                match value {
                    Value::Null => remove(&mut object, path),
                    value => put(&mut object, path, value.clone()),
                }
            }
            ("PUT", path, JSON, object)
        }
        _ => ("PATCH", path, "application/merge-patch+json", merged()),
    };
    Ok(Request { method, path, content_type, body })
}

/// An object, or those with this label.
pub(super) fn to_delete(door: Door, kind: &Kind, namespace: &str, name: &str, label: &str) -> Request {
    let collection = kind.path(namespace);
    let (path, body) = match door {
        Door::DeleteCollection => (format!("{collection}?labelSelector={label}"), json!({})),
        Door::DeleteOrphaning => (format!("{collection}/{name}"), json!({"propagationPolicy": "Orphan"})),
        _ => (format!("{collection}/{name}"), json!({"gracePeriodSeconds": 0})),
    };
    Request { method: "DELETE", path, content_type: JSON, body }
}

/// Sends it as this user; absent: as the scenario's own.
pub(super) async fn send(ctx: &Ctx, user: Option<&str>, request: &Request) -> kube::Result<Value> {
    let mut builder = hyper::Request::builder().method(request.method).uri(&request.path);
    if let Some(user) = user {
        builder = builder.header("Impersonate-User", user);
    }
    let body = if request.body.is_null() { Vec::new() } else { request.body.to_string().into_bytes() };
    let request = builder.header("Content-Type", request.content_type).body(body).map_err(kube::Error::HttpError)?;
    ctx.client().request(request).await
}

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const AS_MANAGER: &str = "fieldManager=adversary&force=true";

fn put(object: &mut Value, path: &[&str], value: Value) {
    match path {
        [] => *object = value,
        [first, rest @ ..] => {
            if !object[*first].is_object() && !rest.is_empty() {
                object[*first] = json!({});
            }
            put(&mut object[*first], rest, value);
        }
    }
}

fn remove(object: &mut Value, path: &[&str]) {
    match path {
        [] => {}
        [last] => _ = object.as_object_mut().and_then(|object| object.remove(*last)),
        [first, rest @ ..] => object.get_mut(*first).into_iter().for_each(|inner| remove(inner, rest)),
    }
}
