//! What a client sends: how large it may be, in which form, and how it is read.

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;

use crate::protobuf;
use crate::status::{Result, Status};

/// Kubernetes' own limit for a request's body.
pub const LIMIT: usize = 3 * 1024 * 1024;

/// The forms that an object may come in.
const OBJECT_FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Reads a body to its end, at most [`LIMIT`] of it.
pub async fn read<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Status::too_large(format!("Request entity too large: limit is {LIMIT}")))
        }
        Err(error) => Err(Status::bad_request(format!("failed to read the request's body: {error}"))),
    }
}

/// The object in a body, by its content type.
pub fn object(content_type: &str, body: &[u8]) -> Result<Value> {
    match media_type(content_type) {
        "" | "application/json" => json(body),
        "application/yaml" | "application/yml" | "text/yaml" => yaml(body),
        protobuf::CONTENT_TYPE => protobuf::decode(body).map_err(Status::bad_request),
        _ => Err(Status::unsupported_media_type(OBJECT_FORMS)),
    }
}

pub fn json(body: &[u8]) -> Result<Value> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Status::bad_request("the request's body is empty: an object is needed"));
    }
    serde_json::from_slice(body).map_err(|error| {
        Status::bad_request(format!("the object provided is unrecognized: couldn't parse it as JSON: {error}"))
    })
}

/// YAML is read for what JSON could say; tags and repeated anchors beyond the library's budget are refused by it.
pub fn yaml(body: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(body).map_err(|_| Status::bad_request("the request's body is not UTF-8"))?;
    serde_saphyr::from_str(text).map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))
}

/// A content type without its parameters.
pub fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_say_the_same() {
        let wanted = json!({"kind": "ConfigMap", "data": {"a": "1"}});
        assert_eq!(
            object("application/json; charset=utf-8", br#"{"kind":"ConfigMap","data":{"a":"1"}}"#),
            Ok(wanted.clone())
        );
        assert_eq!(object("application/yaml", b"kind: ConfigMap\ndata: {a: '1'}\n"), Ok(wanted));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_code() {
        assert_eq!(object("application/json", b"{").unwrap_err().code, 400);
        assert_eq!(object("application/json", b"").unwrap_err().code, 400);
        assert_eq!(object("application/yaml", b"a: [").unwrap_err().code, 400);
        assert_eq!(object("text/plain", b"k8s").unwrap_err().code, 415);
    }

    #[test]
    fn an_object_that_is_too_deep_is_refused() {
        let deep = "[".repeat(10_000);
        assert_eq!(object("application/json", deep.as_bytes()).unwrap_err().code, 400);
        assert_eq!(object("application/yaml", deep.as_bytes()).unwrap_err().code, 400);
    }

    #[tokio::test]
    async fn a_body_past_the_limit_is_refused() {
        let body = http_body_util::Full::new(Bytes::from(vec![b' '; LIMIT + 1]));
        assert_eq!(read(body).await.unwrap_err().code, 413);
    }
}
