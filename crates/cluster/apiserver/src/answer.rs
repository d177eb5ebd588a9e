//! What a client gets: JSON, in the form it asked for.

use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;
use http::{Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::Value;

use crate::resource::Resource;
use crate::status::Status;

pub type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

pub fn json(code: StatusCode, body: &Value) -> Response<Body> {
    bytes(code, "application/json", Bytes::from(body.to_string()))
}

pub fn text(code: StatusCode, body: &str) -> Response<Body> {
    bytes(code, "text/plain; charset=utf-8", Bytes::copy_from_slice(body.as_bytes()))
}

/// Of a path that nothing answers for.
pub fn no_page() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub fn bytes(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

/// A body that goes on: a watch, a log that is followed.
pub fn stream(content_type: &'static str, chunks: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    use futures::StreamExt;
    let frames = chunks.map(|chunk| Ok(Frame::data(chunk)));
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

pub fn refusal(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(code, &status.body())
}

/// A list of whole objects.
pub fn list(resource: &Resource, metadata: Value, items: &[Arc<Value>]) -> Value {
    // Items of a list carry no kind of their own in Kubernetes, but for those of custom kinds.
    let bare = |item: &Arc<Value>| {
        let mut item = Value::clone(item);
        if let (Some(map), false) = (item.as_object_mut(), resource.served.custom) {
            map.remove("kind");
            map.remove("apiVersion");
        }
        item
    };
    serde_json::json!({
        "kind": format!("{}List", resource.kind),
        "apiVersion": resource.api_version(),
        "metadata": metadata,
        "items": items.iter().map(bare).collect::<Vec<_>>(),
    })
}
