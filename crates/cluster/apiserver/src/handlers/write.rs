//! What every write goes through on its way to the store: reading, defaults, admission, checks, ownership, commit.
//!
//! Create, update, patch and apply differ in how the new object comes about; from there on they are the same, and
//! that is here. The order is Kubernetes': what a webhook sees is defaulted and has its name and uid, and what it
//! changed is checked again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Call;
use crate::access::{RBAC_GROUP, escalation};
use crate::admission::{self, Operation, service_account};
use crate::definitions::{self, DEFINITIONS};
use crate::object;
use crate::ownership::{self, FieldSet, Tracked, Writer};
use crate::patch;
use crate::random;
use crate::request::Verb;
use crate::schema;
use crate::status::{FieldError, Result, Status};
use crate::store::{CommitError, Expect, Key, Stored, Write};
use crate::strategy::{
    self,
    fill::{fill, fill_all},
    rbac,
};

/// A write without a version of its own is made again when somebody else was faster. Somebody is always first, so
/// with as many writers at once as that the last one still gets through.
const TRIES: u32 = 64;

/// How long a namespace may be without its first account.
const NEW_ACCOUNT: Duration = Duration::from_secs(5);

/// Which part of the object this write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but status.
    Main,
    /// Status alone.
    Status,
    /// Everything: the few subresources that the server itself fills in.
    All,
}

