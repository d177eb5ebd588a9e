//! What a client sends: how large it may be, in which form, and how it is read.

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::{BodyExt, Limited};
use serde_json::{Map, Value};

use crate::protobuf;
use crate::repeated::Said;
use crate::status::{Result, Status};

/// Kubernetes' own limit for a request's body.
pub const LIMIT: usize = 3 * 1024 * 1024;

/// The forms that an object may come in.
const OBJECT_FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// How much more is read of a body that is too large and thrown away: a client that is still sending hears no answer.
const DRAINED: usize = 8 * LIMIT;

/// Reads a body to its end, at most [`LIMIT`] of it.
pub async fn read<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(Limited::new(body, DRAINED));
    let (mut read, mut size) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => {
                size += data.len();
                if size <= LIMIT {
                    read.extend_from_slice(&data);
                }
            }
            // Trailers say nothing here.
            Ok(Err(_)) => {}
            Err(error) if error.is::<http_body_util::LengthLimitError>() => break,
            Err(error) => return Err(Status::bad_request(format!("failed to read the request's body: {error}"))),
        }
    }
    match size {
        0..=LIMIT => Ok(read.freeze()),
        _ => Err(Status::too_large(format!("Request entity too large: limit is {LIMIT}"))),
    }
}

/// The object in a body, by its content type.
pub fn object(content_type: &str, body: &[u8]) -> Result<Value> {
    said(content_type, body).map(|said| said.value)
}

/// The same, with what it says twice. Nothing at all is an object without fields.
pub fn said(content_type: &str, body: &[u8]) -> Result<Said> {
    let mut said = match media_type(content_type) {
        "" | "application/json" => json(body)?,
        "application/yaml" | "application/yml" | "text/yaml" => yaml(body)?,
        protobuf::CONTENT_TYPE => {
            Said { value: protobuf::decode(body).map_err(Status::bad_request)?, repeated: Vec::new() }
        }
        _ => return Err(Status::unsupported_media_type(OBJECT_FORMS)),
    };
    if said.value.is_null() {
        said.value = Value::Object(Map::new());
    }
    Ok(said)
}

/// As Go reads it: what is not UTF-8 is replaced.
pub fn json(body: &[u8]) -> Result<Said> {
    serde_json::from_str(&String::from_utf8_lossy(body)).map_err(|error| {
        Status::bad_request(format!(
            "the object provided is unrecognized: couldn't get version/kind; json parse error: {error}"
        ))
    })
}

/// YAML is read for what JSON could say; tags and repeated anchors beyond the library's budget are refused by it.
pub fn yaml(body: &[u8]) -> Result<Said> {
    let text = std::str::from_utf8(body).map_err(|_| Status::bad_request("the request's body is not UTF-8"))?;
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))
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
