//! Discovery, OpenAPI and version: what is served, told to whoever asks. It changes only when a kind comes or goes.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use crate::accept::{Form, asked_form};
use crate::answer::{self, Body};
use crate::discovery::{self, Served};
use crate::openapi::{self, ASKS_FOR_PROTOBUF, OpenApi, V2_AS_PROTOBUF, V2_PROTOBUF};
use crate::resource::Kinds;
use crate::status::{Result, Status};

/// The documents of the kinds that were last asked about.
#[derive(Default)]
pub struct Descriptions(Mutex<Arc<OpenApi>>);

impl Descriptions {
    pub fn answer(&self, kinds: &Kinds, method: &Method, path: &str, accept: &str) -> Result<Response<Body>> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Status::method_not_allowed());
        }
        let served: Vec<Arc<Served>> = kinds.all().iter().map(|resource| resource.served.clone()).collect();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let aggregated = match asked_form(accept) {
            Some(Form::AggregatedDiscovery(version)) => Some(version),
            // OpenAPI has forms of its own, and clients that ask for one of them read JSON too.
            None if matches!(parts.as_slice(), ["api" | "apis" | "version", ..]) => {
                return Err(Status::not_acceptable("application/json"));
            }
            _ => None,
        };
        let found = match (parts.as_slice(), aggregated) {
            (["version"], _) => Some(discovery::version()),
            (["api"], Some(version)) => return Ok(aggregate(&served, true, version)),
            (["apis"], Some(version)) => return Ok(aggregate(&served, false, version)),
            (["api"], None) => Some(discovery::api_versions("127.0.0.1")),
            (["apis"], None) => Some(discovery::group_list(&served)),
            (["api", version], _) => discovery::resource_list(&served, "", version),
            (["apis", group], _) => discovery::group(&served, group),
            (["apis", group, version], _) => discovery::resource_list(&served, group, version),
            (["openapi", "v2"], _) if accept.contains(ASKS_FOR_PROTOBUF) => {
                return Ok(answer::bytes(StatusCode::OK, V2_PROTOBUF, Bytes::from_static(V2_AS_PROTOBUF)));
            }
            (["openapi", "v2"], _) => Some(openapi::v2_as_json()),
            (["openapi", "v3"], _) => {
                return Ok(answer::text(StatusCode::OK, &self.documents(&served).index().to_string()));
            }
            (["openapi", "v3", rest @ ..], _) => return self.document(&served, &rest.join("/")),
            _ => None,
        };
        let missing = || match parts.as_slice() {
            ["api", ..] => Status::no_such_path(),
            ["apis", group, ..] => kinds.no_such_path(group),
            _ => Status::no_such_page(),
        };
        found.map(|body| json(&body)).ok_or_else(missing)
    }

    fn document(&self, served: &[Arc<Served>], path: &str) -> Result<Response<Body>> {
        let documents = self.documents(served);
        let Some(document) = documents.document(path) else {
            let mut nothing = answer::text(StatusCode::NOT_FOUND, "");
            nothing.headers_mut().remove(http::header::CONTENT_TYPE);
            return Ok(nothing);
        };
        Ok(answer::bytes(StatusCode::OK, "application/json", Bytes::from(document.body.clone())))
    }

    fn documents(&self, served: &[Arc<Served>]) -> Arc<OpenApi> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Arc::new(OpenApi::new(served, &last));
        last.clone()
    }
}

fn aggregate(served: &[Arc<Served>], core: bool, version: &str) -> Response<Body> {
    let mut response = json(&discovery::aggregated(served, core, version));
    if let Ok(value) = discovery::aggregated_content_type(version).parse() {
        response.headers_mut().insert(http::header::CONTENT_TYPE, value);
    }
    response
}

fn json(body: &Value) -> Response<Body> {
    answer::json(StatusCode::OK, body)
}
