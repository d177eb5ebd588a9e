//! OpenAPI v2: a document that defines nothing.
//!
//! kubectl 1.35 asks for it in one place: to check a file with `kind: List` by itself. It checks only what the document
//! defines, so it leaves all to the server, which does check. Without a document it would refuse the file.

use serde_json::{Value, json};

/// The content type of [`v2_as_protobuf`]; kubectl asks for nothing else.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

pub fn v2_as_json() -> Value {
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.35"}, "paths": {}, "definitions": {}})
}

/// The same as a protobuf message of gnostic's: `swagger` is field 1, `info` field 2 (`title` 1, `version` 2).
pub fn v2_as_protobuf() -> Vec<u8> {
    let info = [text_field(1, b"Kubernetes"), text_field(2, b"1.35")].concat();
    [text_field(1, b"2.0"), text_field(2, &info)].concat()
}

/// A field with a length; ours are shorter than 128 bytes, where the length is one byte.
fn text_field(number: u8, content: &[u8]) -> Vec<u8> {
    const LENGTH_DELIMITED: u8 = 2;
    let length = u8::try_from(content.len()).expect("our own texts are short");
    [&[number << 3 | LENGTH_DELIMITED, length], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_as_protobuf_writes_it() {
        let wanted = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.35";
        assert_eq!(v2_as_protobuf(), wanted);
    }
}
