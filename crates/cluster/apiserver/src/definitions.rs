//! Custom kinds as they come and go: what a CustomResourceDefinition changes in what is served.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::Api;
use crate::crd::{Definition, Version};
use crate::discovery::{Served, Subresource};
use crate::object;
use crate::resource::{Behaviour, CUSTOM_VERBS, Resource, STATUS_VERBS};
use crate::selector::SelectableFields;
use crate::store::{CommitError, Key, Prefix, Stored};
use crate::table::Printer;

/// The resource that defines resources.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// Holds a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Api {
    /// Serves what the stored definitions say, all of them: at the start.
    pub(crate) fn read_definitions(&self) {
        let view = self.store.view();
        for (_, stored) in view.list(&Prefix::everywhere(DEFINITIONS), None, None) {
            if let Ok(definition) = Definition::from_crd(&stored.object) {
                self.serve(&definition, &stored.object);
            }
        }
    }

    /// Follows the change of one definition, and says in its status what came of it.
    pub(crate) async fn definition_changed(&self, key: &Key) -> Result<(), CommitError> {
        match self.store.view().get(key) {
            None => self.definition_gone(key).await,
            Some(stored) if object::is_being_deleted(&stored.object) => self.end_definition(key, &stored).await,
            Some(stored) => self.accept_definition(key, &stored).await,
        }
    }

    /// Whether a custom kind (`things.example.com`) is being taken away.
    pub(crate) fn is_ending(&self, kind: &str) -> bool {
        let definition = self.store.view().get(&Key::new(DEFINITIONS, "", kind));
        definition.is_some_and(|definition| object::is_being_deleted(&definition.object))
    }

    /// An object is gone: with the last one of a kind that is to end goes its definition.
    pub(crate) async fn object_gone(&self, key: &Key) -> Result<(), CommitError> {
        match self.is_ending(&key.resource) {
            true => self.definition_changed(&Key::new(DEFINITIONS, "", &*key.resource)).await,
            false => Ok(()),
        }
    }

    /// Gives a definition the names that are free; with all of them it is served.
    async fn accept_definition(&self, key: &Key, stored: &Stored) -> Result<(), CommitError> {
        // What is stored was checked when it was written.
        let Ok(definition) = Definition::from_crd(&stored.object) else { return Ok(()) };
        let view = self.store.view();
        let others: Vec<Definition> = view
            .list(&Prefix::everywhere(DEFINITIONS), None, None)
            .filter(|(other, _)| *other != key)
            .filter_map(|(_, other)| Definition::from_crd(&other.object).ok())
            .collect();
        let others: Vec<&Definition> = others.iter().collect();
        let old = stored.object.get("status").unwrap_or(&Value::Null);
        let mut object = Value::clone(&stored.object);
        object["status"] = definition.status(old, &others, &self.time_after(0));
        self.serve(&definition, &object);
        match *old == object["status"] {
            true => Ok(()),
            false => self.commit_quietly(key, stored, Some(object)).await,
        }
    }

    /// Tells the objects of a definition that is to go to go too; it waits for those that are held.
    async fn end_definition(&self, key: &Key, stored: &Stored) -> Result<(), CommitError> {
        let now = self.time_after(0);
        let mut held = false;
        let view = self.store.view();
        for (key, stored) in view.list(&Prefix::everywhere(&*key.name), None, None) {
            let mut told = Value::clone(&stored.object);
            let metadata = object::metadata_mut(&mut told);
            metadata.entry("deletionTimestamp").or_insert_with(|| now.clone().into());
            metadata.entry("deletionGracePeriodSeconds").or_insert(0.into());
            let stays = object::finalizers(&told).next().is_some();
            held |= stays;
            let put = stays.then_some(told);
            if put.as_ref() != Some(&*stored.object) {
                self.commit_quietly(key, stored, put).await?;
            }
        }
        let mut definition = Value::clone(&stored.object);
        if held {
            let condition = json!({
                "type": "Terminating", "status": "True", "lastTransitionTime": now,
                "reason": "InstanceDeletionInProgress", "message": "CustomResource deletion is in progress",
            });
            let conditions = definition.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            if let Some(conditions) = conditions.filter(|all| !all.iter().any(|one| one["type"] == "Terminating")) {
                conditions.push(condition);
                self.commit_quietly(key, stored, Some(definition)).await?;
            }
            return Ok(());
        }
        let finalizers: Vec<&str> = object::finalizers(&stored.object).filter(|held| *held != CLEANUP).collect();
        definition["metadata"]["finalizers"] = json!(finalizers);
        let gone = finalizers.is_empty();
        self.commit_quietly(key, stored, (!gone).then_some(definition)).await?;
        if gone { self.definition_gone(key).await } else { Ok(()) }
    }

    /// The kind is served no more. Its names are free for others.
    async fn definition_gone(&self, key: &Key) -> Result<(), CommitError> {
        let (plural, group) = key.name.split_once('.').unwrap_or((&key.name, ""));
        self.kinds.replace_custom(group, plural, Vec::new());
        let view = self.store.view();
        for (other, stored) in view.list(&Prefix::everywhere(DEFINITIONS), None, None) {
            if object::text(&stored.object, "/spec/group") == group && !object::is_being_deleted(&stored.object) {
                self.accept_definition(other, stored).await?;
            }
        }
        Ok(())
    }

    fn serve(&self, definition: &Definition, crd: &Value) {
        let established = |one: &Value| one["type"] == "Established" && one["status"] == "True";
        if object::list(crd, "/status/conditions").iter().any(established) {
            let served = definition.served().map(|version| resource(definition, version)).collect();
            self.kinds.replace_custom(&definition.group, &definition.names.plural, served);
        }
    }
}

