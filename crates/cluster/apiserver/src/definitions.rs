//! Custom kinds as they come and go: what a CustomResourceDefinition changes in what is served.

use std::sync::Arc;

use serde_json::Value;

use crate::api::Api;
use crate::crd::{Definition, Version};
use crate::discovery::{Served, Subresource};
use crate::resource::{ALL_VERBS, Behaviour, Resource, STATUS_VERBS};
use crate::selector::SelectableFields;
use crate::store::{CommitError, Key, Prefix};
use crate::table::Printer;

/// The resource that defines resources.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl Api {
    /// Serves what the stored definitions say, all of them: at the start.
    pub(crate) fn read_definitions(&self) {
        let view = self.store.view();
        for (_, stored) in view.list(&Prefix::everywhere(DEFINITIONS), None, None) {
            self.serve_definition(&stored.object);
        }
    }

    /// Follows the change of one definition, and says in its status what came of it.
    pub(crate) async fn definition_changed(&self, key: &Key) -> Result<(), CommitError> {
        let Some(stored) = self.store.view().get(key) else { return self.definition_gone(key).await };
        let Some(definition) = self.serve_definition(&stored.object) else { return Ok(()) };
        let view = self.store.view();
        let others: Vec<Definition> = view
            .list(&Prefix::everywhere(DEFINITIONS), None, None)
            .filter(|(other, _)| *other != key)
            .filter_map(|(_, other)| Definition::from_crd(&other.object).ok())
            .collect();
        let others: Vec<&Definition> = others.iter().collect();
        let old = stored.object.get("status").unwrap_or(&Value::Null);
        let status = definition.status(old, &others, &self.time_after(0));
        if *old == status {
            return Ok(());
        }
        let mut object = Value::clone(&stored.object);
        object["status"] = status;
        self.commit_quietly(key, &stored, Some(object)).await
    }

    /// The kind is served no more, and its objects go with it.
    async fn definition_gone(&self, key: &Key) -> Result<(), CommitError> {
        let (plural, group) = key.name.split_once('.').unwrap_or((&key.name, ""));
        self.kinds.replace_custom(group, plural, Vec::new());
        let view = self.store.view();
        for (key, stored) in view.list(&Prefix::everywhere(key.name.clone()), None, None) {
            self.commit_quietly(key, stored, None).await?;
        }
        Ok(())
    }

    fn serve_definition(&self, crd: &Value) -> Option<Definition> {
        // What is stored was checked when it was written.
        let definition = Definition::from_crd(crd).ok()?;
        let served = definition.served().map(|version| resource(&definition, version)).collect();
        self.kinds.replace_custom(&definition.group, &definition.names.plural, served);
        Some(definition)
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
        verbs: ALL_VERBS.to_vec(),
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_that_names_nothing_is_told_what_is_missing() {
        let mut errors = Vec::new();
        validate(&json!({"metadata": {"name": "x"}, "spec": {"versions": []}}), &mut errors);
        assert!(!errors.is_empty());
    }
}
