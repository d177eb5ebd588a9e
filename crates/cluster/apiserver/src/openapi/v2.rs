//! OpenAPI v2: a document that defines nothing.
//!
//! kubectl 1.35 asks for it in one place: to check a file with `kind: List` by itself. It checks only what the document
//! defines, so it leaves all to the server, which does check. Without a document it would refuse the file.

use serde_json::{Value, json};

/// How every way of asking for [`V2_AS_PROTOBUF`] begins; kubectl asks for nothing else. Older ones write `v2@v1.0`.
pub const ASKS_FOR_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2";

pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// [`v2_as_json`] as a message of gnostic's: `swagger` is field 1, `info` field 2 (`title` 1, `version` 2).
pub const V2_AS_PROTOBUF: &[u8] = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.35";

pub fn v2_as_json() -> Value {
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.35"}, "paths": {}, "definitions": {}})
}