fn resource(definition: &Definition, version: &Arc<Version>) -> Resource {
    let names = &definition.names;
    let mut subresources = Vec::new();
    if version.has_status {
        subresources.push(Subresource::new("status", &names.kind, None, &STATUS_VERBS));
    }
    if version.scale.is_some() {
        subresources.push(Subresource::new("scale", "Scale", Some("autoscaling"), &STATUS_VERBS));
    }
    let served = Served {
        group: definition.group.clone(),
        version: version.name.clone(),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
        singular: names.singular.clone(),
        short_names: names.short_names.clone(),
        categories: names.categories.clone(),
        namespaced: definition.namespaced,
        verbs: CUSTOM_VERBS.to_vec(),
        subresources,
        custom: true,
        schema: version.schema.clone(),
    };
    Resource {
        served: Arc::new(served),
        has_status: version.has_status,
        scale: version.scale.clone(),
        behaviour: Behaviour::custom(),
        printer: Printer::of_custom(Some(&version.columns)),
        blank: Value::Object(serde_json::Map::new()),
        custom: Some(Arc::clone(version)),
        storage: Some((
            format!("{}/{}", definition.group, definition.storage().name),
            definition.storage().schema.clone(),
        )),
        selectable: SelectableFields::Custom {
            namespaced: definition.namespaced,
            fields: version.selectable_fields.clone(),
        },
        review: None,
    }
}

/// All that is wrong with a definition that is written.
pub(crate) fn validate(crd: &Value, errors: &mut Vec<crate::status::FieldError>) {
    errors.extend(Definition::from_crd(crd).err().unwrap_or_default());
}

/// What the author of a definition is to be told.
pub(crate) fn warnings(crd: &Value) -> Vec<String> {
    Definition::from_crd(crd).map(|definition| definition.warnings).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_that_names_nothing_is_told_what_is_missing() {
        let mut errors = Vec::new();
        validate(&json!({"metadata": {"name": "x"}, "spec": {"versions": []}}), &mut errors);
        assert!(!errors.is_empty());
    }
}
