//! `create`: a new object.

use http::{Response, StatusCode};
use serde_json::Value;

use super::Call;
use crate::answer::Body;
use crate::body;
use crate::repeated::Said;
use crate::status::Result;

impl Call {
    pub(super) async fn create(&mut self) -> Result<Response<Body>> {
        let object = self.sent_object()?;
        let stored = self.store_new(object).await?;
        Ok(self.shown(StatusCode::CREATED, &stored.object))
    }

    /// The object of the body. A client that knows the path may leave out what the path says.
    pub(super) fn sent_object(&mut self) -> Result<Value> {
        let Said { mut value, repeated } = body::said(&self.content_type, &self.body)?;
        self.repeated = repeated;
        // A client that knows the path may leave out what the path says, but for that of a custom object.
        if let (Value::Object(map), false) = (&mut value, self.resource.is_custom()) {
            map.entry("kind").or_insert_with(|| self.resource.kind.clone().into());
            map.entry("apiVersion").or_insert_with(|| self.resource.api_version().into());
        }
        Ok(value)
    }
}
