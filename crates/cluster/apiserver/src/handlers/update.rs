//! `update`: an object is replaced, in the version that the client has seen, or whichever there is if it names none.

use http::{Response, StatusCode};
use serde_json::Value;

use super::Call;
use super::write::Part;
use crate::answer::Body;
use crate::object;
use crate::status::{FieldError, Result, Status};

impl Call {
    pub(super) async fn update(&mut self) -> Result<Response<Body>> {
        let object = self.sent_object()?;
        self.client_pins = !object::resource_version(&object).is_empty();
        let unpinned = || {
            let why = "must be specified for an update";
            let wrong = FieldError::invalid("metadata.resourceVersion", &0.into(), why);
            Status::invalid(&self.resource.group, &self.resource.plural, &self.target.name, &[wrong])
        };
        let blind = self.resource.is_custom() && !self.client_pins;
        let change = |_: &Value| if blind { Err(unpinned()) } else { Ok(object.clone()) };
        let stored = self.store_change(self.part(), change).await?;
        Ok(self.shown(StatusCode::OK, &stored.object))
    }

    /// Which part of the object the path lets this request write.
    pub(super) fn part(&self) -> Part {
        match self.target.subresource.as_str() {
            "status" => Part::Status,
            _ => Part::Main,
        }
    }
}
