//! The tree written back as OpenAPI v3, for `kubectl explain` and clients that validate.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{ListType, PatchStrategy, Rule, Schema, Type, builtin};

impl Schema {
    /// The schema with everything below it in place.
    pub fn to_openapi(&self) -> Value {
        write(self, &mut |child| child.to_openapi())
    }

    /// The schema with its built-in types as references into `components` (`#/components/schemas/NAME`), where they
    /// are put once each: what the documents of `/openapi/v3` hold.
    pub fn to_components(&self, components: &mut BTreeMap<String, Value>) -> Value {
        write(self, &mut |child| reference(child, components))
    }
}

fn reference(schema: &Schema, components: &mut BTreeMap<String, Value>) -> Value {
    if schema.name.is_empty() {
        return schema.to_components(components);
    }
    if !components.contains_key(&schema.name) {
        // The place is taken first: JSONSchemaProps refers to itself.
        components.insert(schema.name.clone(), Value::Null);
        let written = builtin::expand(schema).to_components(components);
        components.insert(schema.name.clone(), written);
    }
    let mut reference = json!({"allOf": [{"$ref": format!("#/components/schemas/{}", schema.name)}]});
    let object = reference.as_object_mut().expect("it was made an object");
    if !schema.description.is_empty() {
        object.insert("description".to_owned(), schema.description.clone().into());
    }
    patch_strategy(&schema.patch, object);
    reference
}

fn write(schema: &Schema, child: &mut dyn FnMut(&Schema) -> Value) -> Value {
    let Schema {
        name: _,
        kind,
        description,
        properties,
        additional,
        items,
        required,
        nullable,
        default,
        preserve_unknown,
        embedded,
        list,
        atomic_map,
        patch,
        limits: _,
        rules,
    } = schema;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
    match kind {
        Type::Any => {}
        Type::Object => put("type", "object".into()),
        Type::Array => put("type", "array".into()),
        Type::String => put("type", "string".into()),
        Type::Integer => put("type", "integer".into()),
        Type::Number => put("type", "number".into()),
        Type::Boolean => put("type", "boolean".into()),
        Type::IntOrString => put("x-kubernetes-int-or-string", true.into()),
    }
    if !description.is_empty() {
        put("description", description.clone().into());
    }
    if !properties.is_empty() {
        put("properties", properties.iter().map(|(name, property)| (name.clone(), child(property))).collect());
    }
    if let Some(values) = additional {
        put("additionalProperties", child(values));
    }
    if let Some(items) = items {
        put("items", child(items));
    }
    if !required.is_empty() {
        put("required", json!(required));
    }
    if let Some(default) = default {
        put("default", default.clone());
    }
    let flags = [
        ("nullable", *nullable),
        ("x-kubernetes-preserve-unknown-fields", *preserve_unknown),
        ("x-kubernetes-embedded-resource", *embedded),
    ];
    for (key, _) in flags.iter().filter(|(_, set)| *set) {
        put(key, true.into());
    }
    match list {
        ListType::Atomic if *kind == Type::Array => put("x-kubernetes-list-type", "atomic".into()),
        ListType::Atomic => {}
        ListType::Set => put("x-kubernetes-list-type", "set".into()),
        ListType::Map(keys) => {
            put("x-kubernetes-list-type", "map".into());
            put("x-kubernetes-list-map-keys", json!(keys));
        }
    }
    if *atomic_map {
        put("x-kubernetes-map-type", "atomic".into());
    }
    if !rules.is_empty() {
        put("x-kubernetes-validations", rules.iter().map(rule).collect());
    }
    patch_strategy(patch, &mut object);
    limits(schema, &mut object);
    object.into()
}

fn patch_strategy(patch: &PatchStrategy, object: &mut Map<String, Value>) {
    let (strategy, key) = match patch {
        PatchStrategy::Plain => return,
        PatchStrategy::Merge { key, retain_keys: false } => ("merge", key.as_ref()),
        PatchStrategy::Merge { key, retain_keys: true } => ("merge,retainKeys", key.as_ref()),
        PatchStrategy::RetainKeys => ("retainKeys", None),
        PatchStrategy::Replace => ("replace", None),
    };
    object.insert("x-kubernetes-patch-strategy".to_owned(), strategy.into());
    if let Some(key) = key {
        object.insert("x-kubernetes-patch-merge-key".to_owned(), key.clone().into());
    }
}

