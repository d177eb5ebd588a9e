//! A server of one object to ask. Expectations in `applies` and `updates` are what Kubernetes 1.35 answered to the same
//! requests, made to a ConfigMap, a Deployment and a custom resource.

mod applies;
mod properties;
mod updates;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{FieldSet, Tracked, Writer, apply, keep_times, track_update};
use crate::object;
use crate::schema::{ListType, Schema, Type};
use crate::status::{Result, Status};

fn of_kind(kind: Type) -> Schema {
    Schema { kind, ..Schema::default() }
}

fn object_of(properties: &[(&str, Schema)]) -> Schema {
    let properties = properties.iter().map(|(name, schema)| ((*name).to_owned(), Arc::new(schema.clone()))).collect();
    Schema { properties, ..of_kind(Type::Object) }
}

fn map() -> Schema {
    Schema { additional: Some(Arc::new(of_kind(Type::String))), ..of_kind(Type::Object) }
}

fn list(items: Schema, list: ListType) -> Schema {
    Schema { items: Some(Arc::new(items)), list, ..of_kind(Type::Array) }
}

fn by(keys: &[&str]) -> ListType {
    ListType::Map(keys.iter().map(|key| (*key).to_owned()).collect())
}

fn metadata() -> Schema {
    let text = of_kind(Type::String);
    object_of(&[
        ("name", text.clone()),
        ("namespace", text.clone()),
        ("resourceVersion", text.clone()),
        ("uid", text.clone()),
        ("labels", map()),
        ("annotations", map()),
        ("finalizers", list(text.clone(), ListType::Set)),
        ("ownerReferences", list(object_of(&[("uid", text.clone()), ("kind", text)]), by(&["uid"]))),
    ])
}

/// A kind with the parts of a ConfigMap, of a Deployment and of a custom resource that matter here.
fn schema() -> Schema {
    let (text, number) = (of_kind(Type::String), of_kind(Type::Integer));
    let tcp = Schema { default: Some(json!("TCP")), ..text.clone() };
    let port = object_of(&[("containerPort", number.clone()), ("protocol", tcp), ("name", text.clone())]);
    let env = object_of(&[("name", text.clone()), ("value", text.clone())]);
    let container = object_of(&[
        ("name", text.clone()),
        ("image", text.clone()),
        ("args", list(text.clone(), ListType::Atomic)),
        ("env", list(env, by(&["name"]))),
        ("ports", list(port, by(&["containerPort", "protocol"]))),
        ("resources", object_of(&[("limits", map())])),
    ]);
    let pod = object_of(&[
        ("containers", list(container, by(&["name"]))),
        ("securityContext", object_of(&[("user", number.clone())])),
    ]);
    let rolling = object_of(&[("maxSurge", of_kind(Type::IntOrString))]);
    let template_metadata = object_of(&[("labels", map())]);
    let spec = object_of(&[
        ("replicas", number),
        ("selector", Schema { atomic_map: true, ..object_of(&[("matchLabels", map())]) }),
        ("strategy", object_of(&[("type", text.clone()), ("rollingUpdate", rolling)])),
        ("template", object_of(&[("metadata", template_metadata), ("spec", pod)])),
        ("free", Schema { preserve_unknown: true, ..of_kind(Type::Object) }),
        ("any", Schema { preserve_unknown: true, ..Schema::default() }),
        ("tags", list(text, ListType::Set)),
    ]);
    let status = object_of(&[("ready", of_kind(Type::Boolean))]);
    object_of(&[
        ("apiVersion", of_kind(Type::String)),
        ("kind", of_kind(Type::String)),
        ("metadata", metadata()),
        ("immutable", of_kind(Type::Boolean)),
        ("data", map()),
        ("spec", spec),
        ("status", status),
    ])
}

/// A server with one object, at a certain second.
struct Server {
    schema: Schema,
    reset: FieldSet,
    blank: Value,
    subresource: &'static str,
    second: u32,
    live: Option<Value>,
}

impl Server {
    fn new() -> Self {
        let blank =
            json!({"spec": {"strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}}, "status": {}});
        Self { schema: schema(), reset: FieldSet::of(&["status"]), blank, subresource: "", second: 0, live: None }
    }

    fn ask<T>(&self, manager: &str, request: impl FnOnce(&Writer<'_>, &Tracked<'_>) -> T) -> T {
        let now = format!("2026-11-15T22:00:{:02}Z", self.second);
        let writer = Writer { manager, subresource: self.subresource, now: &now };
        let Self { schema, reset, blank, .. } = self;
        request(&writer, &Tracked { api_version: "v1", kind: "Thing", schema, reset, blank })
    }

    fn try_apply(&mut self, manager: &str, force: bool, parts: Value) -> Result<()> {
        let applied = thing(parts);
        let live = self.live.as_ref();
        let mut object = self.ask(manager, |writer, tracked| apply(live, &applied, force, writer, tracked))?;
        if let Some(live) = &self.live {
            keep_times(live, &mut object);
        }
        self.live = Some(object);
        Ok(())
    }

    fn apply(&mut self, manager: &str, parts: Value) {
        self.try_apply(manager, false, parts).unwrap();
    }

    fn refuses(&mut self, manager: &str, parts: Value) -> Status {
        self.try_apply(manager, false, parts).unwrap_err()
    }

    fn write(&mut self, manager: &str, change: impl FnOnce(&mut Value)) {
        let mut new = self.live.clone().unwrap_or_else(|| thing(json!({})));
        change(&mut new);
        let live = self.live.as_ref();
        self.ask(manager, |writer, tracked| track_update(live, &mut new, writer, tracked));
        self.live = Some(new);
    }

    fn object(&self) -> &Value {
        self.live.as_ref().unwrap()
    }

    /// `manager operation subresource second` and fields of each entry.
    fn owners(&self) -> Vec<(String, Value)> {
        let entries = self.object().pointer("/metadata/managedFields").and_then(Value::as_array);
        let told = entries.into_iter().flatten().map(|entry| {
            assert_eq!((&entry["apiVersion"], &entry["fieldsType"]), (&json!("v1"), &json!("FieldsV1")));
            let time = entry.get("time").map_or("-", |time| &time.as_str().unwrap()[17..19]);
            let part = |name: &str| object::text(entry, &format!("/{name}")).to_owned();
            let who = [part("manager"), part("operation"), part("subresource"), time.to_owned()].join(" ");
            (who.replace("  ", " "), entry["fieldsV1"].clone())
        });
        told.collect()
    }
}

fn thing(parts: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "c1"}});
    for (name, part) in parts.as_object().unwrap() {
        match name.as_str() {
            "metadata" => {
                let part = part.as_object().unwrap().clone();
                object::metadata_mut(&mut object).extend(part);
            }
            _ => object[name] = part.clone(),
        }
    }
    object
}

fn owner(who: &str, fields: Value) -> (String, Value) {
    (who.to_owned(), fields)
}

fn containers(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}
