//! `patch`: the four ways to say what changes. An apply may also create.

use http::{Response, StatusCode};
use serde_json::Value;

use super::Call;
use crate::answer::Body;
use crate::body::{self, media_type};
use crate::object;
use crate::ownership;
use crate::patch;
use crate::status::{Result, Status};

const FORMS: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";
/// A custom kind has no merge keys for a strategic patch.
const CUSTOM_FORMS: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

impl Call {
    pub(super) async fn patch(&mut self) -> Result<Response<Body>> {
        let form = media_type(&self.content_type).to_owned();
        if form.starts_with("application/apply-patch") {
            return self.apply().await;
        }
        let change = body::json(&self.body)?;
        self.client_pins = change.pointer("/metadata/resourceVersion").is_some();
        let schema = self.resource.schema.clone();
        let custom = self.resource.is_custom();
        let make = |current: &Value| match form.as_str() {
            "application/json-patch+json" => patch::json(current, &change),
            "application/merge-patch+json" => patch::merge(current, &change),
            "application/strategic-merge-patch+json" if !custom => patch::strategic(current, &change, &schema),
            _ => Err(Status::unsupported_media_type(if custom { CUSTOM_FORMS } else { FORMS })),
        };
        let stored = self.store_change(self.part(), make).await?;
        Ok(self.shown(StatusCode::OK, &stored.object))
    }

    async fn apply(&mut self) -> Result<Response<Body>> {
        let mut applied = body::yaml(&self.body)?;
        if self.query.get("fieldManager").is_empty() {
            return Err(Status::bad_request(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ));
        }
        self.client_pins = !object::resource_version(&applied).is_empty();
        let force = self.query.is_set("force");
        if applied.is_object() && object::name(&applied).is_empty() {
            let name = self.target.name.clone();
            object::metadata_mut(&mut applied).insert("name".to_owned(), name.into());
        }
        self.applies = true;
        let (version, reset) = (self.resource.api_version(), self.reset(self.part()));
        let merge = |live: Option<&Value>| {
            ownership::apply(live, &applied, force, &self.writer(), &self.tracked(&version, &reset))
        };
        let there = self.api.store.view().get(&self.key(&self.target.name)).is_some();
        if !there && self.target.subresource.is_empty() {
            let stored = self.store_new(merge(None)?).await?;
            return Ok(self.shown(StatusCode::CREATED, &stored.object));
        }
        let stored = self.store_change(self.part(), |current| merge(Some(current))).await?;
        Ok(self.shown(StatusCode::OK, &stored.object))
    }
}