impl Call {
    /// Creates the object: named, filled, admitted, checked, stored.
    pub async fn store_new(&self, mut object: Value) -> Result<Stored> {
        self.decode(&mut object)?;
        self.check_place(&object)?;
        self.check_namespace(&object)?;
        if self.resource.is_custom() && self.api.is_ending(&self.resource.stored_as()) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(self.resource.group_resource(), object::name(&object), why));
        }
        if !object::resource_version(&object).is_empty() {
            return Err(Status::unforeseen("resourceVersion should not be set on objects to be created"));
        }
        self.begin_life(&mut object)?;
        if self.resource.has_status {
            let map = object::map_mut(&mut object);
            map.remove("status");
            if !self.resource.is_custom() {
                map.insert("status".to_owned(), json!({}));
            }
        }
        self.default(&mut object);
        // Nobody owns what the server itself or a webhook adds.
        if !self.applies {
            self.track(None, &mut object, Part::Main);
        }
        (self.resource.behaviour.begin)(&mut object);
        if self.resource.behaviour.has_account {
            self.give_account(&mut object).await?;
        }
        let mut object = self.mutate(Operation::Create, object, None).await?;
        self.prune(&mut object);
        self.default(&mut object);
        if self.resource.behaviour.gets_address {
            self.give_address(&mut object)?;
        }
        self.validate(&object, None)?;
        self.tell_not_honoured(&object, None);
        self.check_escalation(&object, None)?;
        self.admit(Operation::Create, Some(&object), None).await?;
        let key = self.key(object::name(&object));
        if self.dry_run {
            return match self.api.store.view().get(&key) {
                Some(_) => Err(Status::already_exists(self.resource.group_resource(), &key.name)),
                None => Ok(Stored { revision: 0, object: Arc::new(object) }),
            };
        }
        let put = Some(self.resource.to_store(object));
        match self.api.commit(Write { key: key.clone(), expect: Expect::Absent, put }).await {
            Ok(stored) => Ok(self.presented(&stored)),
            Err(CommitError::Exists(_)) => Err(Status::already_exists(self.resource.group_resource(), &key.name)),
            Err(error) => Err(Status::internal(error)),
        }
    }

    /// Changes an object: `change` makes the new one from the current one, and is asked again if somebody else was
    /// faster, unless the new one insists on a version.
    pub async fn store_change(&self, part: Part, change: impl Fn(&Value) -> Result<Value>) -> Result<Stored> {
        let key = self.key(&self.target.name);
        let gone = || Status::not_found(self.resource.group_resource(), &key.name);
        for _ in 0..TRIES {
            let current = self.current(&key).ok_or_else(gone)?;
            let new = change(&current.object)?;
            let version = object::resource_version(&new);
            let insists = !version.is_empty() && version != object::resource_version(&current.object);
            if insists && version.parse::<u64>().is_err() {
                let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                return Err(Status::unforeseen(why));
            }
            if insists {
                return Err(Status::modified_meanwhile(self.resource.group_resource(), &key.name));
            }
            // What the client did not say was copied from the current object.
            let pinned = self.client_pins && !version.is_empty();
            let new = self.prepare_change(part, new, &current.object).await?;
            // Kubernetes stores nothing then, and no watcher wakes.
            if new == *current.object {
                return Ok(current);
            }
            if self.dry_run {
                return Ok(Stored { revision: current.revision, object: Arc::new(new) });
            }
            let expect = Expect::Revision(current.revision);
            let last = is_finished(&new).then(|| Stored { revision: current.revision, object: Arc::new(new.clone()) });
            let put = last.is_none().then(|| self.resource.to_store(new));
            match self.api.commit(Write { key: key.clone(), expect, put }).await {
                // What goes with this write is shown as the write has left it.
                Ok(stored) => return Ok(last.unwrap_or_else(|| self.presented(&stored))),
                Err(CommitError::Changed { current: None }) => return Err(gone()),
                Err(CommitError::Changed { .. }) if pinned => break,
                Err(CommitError::Changed { .. }) => {}
                Err(error) => return Err(Status::internal(error)),
            }
        }
        Err(Status::modified_meanwhile(self.resource.group_resource(), &key.name))
    }

    async fn prepare_change(&self, part: Part, mut new: Value, current: &Value) -> Result<Value> {
        self.decode(&mut new)?;
        self.check_place(&new)?;
        self.check_version(&new)?;
        self.check_system_fields(&new, current)?;
        self.keep_system_fields(part, &mut new, current);
        self.default(&mut new);
        // An object that nobody owns anything of stays so.
        if !self.applies && current.pointer("/metadata/managedFields").is_some() {
            self.track(Some(current), &mut new, part);
        }
        let mut new = self.mutate(Operation::Update, new, Some(current)).await?;
        self.prune(&mut new);
        self.keep_system_fields(part, &mut new, current);
        self.default(&mut new);
        self.count_generation(part, &mut new, current);
        ownership::keep_times(current, &mut new);
        // The server's own doors change what no client may.
        self.validate(&new, (part != Part::All).then_some(current))?;
        self.tell_not_honoured(&new, Some(current));
        self.check_escalation(&new, Some(current))?;
        // A binding was admitted as what it is, a new Binding.
        if self.target.subresource != "binding" {
            self.admit(Operation::Update, Some(&new), Some(current)).await?;
        }
        Ok(new)
    }

    /// Reads the object as its kind.
    fn decode(&self, object: &mut Value) -> Result<()> {
        self.check_kind(object).map_err(|refusal| self.undecodable(object, refusal))?;
        self.clean(object)
    }

    /// An object must be of the kind that the path names.
    fn check_kind(&self, object: &Value) -> Result<()> {
        let (kind, version) = (object::kind(object), object::api_version(object));
        let wanted = self.resource.api_version();
        if self.resource.is_custom() && object.is_object() {
            self.check_custom_identity(object, kind, version, &wanted)?;
        }
        if !object.is_object() || kind.is_empty() || version.is_empty() {
            let missing = if kind.is_empty() { "kind" } else { "apiVersion" };
            return Err(Status::bad_request(format!("Object '{missing}' is missing in the request's body")));
        }
        if kind != self.resource.kind || version != wanted {
            return Err(Status::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {} in version \"{wanted}\"",
                self.resource.kind
            )));
        }
        Ok(())
    }

    /// An object must be in the place that the path names.
    fn check_place(&self, object: &Value) -> Result<()> {
        let namespace = object::namespace(object);
        if self.resource.namespaced && !namespace.is_empty() && namespace != self.target.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let (name, wanted) = (object::name(object), &self.target.name);
        if !wanted.is_empty() && name.is_empty() {
            return Err(Status::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )));
        }
        if !wanted.is_empty() && name != wanted {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({wanted})"
            )));
        }
        Ok(())
    }

    /// Some kinds are only ever replaced in a version that the client has seen.
    fn check_version(&self, object: &Value) -> Result<()> {
        if self.resource.behaviour.needs_version && object::resource_version(object).is_empty() {
            let field = "metadata.resourceVersion";
            let missing = FieldError::invalid(field, &json!(0), "must be specified for an update");
            let (group, plural) = (&self.resource.group, &self.resource.plural);
            return Err(Status::invalid(group, plural, object::name(object), &[missing]));
        }
        Ok(())
    }

    /// A custom object says itself what it is.
    fn check_custom_identity(&self, object: &Value, kind: &str, version: &str, wanted: &str) -> Result<()> {
        if kind.is_empty() {
            let text = crate::go_text::json(object);
            return Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{text}' ({text})",
                self.resource.kind
            )));
        }
        if version != wanted {
            return Err(Status::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({wanted})"
            )));
        }
        if kind != self.resource.kind {
            let wrong = FieldError::invalid("kind", &kind.into(), &format!("must be {}", self.resource.kind));
            return Err(Status::invalid(&self.resource.group, kind, object::name(object), &[wrong]));
        }
        Ok(())
    }

    /// Objects live only in namespaces that are there and stay.
    fn check_namespace(&self, object: &Value) -> Result<()> {
        if !self.resource.namespaced {
            return Ok(());
        }
        let name = &self.target.namespace;
        let namespaces = crate::status::GroupResource { group: "", resource: "namespaces" };
        let Some(namespace) = self.api.store.view().get(&Key::new("namespaces", "", name.as_str())) else {
            return Err(Status::not_found(namespaces, name));
        };
        if object::is_being_deleted(&namespace.object) {
            let why = format!("unable to create new content in namespace {name} because it is being terminated");
            let mut status = Status::forbidden(self.resource.group_resource(), object::name(object), &why);
            let message = format!("namespace {name} is being terminated");
            status.details["causes"] =
                json!([{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]);
            return Err(status);
        }
        Ok(())
    }

    /// Name, uid and time of birth.
    fn begin_life(&self, object: &mut Value) -> Result<()> {
        let generated = object::text(object, "/metadata/generateName").to_owned();
        let name = match (object::name(object), generated.as_str()) {
            ("", "") => String::new(),
            ("", stem) => format!("{}{}", stem.chars().take(58).collect::<String>(), random::suffix()),
            (name, _) => name.to_owned(),
        };
        if name.is_empty() {
            let missing = FieldError::required("metadata.name", "name or generateName is required");
            return Err(self.invalid("", &[missing]));
        }
        let (uid, now) = (random::uid(), self.now.clone());
        let metadata = object::metadata_mut(object);
        metadata.insert("name".to_owned(), name.into());
        if self.resource.namespaced {
            metadata.insert("namespace".to_owned(), self.target.namespace.clone().into());
        } else {
            metadata.remove("namespace");
        }
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), now.into());
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(field);
        }
        if self.resource.behaviour.generation {
            metadata.insert("generation".to_owned(), 1.into());
        }
        Ok(())
    }

    /// A service gets an address of the cluster, unless it has one or wants none.
    fn give_address(&self, service: &mut Value) -> Result<()> {
        if service["spec"]["type"] == "ExternalName" {
            return Ok(());
        }
        let own = object::text(service, "/spec/clusterIP").to_owned();
        let address = if own.is_empty() { self.api.free_address()? } else { own };
        service["spec"]["clusterIPs"] = json!([address]);
        service["spec"]["clusterIP"] = address.into();
        Ok(())
    }

    /// A pod acts for an account that is there; that of a new namespace may still be on its way.
    async fn give_account(&self, pod: &mut Value) -> Result<()> {
        let (namespace, name) = (&self.target.namespace, object::text(pod, "/spec/serviceAccountName").to_owned());
        let key = Key::new("serviceaccounts", namespace.as_str(), name.as_str());
        let give_up = tokio::time::Instant::now() + NEW_ACCOUNT;
        let account = loop {
            match self.api.store.view().get(&key) {
                Some(account) => break account,
                None if name == "default" && tokio::time::Instant::now() < give_up => {
                    tokio::time::sleep(NEW_ACCOUNT / 100).await;
                }
                None => {
                    let missing = format!("serviceaccount \"{name}\" not found");
                    let why = format!("error looking up service account {namespace}/{name}: {missing}");
                    return Err(Status::forbidden(self.resource.group_resource(), object::name(pod), &why));
                }
            }
        };
        service_account::mount_token(pod, &account.object, &random::suffix());
        Ok(())
    }

    /// What a client may not change by a write, whatever it sends.
    fn check_system_fields(&self, new: &Value, current: &Value) -> Result<()> {
        let (uid, name) = (object::uid(new), &self.target.name);
        if self.target.verb == Verb::Update && !uid.is_empty() && uid != object::uid(current) {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{name}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                self.resource.plural,
                self.target.namespace,
                object::uid(current)
            );
            return Err(Status::conflict(self.resource.group_resource(), name, &why));
        }
        let errors = strategy::metadata::changes(new, current);
        // Kubernetes looks twice.
        if errors.is_empty() { Ok(()) } else { Err(self.invalid(name, &[errors.clone(), errors].concat())) }
    }

    /// What stays as it is, whatever a client sends.
    fn keep_system_fields(&self, part: Part, new: &mut Value, current: &Value) {
        let kept = "name namespace uid creationTimestamp deletionTimestamp deletionGracePeriodSeconds generation \
            resourceVersion";
        object::metadata_mut(new);
        for field in kept.split(' ') {
            object::copy_field(&mut new["metadata"], &current["metadata"], field);
        }
        if self.resource.behaviour.gets_address && new["spec"]["type"] != "ExternalName" {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                fill(&mut new["spec"], field, current["spec"][field].clone());
            }
        }
        object::metadata_mut(new).remove("selfLink");
        if !self.resource.has_status {
            return;
        }
        match part {
            Part::All => {}
            Part::Main => object::copy_field(new, current, "status"),
            // Of a write to status only status counts; built-in kinds take what stands in metadata too.
            Part::Status => {
                let mut sent = std::mem::replace(new, current.clone());
                object::copy_field(new, &sent, "status");
                // Who owns what was worked out before.
                let owners = sent.pointer("/metadata/managedFields").cloned();
                if let Some(owners) = owners {
                    object::metadata_mut(new).insert("managedFields".to_owned(), owners);
                }
                if !self.resource.is_custom() {
                    for field in self.resource.behaviour.status_keeps {
                        object::copy_field(&mut sent["metadata"], &current["metadata"], field);
                    }
                    object::copy_field(new, &sent, "metadata");
                }
            }
        }
    }

    fn count_generation(&self, part: Part, new: &mut Value, current: &Value) {
        if !self.resource.behaviour.generation || part == Part::Status {
            return;
        }
        let counted = |object: &Value| {
            let mut object = object.clone();
            let annotations =
                object.pointer("/metadata/annotations").filter(|_| self.resource.behaviour.annotations_count);
            let annotations = annotations.cloned();
            let map = object::map_mut(&mut object);
            map.remove("metadata");
            map.extend(annotations.map(|annotations| ("annotations".to_owned(), annotations)));
            if self.resource.has_status {
                map.remove("status");
            }
            object
        };
        if counted(new) != counted(current) {
            let generation = current.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
            object::metadata_mut(new).insert("generation".to_owned(), (generation + 1).into());
        }
    }

    /// Unknown fields are refused, told or dropped, as the client chose.
    fn clean(&self, object: &mut Value) -> Result<()> {
        let (kind, version) = (&self.resource.kind, &self.resource.version);
        let decoded = match self.resource.is_custom() {
            true => {
                schema::zero_null_values_of_metadata(object);
                schema::decode_check_metadata(object, kind, version)
            }
            false => {
                self.resource.schema.zero_null_values(object);
                patch::drop_nulls(object);
                schema::decode_check(&self.resource.schema, object, kind, version)
            }
        };
        decoded.map_err(|refusal| self.undecodable(object, refusal))?;
        let unknown = self.prune(object);
        fill_all(object, &self.resource.blank);
        self.unknown_fields(object, &unknown)
    }

    fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = self.resource.schema.prune(object);
        match self.resource.is_custom() {
            true => {
                object.get_mut("metadata").into_iter().for_each(|metadata| schema::object_meta().drop_empty(metadata))
            }
            false => self.resource.schema.drop_empty(object),
        }
        unknown
    }

    fn default(&self, object: &mut Value) {
        if self.resource.is_custom() {
            self.resource.schema.apply_defaults(object);
        }
        (self.resource.behaviour.default)(object);
    }

    fn validate(&self, new: &Value, old: Option<&Value>) -> Result<()> {
        let mut errors = Vec::new();
        let name = object::name(new);
        strategy::metadata::validate(new, &self.resource, old.is_none(), &mut errors);
        if let Some(version) = &self.resource.custom {
            errors.extend(version.validate(new, old, self.target.subresource == "status"));
        }
        (self.resource.behaviour.validate)(new, &mut errors);
        if old.is_none() {
            (self.resource.behaviour.validate_new)(new, &mut errors);
        }
        if let Some(old) = old {
            for pointer in self.resource.behaviour.immutable {
                let (before, after) = (old.pointer(pointer), new.pointer(pointer));
                if before != after {
                    let field = pointer.trim_start_matches('/').replace('/', ".");
                    let after = after.unwrap_or(&Value::Null);
                    errors.push(match field.as_str() {
                        "roleRef" => FieldError::invalid(field, &rbac::written_role(after), "cannot change roleRef"),
                        _ => FieldError::invalid(field, after, "field is immutable"),
                    });
                }
            }
            (self.resource.behaviour.changes)(new, old, &mut errors);
        }
        if !errors.is_empty() {
            return Err(self.invalid(name, &errors));
        }
        if self.resource.stored_as() == DEFINITIONS {
            definitions::warnings(new).into_iter().for_each(|warning| self.warn(warning));
        }
        Ok(())
    }

    /// What is accepted and does nothing here is said, when it is asked for.
    fn tell_not_honoured(&self, new: &Value, current: Option<&Value>) {
        let said = current.map(self.resource.behaviour.not_honoured).unwrap_or_default();
        let mut fields = (self.resource.behaviour.not_honoured)(new);
        fields.retain(|field| !said.contains(field));
        if !fields.is_empty() {
            self.warn(format!("accepted, but without effect in this cluster: {}", fields.join(", ")));
        }
    }

    /// Nobody gives a right that they do not have.
    fn check_escalation(&self, new: &Value, old: Option<&Value>) -> Result<()> {
        if self.resource.group != RBAC_GROUP {
            return Ok(());
        }
        let namespace = if self.resource.namespaced { self.target.namespace.as_str() } else { "" };
        escalation::check(&self.api.rules(), &self.user, namespace, new, old)
    }

    fn invalid(&self, name: &str, errors: &[FieldError]) -> Status {
        Status::invalid(self.resource.stored_group(), &self.resource.kind, name, errors)
    }

    pub(super) fn track(&self, live: Option<&Value>, new: &mut Value, part: Part) {
        let api_version = self.resource.api_version();
        let reset = self.reset(part);
        ownership::track_update(live, new, &self.writer(), &self.tracked(&api_version, &reset));
    }

    pub(super) fn writer(&self) -> Writer<'_> {
        Writer { manager: &self.manager, subresource: &self.target.subresource, now: &self.now }
    }

    pub(super) fn tracked<'a>(&'a self, api_version: &'a str, reset: &'a FieldSet) -> Tracked<'a> {
        Tracked {
            api_version,
            kind: &self.resource.kind,
            schema: &self.resource.schema,
            reset,
            blank: &self.resource.blank,
        }
    }

    /// What nobody comes to own through this door.
    pub(super) fn reset(&self, part: Part) -> FieldSet {
        match (self.resource.has_status, part) {
            (false, _) => FieldSet::of(&[]),
            (true, Part::All) => FieldSet::of(&[]),
            (true, Part::Main) => FieldSet::of(&["status"]),
            (true, Part::Status) if self.resource.is_custom() => FieldSet::of(&["spec", "metadata"]),
            (true, Part::Status) => {
                let kept = self.resource.behaviour.status_keeps.iter().map(|field| format!("metadata.{field}"));
                let kept: Vec<String> = kept.chain(["spec".to_owned()]).collect();
                FieldSet::of(&kept.iter().map(String::as_str).collect::<Vec<_>>())
            }
        }
    }

    async fn mutate(&self, operation: Operation, object: Value, old: Option<&Value>) -> Result<Value> {
        let webhooks = self.api.webhooks();
        if !webhooks.can_mutate() {
            return Ok(object);
        }
        let namespace = self.namespace_object();
        let (sent, options) = (object.clone(), self.write_options(operation));
        let request = self.admission(operation, Some(&sent), old, &options);
        let (object, warnings) = webhooks.mutate(&request, object, namespace.as_deref()).await?;
        warnings.into_iter().for_each(|warning| self.warn(warning));
        Ok(object)
    }

    pub(super) async fn admit(&self, operation: Operation, object: Option<&Value>, old: Option<&Value>) -> Result<()> {
        self.ask(operation, object, old, &self.write_options(operation)).await
    }

    /// `CreateOptions` or `UpdateOptions`, as the query has them.
    fn write_options(&self, operation: Operation) -> Value {
        let kind = if operation == Operation::Create { "CreateOptions" } else { "UpdateOptions" };
        let mut options = self.options(kind);
        for field in ["fieldManager", "fieldValidation"] {
            if !self.query.get(field).is_empty() {
                options[field] = self.query.get(field).into();
            }
        }
        options
    }

    pub(super) fn options(&self, kind: &str) -> Value {
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Asks those who may refuse.
    pub(super) async fn ask(
        &self,
        operation: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
        options: &Value,
    ) -> Result<()> {
        let webhooks = self.api.webhooks();
        let namespace = self.namespace_object();
        let request = self.admission(operation, object, old, options);
        let warnings = webhooks.validate(&request, namespace.as_deref()).await?;
        warnings.into_iter().for_each(|warning| self.warn(warning));
        Ok(())
    }

    fn admission<'a>(
        &'a self,
        operation: Operation,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
        options: &'a Value,
    ) -> admission::Request<'a> {
        admission::Request {
            operation,
            resource: admission::Resource {
                group: &self.resource.group,
                version: &self.resource.version,
                plural: &self.resource.plural,
                kind: if self.target.subresource == "binding" { "Binding" } else { &self.resource.kind },
            },
            subresource: &self.target.subresource,
            namespace: &self.target.namespace,
            // A collection has no name, whatever is in it.
            name: object.map_or(self.target.name.as_str(), object::name),
            user: &self.user,
            object,
            old,
            dry_run: self.dry_run,
            options,
            deadline: self.deadline,
        }
    }

    /// The namespace that the request is in, as it is stored: webhooks select by its labels.
    fn namespace_object(&self) -> Option<Arc<Value>> {
        let name = self.target.namespace.as_str();
        self.api.store.view().get(&Key::new("namespaces", "", name)).map(|stored| stored.object)
    }
}

/// An object that waits for nothing any more: told to go, held by no finalizer, no time left.
pub(super) fn is_finished(object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    // A namespace's own finalizers stand in its spec.
    let held = object::kind(object) == "Namespace" && object.pointer("/spec/finalizers/0").is_some();
    object::is_being_deleted(object) && object::finalizers(object).next().is_none() && grace == 0 && !held
}
