//! Discovery, OpenAPI and version: what is served, told to whoever asks. It changes only when a kind comes or goes.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use crate::accept::{Form, asked_form};
use crate::answer::{self, Body};
use crate::discovery::{self, Served};
use crate::openapi::{self, OpenApi, V2_AS_PROTOBUF, V2_PROTOBUF};
use crate::resource::Kinds;
use crate::status::{Result, Status};

/// The documents of the kinds that were last asked about.
#[derive(Default)]
pub struct Descriptions(Mutex<(Vec<Arc<Served>>, Arc<OpenApi>)>);

impl Descriptions {
    pub fn answer(&self, kinds: &Kinds, method: &Method, path: &str, accept: &str) -> Result<Response<Body>> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Status::method_not_allowed());
        }
        let served: Vec<Arc<Served>> = kinds.all().iter().map(|resource| resource.served.clone()).collect();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let aggregated = match asked_form(accept) {
            Some(Form::AggregatedDiscovery(version)) => Some(version),
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
            (["openapi", "v2"], _) if accept.contains(V2_PROTOBUF) => {
                return Ok(answer::bytes(StatusCode::OK, V2_PROTOBUF, Bytes::from_static(V2_AS_PROTOBUF)));
            }
            (["openapi", "v2"], _) => Some(openapi::v2_as_json()),
            (["openapi", "v3"], _) => Some(self.documents(served).index()),
            (["openapi", "v3", rest @ ..], _) => return self.document(served, &rest.join("/")),
            _ => None,
        };
        Ok(found.map_or_else(answer::no_page, |body| json(&body)))
    }

    fn document(&self, served: Vec<Arc<Served>>, path: &str) -> Result<Response<Body>> {
        let documents = self.documents(served);
        let document = documents.document(path).ok_or_else(Status::no_such_path)?;
        Ok(answer::bytes(StatusCode::OK, "application/json", Bytes::from(document.body.clone())))
    }

    fn documents(&self, served: Vec<Arc<Served>>) -> Arc<OpenApi> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = last.0.len() == served.len() && last.0.iter().zip(&served).all(|(a, b)| Arc::ptr_eq(a, b));
        if !is_same {
            let documents = Arc::new(OpenApi::new(&served, &last.1));
            *last = (served, documents);
        }
        last.1.clone()
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