fn limits(schema: &Schema, object: &mut Map<String, Value>) {
    let limits = &schema.limits;
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(key.to_owned(), value);
        }
    };
    // `quantity` is our own mark: to others it is the int-or-string it is written as.
    put("format", Some(&limits.format).filter(|it| !it.is_empty() && *it != "quantity").map(|it| it.clone().into()));
    put("pattern", limits.pattern.clone().map(Value::from));
    put("enum", Some(&limits.allowed).filter(|it| !it.is_empty()).map(|it| it.clone().into()));
    for (key, number) in [("minimum", limits.minimum), ("maximum", limits.maximum), ("multipleOf", limits.multiple_of)]
    {
        put(key, number.map(whole_if_possible));
    }
    let counts = [
        ("minLength", limits.min_length),
        ("maxLength", limits.max_length),
        ("minItems", limits.min_items),
        ("maxItems", limits.max_items),
        ("minProperties", limits.min_properties),
        ("maxProperties", limits.max_properties),
    ];
    for (key, count) in counts {
        put(key, count.map(Value::from));
    }
    let flags = [
        ("exclusiveMinimum", limits.exclusive_minimum),
        ("exclusiveMaximum", limits.exclusive_maximum),
        ("uniqueItems", limits.unique_items),
    ];
    for (key, set) in flags {
        put(key, set.then_some(Value::Bool(true)));
    }
    for (key, schemas) in [("allOf", &limits.all_of), ("anyOf", &limits.any_of), ("oneOf", &limits.one_of)] {
        put(key, Some(schemas).filter(|it| !it.is_empty()).map(|it| it.iter().map(Schema::to_openapi).collect()));
    }
    put("not", limits.not.as_ref().map(|it| it.to_openapi()));
}

fn whole_if_possible(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { Value::from(number as i64) } else { Value::from(number) }
}

fn rule(rule: &Rule) -> Value {
    let mut object = Map::from_iter([("rule".to_owned(), rule.rule.clone().into())]);
    let texts = [
        ("message", &rule.message),
        ("messageExpression", &rule.message_expression),
        ("reason", &rule.reason),
        ("fieldPath", &rule.field_path),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        object.insert(key.to_owned(), text.clone().into());
    }
    if rule.optional_old_self {
        object.insert("optionalOldSelf".to_owned(), true.into());
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crds_schema_comes_back_as_it_went_in() {
        let openapi = json!({"type": "object", "required": ["spec"], "properties": {"spec": {
            "type": "object", "description": "wanted",
            "x-kubernetes-validations": [{"rule": "self.n > 0", "message": "m", "fieldPath": ".n", "reason": "FieldValueInvalid"}],
            "properties": {
                "n": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "exclusiveMaximum": true, "default": 2},
                "t": {"type": "string", "pattern": "^a", "enum": ["a"], "nullable": true, "maxLength": 3, "minLength": 1},
                "i": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "maxItems": 3,
                      "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
                "m": {"type": "object", "additionalProperties": {"type": "number", "multipleOf": 0.5}, "x-kubernetes-map-type": "atomic"},
                "r": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true},
                "o": {"type": "object", "properties": {"a": {"type": "string"}}, "not": {"required": ["a"]}, "minProperties": 1},
            },
        }}});
        assert_eq!(Schema::from_openapi(&openapi).unwrap().to_openapi(), openapi);
    }

    #[test]
    fn built_in_types_are_referred_to_and_written_once() {
        let pod = super::super::builtin("", "v1", "Pod").unwrap();
        let mut components = BTreeMap::new();
        let written = pod.to_components(&mut components);
        let spec = json!([{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]);
        assert_eq!(written["properties"]["spec"]["allOf"], spec);
        let containers = &components["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        assert!(components.values().all(|component| !component.is_null()));
    }

    #[test]
    fn the_recursive_type_refers_to_itself() {
        let crd = super::super::builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
        let mut components = BTreeMap::new();
        crd.to_components(&mut components);
        let props = &components["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"];
        let not = &props["properties"]["not"]["allOf"][0]["$ref"];
        assert_eq!(
            not,
            "#/components/schemas/io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
        );
    }
}
