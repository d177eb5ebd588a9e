//! `create`: a new object.

use http::{Response, StatusCode};

use super::Call;
use crate::answer::Body;
use crate::body;
use crate::object;
use crate::status::Result;

impl Call {
    pub(super) async fn create(&self) -> Result<Response<Body>> {
        let mut object = body::object(&self.content_type, &self.body)?;
        // A client that knows the path may leave out what the path says.
        if object.is_object() {
            let (kind, version) = (self.resource.kind.clone(), self.resource.api_version());
            let map = object::map_mut(&mut object);
            map.entry("kind").or_insert_with(|| kind.into());
            map.entry("apiVersion").or_insert_with(|| version.into());
        }
        let stored = self.store_new(object).await?;
        Ok(self.shown(StatusCode::CREATED, &stored.object))
    }
}
