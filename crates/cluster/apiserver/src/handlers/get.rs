//! `get`: one object.

use http::{Response, StatusCode};

use super::Call;
use crate::answer::Body;
use crate::status::Result;

impl Call {
    pub(super) fn get(&self) -> Result<Response<Body>> {
        Ok(self.shown(StatusCode::OK, &self.stored()?.object))
    }
}
