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
use crate::status::{FieldError, Result, Status};

impl Call {
    pub(super) async fn scale(&mut self) -> Result<Response<Body>> {
        if self.target.verb == Verb::Get {
            let stored = self.stored()?;
            self.check_scale(&stored.object)?;
            return Ok(answer::json(StatusCode::OK, &self.scale_of(&stored.object)));
        }
        let sent = match self.target.verb {
            Verb::Update => body::object(&self.content_type, &self.body)?,
            Verb::Patch => body::json(&self.body)?.value,
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

    /// Where the size is asked for: `.spec.replicas`.
    fn scale_path(&self) -> String {
        self.resource.scale.as_ref().map(|paths| paths.replicas.replace('/', ".")).unwrap_or_default()
    }

    /// A custom object without a size has no scale.
    fn check_scale(&self, current: &Value) -> Result<()> {
        let size = self.resource.scale.as_ref().and_then(|paths| current.pointer(&paths.replicas));
        match size.is_none() && self.resource.is_custom() {
            true => Err(Status::internal(format!("the spec replicas field \"{}\" does not exist", self.scale_path()))),
            false => Ok(()),
        }
    }

    fn scaled(&self, current: &Value, scale: &Value) -> Result<Value> {
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let (at, why, group, kind) = match self.resource.is_custom() {
                true => {
                    (self.scale_path(), "should be a non-negative integer", &*self.resource.group, &*self.resource.kind)
                }
                false => ("spec.replicas".to_owned(), "must be greater than or equal to 0", "autoscaling", "Scale"),
            };
            let wrong = FieldError::invalid(at, &json!(replicas), why);
            return Err(Status::invalid(group, kind, &self.target.name, &[wrong]));
        }
        let mut new = current.clone();
        let path = self.scale_path();
        let slot = path
            .split('.')
            .skip(1)
            .fold(&mut new, |value, field| object::map_mut(value).entry(field).or_insert(Value::Null));
        *slot = replicas.into();
        let version = object::resource_version(scale);
        if !version.is_empty() {
            object::metadata_mut(&mut new).insert("resourceVersion".to_owned(), version.into());
        }
        Ok(new)
    }
}
