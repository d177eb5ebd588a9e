//! `update`: an object is replaced, in the version that the client has seen, or whichever there is if it names none.

use http::{Response, StatusCode};

use super::Call;
use super::write::Part;
use crate::answer::Body;
use crate::object;
use crate::status::Result;

impl Call {
    pub(super) async fn update(&mut self) -> Result<Response<Body>> {
        let object = self.sent_object()?;
        self.client_pins = !object::resource_version(&object).is_empty();
        let stored = self.store_change(self.part(), |_| Ok(object.clone())).await?;
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
