//! `get`: one object.

use http::{Response, StatusCode};

use super::Call;
use crate::answer::Body;
use crate::status::{Result, Status};

impl Call {
    pub(super) fn get(&self) -> Result<Response<Body>> {
        self.wanted_version().map_err(Status::unforeseen)?;
        Ok(self.shown(StatusCode::OK, &self.stored()?.object))
    }
}
