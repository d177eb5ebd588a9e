//! The schema trees of built-in kinds, made once from k8s-openapi's own schemas and the marks in [`super::lists`].
//!
//! Named types are shared between kinds. A tree has no cycles: the one recursive type, `JSONSchemaProps`, stands
//! in it as a leaf that takes anything; [`expand`] gives its fields to whoever wants to look inside.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use k8s_openapi::Resource;
use k8s_openapi::api::{
    admissionregistration, apps, authentication, authorization, autoscaling, coordination, core, discovery, events,
    policy, rbac, scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::schemars::JsonSchema;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::{Schema, Type, lists};
use crate::object::text;

const PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The kinds of the snapshot controller: CRDs elsewhere, built in here.
const SNAPSHOT_KINDS: &str = include_str!("snapshot_kinds.json");
const SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";

type GroupVersionKind = (String, String, String);

struct Builtins {
    kinds: BTreeMap<GroupVersionKind, Arc<Schema>>,
    object_meta: Arc<Schema>,
    /// `JSONSchemaProps` with its fields; below each of them it is the leaf again.
    props: Arc<Schema>,
}

static BUILTINS: LazyLock<Builtins> = LazyLock::new(Builtins::make);

/// The schema of a built-in kind.
pub fn builtin(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    BUILTINS.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned())).cloned()
}

/// The schema of every object's `metadata`.
pub fn object_meta() -> Arc<Schema> {
    BUILTINS.object_meta.clone()
}

/// The fields of a `JSONSchemaProps` leaf; any other schema as it is.
pub(super) fn expand(schema: &Schema) -> &Schema {
    if schema.kind == Type::Any && schema.name == PROPS { &BUILTINS.props } else { schema }
}

impl Builtins {
    fn make() -> Self {
        let mut generator = SchemaSettings::default().into_generator();
        let mut names: Vec<(GroupVersionKind, String)> = Vec::new();
        macro_rules! add {
            ($($group:ident: $($kind:ident)*;)*) => {$($({
                type Kind = $group::v1::$kind;
                generator.subschema_for::<Kind>();
                let kind = (Kind::GROUP.to_owned(), Kind::VERSION.to_owned(), Kind::KIND.to_owned());
                names.push((kind, Kind::schema_name().into_owned()));
            })*)*};
        }
        // TokenRequest, Binding, Eviction and Scale have no path of their own, only subresources.
        add! {
            admissionregistration: MutatingWebhookConfiguration ValidatingWebhookConfiguration;
            apiextensions: CustomResourceDefinition;
            apps: Deployment ReplicaSet;
            authentication: SelfSubjectReview TokenRequest;
            authorization: SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview;
            autoscaling: Scale;
            coordination: Lease;
            core: Binding ConfigMap Endpoints Event Namespace Node PersistentVolume PersistentVolumeClaim Pod Secret
                Service ServiceAccount;
            discovery: EndpointSlice;
            events: Event;
            policy: Eviction;
            rbac: ClusterRole ClusterRoleBinding Role RoleBinding;
            scheduling: PriorityClass;
            storage: CSIDriver CSINode StorageClass VolumeAttachment;
        }
        let mut types = Types { definitions: generator.take_definitions(false), done: BTreeMap::new() };
        let object_meta = types.named(OBJECT_META);
        let props = Arc::new(types.define(PROPS));
        let mut kinds: BTreeMap<GroupVersionKind, Arc<Schema>> =
            names.into_iter().map(|(kind, name)| (kind, types.named(&name))).collect();
        for (kind, schema) in snapshot_kinds() {
            let schema = Arc::new(schema.with_object_meta(&object_meta));
            kinds.insert((SNAPSHOT_GROUP.to_owned(), "v1".to_owned(), kind), schema);
        }
        Self { kinds, object_meta, props }
    }
}

fn snapshot_kinds() -> impl Iterator<Item = (String, Schema)> {
    let kinds: Map<String, Value> = serde_json::from_str(SNAPSHOT_KINDS).expect("our own text is JSON");
    kinds.into_iter().map(|(kind, openapi)| {
        let schema = Schema::from_openapi(&openapi).expect("our own schemas are structural");
        (kind, schema)
    })
}

/// Turns definitions into trees, each once.
struct Types {
    definitions: Map<String, Value>,
    done: BTreeMap<String, Arc<Schema>>,
}

