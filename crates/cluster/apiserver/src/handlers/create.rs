//! `create`: a new object.

use http::{Response, StatusCode};

use super::Call;
use crate::answer::Body;
use crate::body;
use crate::status::Result;

impl Call {
    pub(super) async fn create(&self) -> Result<Response<Body>> {
        let stored = self.store_new(body::object(&self.content_type, &self.body)?).await?;
        Ok(self.shown(StatusCode::CREATED, &stored.object))
    }
}
