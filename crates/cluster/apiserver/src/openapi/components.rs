//! The schemas of a document: a component for each kind and for each named type that its kinds use.
//!
//! A named type's component has no description and no patch strategy: in the tree both belong to the field that uses
//! the type.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::discovery::Served;
use crate::schema::{Limits, ListType, PatchStrategy, Schema, Type};

#[derive(Default)]
pub(super) struct Components {
    pub(super) schemas: Map<String, Value>,
}

impl Components {
    /// Adds a kind with all that it refers to; the name of its component.
    pub(super) fn add_kind(&mut self, served: &Served) -> String {
        let name = component_name(served);
        let mut body = self.inline(&served.schema);
        let kind = json!({"group": served.group, "version": served.version, "kind": served.kind});
        body.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind]));
        self.schemas.insert(name.clone(), Value::Object(body));
        name
    }

    /// A schema where it is used: a reference with what the use adds, or the schema itself if it has no name.
    fn used(&mut self, schema: &Schema) -> Value {
        if schema.name.is_empty() {
            return Value::Object(self.inline(schema));
        }
        if !self.schemas.contains_key(&schema.name) {
            // Its place is taken first: a type may be met again below itself.
            self.schemas.insert(schema.name.clone(), Value::Null);
            let bare = Schema { description: String::new(), default: None, ..schema.clone() };
            let mut body = self.inline(&bare);
            body.retain(|field, _| !field.starts_with("x-kubernetes-patch-"));
            self.schemas.insert(schema.name.clone(), Value::Object(body));
        }
        let reference = json!({"$ref": format!("#/components/schemas/{}", schema.name)});
        let mut body = Map::new();
        describe(&mut body, schema);
        add_patch_strategy(&mut body, &schema.patch);
        if body.is_empty() {
            return reference;
        }
        body.insert("allOf".to_owned(), json!([reference]));
        Value::Object(body)
    }

    fn inline(&mut self, schema: &Schema) -> Map<String, Value> {
        let mut body = Map::new();
        describe(&mut body, schema);
        add_type(&mut body, schema);
        if !schema.properties.is_empty() {
            let properties = schema.properties.iter().map(|(name, property)| (name.clone(), self.used(property)));
            let properties: Map<String, Value> = properties.collect();
            body.insert("properties".to_owned(), properties.into());
        }
        if let Some(additional) = &schema.additional {
            body.insert("additionalProperties".to_owned(), self.used(additional));
        }
        if let Some(items) = &schema.items {
            body.insert("items".to_owned(), self.used(items));
        }
        if !schema.required.is_empty() {
            body.insert("required".to_owned(), schema.required.as_slice().into());
        }
        self.add_limits(&mut body, schema);
        add_extensions(&mut body, schema);
        add_patch_strategy(&mut body, &schema.patch);
        body
    }

    fn add_limits(&mut self, body: &mut Map<String, Value>, schema: &Schema) {
        let limits = &schema.limits;
        add_set(body, &Limits { format: String::new(), ..limits.clone() });
        for (name, schemas) in [("allOf", &limits.all_of), ("anyOf", &limits.any_of), ("oneOf", &limits.one_of)] {
            if !schemas.is_empty() {
                let schemas: Vec<Value> = schemas.iter().map(|schema| self.used(schema)).collect();
                body.insert(name.to_owned(), schemas.into());
            }
        }
        if let Some(not) = &limits.not {
            body.insert("not".to_owned(), self.used(not));
        }
    }
}

/// As Kubernetes names it: built-in types by their package, custom ones by their group turned round.
fn component_name(served: &Served) -> String {
    if !served.schema.name.is_empty() {
        return served.schema.name.clone();
    }
    let turned: Vec<&str> = served.group.split('.').rev().filter(|part| !part.is_empty()).collect();
    [turned.as_slice(), &[&served.version, &served.kind]].concat().join(".")
}

/// What belongs to a use of a schema, named or not.
fn describe(body: &mut Map<String, Value>, schema: &Schema) {
    if !schema.description.is_empty() {
        body.insert("description".to_owned(), schema.description.as_str().into());
    }
    if let Some(default) = &schema.default {
        body.insert("default".to_owned(), default.clone());
    }
}