impl Types {
    /// The tree of a type by its OpenAPI name.
    fn named(&mut self, name: &str) -> Arc<Schema> {
        if let Some(done) = self.done.get(name) {
            return done.clone();
        }
        let schema = match name.rsplit('.').next().unwrap_or(name) {
            "JSONSchemaProps" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
                Schema { name: PROPS.to_owned(), preserve_unknown: true, ..Schema::default() }
            }
            "JSON" => Schema { preserve_unknown: true, ..Schema::default() },
            "RawExtension" | "FieldsV1" => Schema { preserve_unknown: true, ..self.define(name) },
            "Quantity" => {
                let mut schema = self.define(name);
                schema.limits.format = "quantity".to_owned();
                schema
            }
            _ => self.define(name),
        };
        let schema = Arc::new(schema);
        self.done.insert(name.to_owned(), schema.clone());
        schema
    }

    fn define(&mut self, name: &str) -> Schema {
        let definition = self.definitions.get(name).cloned().expect("the generator defines what it refers to");
        let mut schema = self.node(&definition);
        schema.name = name.to_owned();
        schema.atomic_map |= lists::is_atomic(name);
        for (field, property) in &mut schema.properties {
            if let Some(mark) = lists::mark(name, field) {
                lists::apply(mark, Arc::make_mut(property));
            }
        }
        schema
    }

    fn node(&mut self, node: &Value) -> Schema {
        let mut schema = match text(node, "/$ref").rsplit('/').next() {
            Some(name) if !name.is_empty() => Schema::clone(&self.named(name)),
            _ => Schema::default(),
        };
        if !text(node, "/format").is_empty() {
            schema.limits.format = text(node, "/format").to_owned();
        }
        schema.read_structure(node, &mut |below| self.node(below));
        // The generator calls every kind's metadata required; Kubernetes asks for a name, and says so by itself.
        schema.required.retain(|field| field != "metadata");
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::super::ListType;
    use super::super::PatchStrategy;
    use super::*;

    fn at<'a>(schema: &'a Schema, path: &[&str]) -> &'a Schema {
        path.iter().fold(schema, |schema, field| match *field {
            "[]" => schema.items.as_ref().expect("a list"),
            field => schema.properties.get(field).unwrap_or_else(|| panic!("no {field}")),
        })
    }

    /// Every named type with its fields, by its short name.
    fn all_types() -> BTreeMap<&'static str, &'static Schema> {
        fn collect(schema: &'static Schema, all: &mut BTreeMap<&'static str, &'static Schema>) {
            let leaf = schema.properties.is_empty();
            if !leaf && !schema.name.is_empty() && all.insert(lists::short_name(&schema.name), schema).is_some() {
                return;
            }
            let children = schema.properties.values().chain(&schema.items).chain(&schema.additional);
            children.for_each(|child| collect(child, all));
        }
        let mut all = BTreeMap::new();
        BUILTINS.kinds.values().chain([&BUILTINS.props]).for_each(|kind| collect(kind, &mut all));
        all
    }

    #[test]
    fn every_marked_field_exists_and_bears_its_mark() {
        let types = all_types();
        for (of, field, mark) in lists::FIELDS {
            let owner = types.get(of).unwrap_or_else(|| panic!("no type {of} in any built-in kind"));
            let property = owner.properties.get(*field).unwrap_or_else(|| panic!("no field {field} in {of}"));
            let mut marked = Schema::clone(property);
            lists::apply(*mark, &mut marked);
            assert_eq!(&marked, &**property, "{of}.{field}");
        }
        for of in lists::ATOMIC_TYPES.split(' ') {
            assert!(types.contains_key(of), "no type {of} in any built-in kind");
        }
    }

    #[test]
    fn containers_are_keyed_and_merged_by_name() {
        let deployment = builtin("apps", "v1", "Deployment").unwrap();
        let containers = at(&deployment, &["spec", "template", "spec", "containers"]);
        assert_eq!(containers.list, ListType::Map(vec!["name".into()]));
        assert_eq!(containers.patch, PatchStrategy::Merge { key: Some("name".into()), retain_keys: false });
        let ports = at(containers, &["[]", "ports"]);
        assert_eq!(ports.list, ListType::Map(vec!["containerPort".into(), "protocol".into()]));
        assert_eq!(at(ports, &["[]", "protocol"]).default, Some("TCP".into()));
        assert_eq!(at(&deployment, &["spec", "strategy"]).patch, PatchStrategy::RetainKeys);
        assert!(at(&deployment, &["spec", "selector"]).atomic_map);
        assert_eq!(at(&deployment, &["spec", "strategy", "rollingUpdate", "maxSurge"]).kind, Type::IntOrString);
    }

    #[test]
    fn a_types_mark_can_be_lifted_at_one_field() {
        let volume = builtin("", "v1", "PersistentVolume").unwrap();
        assert!(!at(&volume, &["spec", "claimRef"]).atomic_map);
        let pod = builtin("", "v1", "Pod").unwrap();
        assert!(at(&pod, &["spec", "imagePullSecrets", "[]"]).atomic_map);
    }

    #[test]
    fn the_recursive_schema_type_is_a_leaf_that_can_be_expanded() {
        let crd = builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
        let leaf = at(&crd, &["spec", "versions", "[]", "schema", "openAPIV3Schema"]);
        assert_eq!((leaf.kind, leaf.properties.len(), leaf.preserve_unknown), (Type::Any, 0, true));
        let props = expand(leaf);
        assert_eq!(props.properties["type"].kind, Type::String);
        assert_eq!(expand(props.properties["properties"].additional.as_ref().unwrap()), props);
    }

    #[test]
    fn the_snapshot_kinds_are_there_with_metadata() {
        for kind in ["VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent"] {
            let schema = builtin(SNAPSHOT_GROUP, "v1", kind).unwrap_or_else(|| panic!("no {kind}"));
            assert!(schema.properties["metadata"].properties.contains_key("ownerReferences"));
        }
    }

    #[test]
    fn an_unknown_kind_has_no_schema() {
        assert_eq!(builtin("apps", "v1", "StatefulSet"), None);
        assert_eq!(builtin("apps", "v2", "Deployment"), None);
    }
}
