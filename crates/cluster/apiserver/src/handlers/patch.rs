//! `patch`: the four ways to say what changes. An apply may also create.

use http::{Response, StatusCode};
use serde_json::Value;

use super::Call;
use crate::access::Attributes;
use crate::answer::Body;
use crate::body::{self, media_type};
use crate::object;
use crate::ownership;
use crate::patch;
use crate::repeated::Said;
use crate::request::Verb;
use crate::status::{Result, Status};

const FORMS: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";
/// A custom kind's schema does not say how its lists are merged.
const CUSTOM_FORMS: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

impl Call {
    pub(super) async fn patch(&mut self) -> Result<Response<Body>> {
        let form = media_type(&self.content_type).to_owned();
        if form.starts_with("application/apply-patch") {
            return self.apply().await;
        }
        let custom = self.resource.is_custom();
        let known = match form.as_str() {
            "application/json-patch+json" | "application/merge-patch+json" => true,
            "application/strategic-merge-patch+json" => !custom,
            _ => false,
        };
        if !known {
            return Err(Status::unsupported_media_type(if custom { CUSTOM_FORMS } else { FORMS }));
        }
        let Said { value: change, repeated } = body::json(&self.body)?;
        self.repeated = repeated;
        self.client_pins = change.pointer("/metadata/resourceVersion").is_some();
        let schema = self.resource.schema.clone();
        let make = |current: &Value| match form.as_str() {
            "application/json-patch+json" => patch::json(current, &change),
            "application/merge-patch+json" => patch::merge(current, &change),
            _ => patch::strategic(current, &change, &schema),
        };
        let stored = self.store_change(self.part(), make).await?;
        Ok(self.shown(StatusCode::OK, &stored.object))
    }

    async fn apply(&mut self) -> Result<Response<Body>> {
        let Said { value: applied, repeated } = body::yaml(&self.body)?;
        self.repeated = repeated;
        self.client_pins = !object::resource_version(&applied).is_empty();
        let force = self.query.is_set("force");
        self.applies = true;
        let (version, reset) = (self.resource.api_version(), self.reset(self.part()));
        let merge = |live: Option<&Value>| {
            ownership::apply(live, &applied, force, &self.writer(), &self.tracked(&version, &reset))
        };
        let there = self.api.store.view().get(&self.key(&self.target.name)).is_some();
        if !there && self.target.subresource.is_empty() {
            let create = Attributes { verb: Verb::Create.name(), ..self.target.attributes() };
            self.api.rules().check(&self.user, &create)?;
            let uid = object::uid(&applied);
            if !uid.is_empty() {
                let why =
                    format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
                return Err(Status::conflict(self.resource.group_resource(), &self.target.name, &why));
            }
            let mut new = merge(None)?;
            object::metadata_mut(&mut new).remove("resourceVersion");
            let stored = self.store_new(new).await?;
            return Ok(self.shown(StatusCode::CREATED, &stored.object));
        }
        let stored = self.store_change(self.part(), |current| merge(Some(current))).await?;
        Ok(self.shown(StatusCode::OK, &stored.object))
    }
}
