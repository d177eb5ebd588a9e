//! `/scale`: how many, shown and set alike for every kind that can be scaled.

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::Call;
use super::write::Part;
use crate::answer::{self, Body};
use crate::body::{self, media_type};
use crate::object;
use crate::patch;
use crate::request::Verb;
use crate::selector::LabelSelector;
use crate::status::{Result, Status};

impl Call {
    pub(super) async fn scale(&mut self) -> Result<Response<Body>> {
        if self.target.verb == Verb::Get {
            return Ok(answer::json(StatusCode::OK, &self.scale_of(&self.stored()?.object)));
        }
        let sent = match self.target.verb {
            Verb::Update => body::object(&self.content_type, &self.body)?,
            Verb::Patch => body::json(&self.body)?,
            _ => return Err(Status::method_not_allowed()),
        };
        if self.target.verb == Verb::Update && !matches!(object::kind(&sent), "" | "Scale") {
            let kind = object::kind(&sent);
            return Err(Status::bad_request(format!("{kind} in version \"v1\" cannot be handled as a Scale")));
        }
        let form = media_type(&self.content_type).to_owned();
        let patches = self.target.verb == Verb::Patch;
        self.client_pins = !object::resource_version(&sent).is_empty();
        let change = |current: &Value| {
            let scale = match (patches, form.as_str()) {
                (false, _) => sent.clone(),
                (true, "application/json-patch+json") => patch::json(&self.scale_of(current), &sent)?,
                (true, _) => patch::merge(&self.scale_of(current), &sent)?,
            };
            self.scaled(current, &scale)
        };
        let stored = self.store_change(Part::Main, change).await?;
        Ok(answer::json(StatusCode::OK, &self.scale_of(&stored.object)))
    }

    fn scale_of(&self, current: &Value) -> Value {
        let number = |pointer: &str| current.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        let (mut spec, mut status) = (json!({}), json!({"replicas": 0}));
        if let Some(paths) = &self.resource.scale {
            // None at all is an absent field here.
            if let wanted @ 1.. = number(&paths.replicas) {
                spec["replicas"] = wanted.into();
            }
            status["replicas"] = number(&paths.status_replicas).into();
            let selector = paths.selector.as_deref().and_then(|pointer| current.pointer(pointer));
            match selector {
                Some(Value::String(text)) => status["selector"] = text.clone().into(),
                Some(selector) => {
                    // A stored selector was checked when it was written.
                    let parsed = LabelSelector::from_object(selector).map(|parsed| parsed.to_string());
                    status["selector"] = parsed.unwrap_or_default().into();
                }
                None => {}
            }
        }
        let metadata = json!({
            "name": object::name(current),
            "namespace": object::namespace(current),
            "uid": object::uid(current),
            "resourceVersion": object::resource_version(current),
            "creationTimestamp": current.pointer("/metadata/creationTimestamp"),
        });
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
    }

    fn scaled(&self, current: &Value, scale: &Value) -> Result<Value> {
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let wrong = crate::status::FieldError::invalid(
                "spec.replicas",
                &json!(replicas),
                "must be greater than or equal to 0",
            );
            return Err(Status::invalid("autoscaling", "Scale", &self.target.name, &[wrong]));
        }
        let mut new = current.clone();
        if let Some(slot) = self.resource.scale.as_ref().and_then(|paths| new.pointer_mut(&paths.replicas)) {
            *slot = replicas.into();
        }
        let version = object::resource_version(scale);
        if !version.is_empty() {
            object::metadata_mut(&mut new).insert("resourceVersion".to_owned(), version.into());
        }
        Ok(new)
    }
}
