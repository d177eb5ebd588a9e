//! What a kind is: its names, where it lives, its schema, what it can do. Built-in kinds come from one table
//! ([`builtin`]), custom ones from their definitions; everything else asks [`Kinds`] and never names a kind itself.

mod builtin;
mod kinds;

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use crate::crd::Version;
use crate::discovery::Served;
use crate::schema::Schema;
use crate::selector::SelectableFields;
use crate::status::{FieldError, GroupResource};
use crate::table::Printer;

pub use kinds::Kinds;

pub const ALL_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The same as Kubernetes lists them for custom kinds.
pub const CUSTOM_VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Of `status` and `scale`.
pub const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// One resource as it is served in one version.
#[derive(Clone)]
pub struct Resource {
    /// Names, scope and schema, as it is discovered.
    pub served: Arc<Served>,
    /// Status is written only through its own subresource, and `generation` counts changes of the rest.
    pub has_status: bool,
    /// JSON pointers of what `/scale` shows and sets.
    pub scale: Option<ScalePaths>,
    pub behaviour: Behaviour,
    pub printer: Printer,
    /// A new object before anything is set, for who-owns-what: see `ownership::Tracked`.
    pub blank: Value,
    pub selectable: SelectableFields,
    /// The definition of a custom kind.
    pub custom: Option<Arc<Version>>,
    /// The `apiVersion` and the schema that a custom kind's objects are stored in.
    pub storage: Option<(String, Arc<Schema>)>,
    /// Answered, not stored.
    pub review: Option<Review>,
}

/// The questions that are asked by creating an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    SubjectAccess,
    SelfSubjectAccess,
    SelfSubjectRules,
    SelfSubject,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScalePaths {
    pub replicas: String,
    pub status_replicas: String,
    pub selector: Option<String>,
}

/// What a built-in kind does beyond its schema. A custom kind does nothing of this.
#[derive(Clone, Copy)]
pub struct Behaviour {
    /// Fills what Kubernetes fills, before admission and after it.
    pub default: fn(&mut Value),
    /// Adds to a new object what admission and the kind's own strategy add, which nobody comes to own.
    pub begin: fn(&mut Value),
    /// Finds what the schema cannot say.
    pub validate: fn(&Value, &mut Vec<FieldError>),
    /// The same of what only a new object may not say.
    pub validate_new: fn(&Value, &mut Vec<FieldError>),
    /// Names the fields that are set and do nothing here.
    pub not_honoured: fn(&Value) -> Vec<String>,
    /// Finds what may not have changed: the new object, then the old one.
    pub changes: fn(&Value, &Value, &mut Vec<FieldError>),
    /// JSON pointers of what may not change once it is set.
    pub immutable: &'static [&'static str],
    /// Fields of `metadata` that a write to status leaves alone; it may change the others.
    pub status_keeps: &'static [&'static str],
    /// How the name must look.
    pub name: NameRule,
    /// Its `metadata.generation` counts the changes of its spec.
    pub generation: bool,
    /// And those of its annotations.
    pub annotations_count: bool,
    /// Gets an address of the cluster when it is made.
    pub gets_address: bool,
    /// Acts for a service account of its namespace.
    pub has_account: bool,
    /// An update must name the version that it changes.
    pub needs_version: bool,
    /// Deleted in two steps: told first, removed when its keeper says that it has ended.
    pub graceful: bool,
    /// Another face of the core kind of the same name: there is one store of both.
    pub core: Option<Conversion>,
}

/// Between an object of a group and the same one in the core group.
#[derive(Clone, Copy)]
pub struct Conversion {
    pub to: fn(&mut Value),
    pub from: fn(&mut Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NameRule {
    /// A DNS subdomain: most kinds.
    Subdomain,
    /// A DNS label: namespaces.
    Label,
    /// A DNS label that begins with a letter: services.
    LetterLabel,
    /// A path segment: RBAC kinds.
    Segment,
}

impl Behaviour {
    /// Of every custom kind.
    pub fn custom() -> Self {
        Self { needs_version: true, ..builtin::COUNTED }
    }
}

impl Deref for Resource {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

impl Resource {
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// A stored object as this version has it: with the defaults of the version that it is stored in, also those that
    /// came later, and without what this version does not know.
    pub fn shown<'a>(&self, stored: &'a Value) -> Cow<'a, Value> {
        if let Some(core) = self.behaviour.core {
            let mut object = stored.clone();
            (core.from)(&mut object);
            return Cow::Owned(object);
        }
        let Some((_, schema)) = &self.storage else { return Cow::Borrowed(stored) };
        let mut object = stored.clone();
        schema.prune(&mut object);
        schema.apply_defaults(&mut object);
        if object["apiVersion"] != self.api_version() {
            object["apiVersion"] = self.api_version().into();
            self.schema.prune(&mut object);
        }
        Cow::Owned(object)
    }

    /// The same as an object to be shown again.
    pub fn shown_shared(&self, stored: &Arc<Value>) -> Arc<Value> {
        match self.shown(stored) {
            Cow::Borrowed(_) => Arc::clone(stored),
            Cow::Owned(object) => Arc::new(object),
        }
    }

    /// An object of this version as it is stored.
    pub fn to_store(&self, mut object: Value) -> Value {
        if let Some(core) = self.behaviour.core {
            (core.to)(&mut object);
        }
        if let Some((version, schema)) = &self.storage {
            object["apiVersion"] = version.as_str().into();
            schema.prune(&mut object);
        }
        object
    }

    pub fn group_resource(&self) -> GroupResource<'_> {
        GroupResource { group: &self.group, resource: &self.plural }
    }

    /// The group that its objects are stored in.
    pub fn stored_group(&self) -> &str {
        if self.behaviour.core.is_some() { "" } else { &self.group }
    }

    /// The resource's name in the store: `deployments.apps`.
    pub fn stored_as(&self) -> String {
        GroupResource { group: self.stored_group(), resource: &self.plural }.to_string()
    }
}