fn add_type(body: &mut Map<String, Value>, schema: &Schema) {
    let format = schema.limits.format.as_str();
    if !format.is_empty() && format != "quantity" {
        body.insert("format".to_owned(), format.into());
    }
    match schema.kind {
        // Quantities are texts or numbers; kubectl shows a type without a `type` by its name.
        _ if format == "quantity" => {
            body.insert("oneOf".to_owned(), json!([{"type": "string"}, {"type": "number"}]));
        }
        Type::IntOrString if schema.name.is_empty() => {
            body.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
            body.insert("x-kubernetes-int-or-string".to_owned(), true.into());
        }
        Type::IntOrString => {
            body.insert("format".to_owned(), "int-or-string".into());
            body.insert("oneOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
        }
        kind => body.extend(kind.name().map(|name| ("type".to_owned(), name.into()))),
    }
    if schema.nullable {
        body.insert("nullable".to_owned(), true.into());
    }
}

fn add_extensions(body: &mut Map<String, Value>, schema: &Schema) {
    let mut add = |name: &str, value: Value| body.insert(format!("x-kubernetes-{name}"), value);
    if schema.preserve_unknown {
        add("preserve-unknown-fields", true.into());
    }
    if schema.embedded {
        add("embedded-resource", true.into());
    }
    if schema.atomic_map {
        add("map-type", "atomic".into());
    }
    match &schema.list {
        // What a list is without a word.
        ListType::Atomic => {}
        ListType::Set => {
            add("list-type", "set".into());
        }
        ListType::Map(keys) => {
            add("list-type", "map".into());
            add("list-map-keys", keys.as_slice().into());
        }
    }
    if !schema.rules.is_empty() {
        let rules = schema.rules.iter().map(|rule| {
            let mut written = Map::new();
            add_set(&mut written, rule);
            Value::Object(written)
        });
        add("validations", rules.collect());
    }
}

fn add_patch_strategy(body: &mut Map<String, Value>, patch: &PatchStrategy) {
    let strategy = match patch {
        PatchStrategy::Plain => return,
        PatchStrategy::Merge { retain_keys: false, .. } => "merge",
        PatchStrategy::Merge { retain_keys: true, .. } => "merge,retainKeys",
        PatchStrategy::RetainKeys => "retainKeys",
        PatchStrategy::Replace => "replace",
    };
    body.insert("x-kubernetes-patch-strategy".to_owned(), strategy.into());
    if let PatchStrategy::Merge { key: Some(key), .. } = patch {
        body.insert("x-kubernetes-patch-merge-key".to_owned(), key.as_str().into());
    }
}

/// Adds the fields that are set.
fn add_set(body: &mut Map<String, Value>, fields: &impl Serialize) {
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    if let Ok(Value::Object(fields)) = serde_json::to_value(fields) {
        body.extend(fields.into_iter().filter(|(_, value)| is_set(value)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::discovery::examples;

    fn text(description: &str) -> Arc<Schema> {
        Arc::new(Schema { kind: Type::String, description: description.to_owned(), ..Schema::default() })
    }

    fn object(properties: impl IntoIterator<Item = (&'static str, Arc<Schema>)>) -> Schema {
        let properties = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        Schema { kind: Type::Object, properties, ..Schema::default() }
    }

    #[test]
    fn a_named_type_is_referred_to_and_keeps_what_its_field_says() {
        let strategy = Schema {
            name: "io.k8s.api.apps.v1.DeploymentStrategy".to_owned(),
            description: "how pods are replaced".to_owned(),
            patch: PatchStrategy::RetainKeys,
            ..object([("type", text("its type"))])
        };
        let root = Schema {
            name: "io.k8s.api.apps.v1.Deployment".to_owned(),
            description: "a deployment".to_owned(),
            ..object([("strategy", Arc::new(strategy))])
        };
        let mut components = Components::default();
        let served = Served { schema: Arc::new(root), ..examples::deployments() };
        assert_eq!(components.add_kind(&served), "io.k8s.api.apps.v1.Deployment");
        let deployment = json!({
            "description": "a deployment",
            "type": "object",
            "properties": {
                "strategy": {
                    "description": "how pods are replaced",
                    "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
                    "x-kubernetes-patch-strategy": "retainKeys",
                },
            },
            "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
        });
        assert_eq!(components.schemas["io.k8s.api.apps.v1.Deployment"], deployment);
        let strategy = json!({"type": "object", "properties": {"type": {"type": "string", "description": "its type"}}});
        assert_eq!(components.schemas["io.k8s.api.apps.v1.DeploymentStrategy"], strategy);
    }

    #[test]
    fn a_merged_list_says_by_which_key() {
        let list = Schema {
            kind: Type::Array,
            items: Some(text("")),
            list: ListType::Map(vec!["name".to_owned()]),
            patch: PatchStrategy::Merge { key: Some("name".to_owned()), retain_keys: false },
            ..Schema::default()
        };
        let wanted = json!({
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
        });
        assert_eq!(Components::default().used(&list), wanted);
    }

    #[test]
    fn a_custom_kind_is_named_by_its_group_and_written_out() {
        let mut count = Schema { kind: Type::Integer, default: Some(json!(3)), ..Schema::default() };
        count.limits.minimum = Some(1.into());
        count.limits.format = "int32".to_owned();
        let either = Schema { kind: Type::IntOrString, ..Schema::default() };
        let root = object([("n", Arc::new(count)), ("q", Arc::new(either))]);
        let mut components = Components::default();
        let name = components.add_kind(&Served { schema: Arc::new(root), ..examples::widgets("v1") });
        assert_eq!(name, "com.example.printing.v1.Widget");
        let wanted = json!({
            "n": {"type": "integer", "format": "int32", "default": 3, "minimum": 1},
            "q": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
        });
        assert_eq!(components.schemas[&name]["properties"], wanted);
    }
}
