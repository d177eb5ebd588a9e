//! Bodies in Kubernetes' protobuf encoding, read into JSON.
//!
//! kubectl's `create KIND`, `create token` and `auth`, and Go clients of built-in kinds in general, send their objects
//! in it and do not fall back; all of them accept JSON answers, so nothing is ever written in it.
//!
//! `messages.txt` has a line for each message, from Kubernetes 1.35: `number:field:type` for every field. Types are
//! `s`tring, `b`ool, `i`nteger, `B`ytes or a message; `[]` is a list, `{}` a map. Go writes zero values out: they count
//! as absent, unless the type ends in `?` (a pointer there). A `^` field's own fields stand beside it in JSON.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";
/// Deeper than any object of a known kind is.
const DEEPEST: usize = 32;

static MESSAGES: LazyLock<HashMap<&'static str, Message>> = LazyLock::new(|| {
    include_str!("messages.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, fields)| (name, fields.split(' ').filter_map(Field::parse).collect()))
        .collect()
});

type Message = HashMap<u64, Field>;

struct Field {
    name: &'static str,
    is_inline: bool,
    shape: Shape,
    keeps_zero: bool,
    of: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    One,
    List,
    Map,
}

impl Field {
    fn parse(text: &'static str) -> Option<(u64, Self)> {
        let mut parts = text.split(':');
        let (number, name, of) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
        let (shape, of) = match (of.strip_prefix("[]"), of.strip_prefix("{}")) {
            (Some(of), _) => (Shape::List, of),
            (None, Some(of)) => (Shape::Map, of),
            (None, None) => (Shape::One, of),
        };
        let field = Self {
            name: name.trim_start_matches('^'),
            is_inline: name.starts_with('^'),
            shape,
            keeps_zero: of.ends_with('?'),
            of: of.trim_end_matches('?'),
        };
        Some((number, field))
    }
}

/// The object in a request's body. The error says what is wrong with it.
pub fn decode(body: &[u8]) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or("provided data does not appear to be a protobuf message")?;
    let (mut types, mut raw): (&[u8], &[u8]) = (&[], &[]);
    for field in Wire(envelope) {
        match field? {
            (1, Part::Bytes(bytes)) => types = bytes,
            (2, Part::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for field in Wire(types) {
        match field? {
            (1, Part::Bytes(bytes)) => api_version = text(bytes)?,
            (2, Part::Bytes(bytes)) => kind = text(bytes)?,
            _ => {}
        }
    }
    let message = MESSAGES.get(kind.as_str()).ok_or(format!("{api_version} {kind:?} is not known in protobuf"))?;
    let mut object = Map::from_iter([("apiVersion".to_owned(), json!(api_version)), ("kind".to_owned(), json!(kind))]);
    read(message, raw, &mut object, DEEPEST)?;
    Ok(Value::Object(object))
}

fn read(message: &Message, bytes: &[u8], into: &mut Map<String, Value>, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("the object is nested too deeply")?;
    for part in Wire(bytes) {
        let (number, part) = part?;
        let Some(field) = message.get(&number) else { continue };
        if field.is_inline {
            read(known(field.of)?, part.bytes()?, into, depth)?;
            continue;
        }
        match field.shape {
            Shape::One => {
                let value = value(field.of, part, depth)?;
                if field.keeps_zero || !is_zero(&value) {
                    into.insert(field.name.to_owned(), value);
                }
            }
            Shape::List => {
                let value = value(field.of, part, depth)?;
                let list = into.entry(field.name).or_insert_with(|| json!([]));
                list.as_array_mut().ok_or("a list is none")?.push(value);
            }
            Shape::Map => {
                let (mut key, mut entry) = (String::new(), None);
                for part in Wire(part.bytes()?) {
                    match part? {
                        (1, Part::Bytes(bytes)) => key = text(bytes)?,
                        (2, part) => entry = Some(value(field.of, part, depth)?),
                        _ => {}
                    }
                }
                let map = into.entry(field.name).or_insert_with(|| json!({}));
                map.as_object_mut().ok_or("a map is none")?.insert(key, entry.unwrap_or_else(|| json!("")));
            }
        }
    }
    Ok(())
}

fn value(of: &str, part: Part<'_>, depth: usize) -> Result<Value, String> {
    Ok(match of {
        "s" => json!(text(part.bytes()?)?),
        "b" => json!(part.number()? != 0),
        "i" => json!(part.number()?),
        "B" => json!(STANDARD.encode(part.bytes()?)),
        "Time" | "MicroTime" => time(of, part.bytes()?)?,
        "Quantity" => json!(text(find(part.bytes()?, 1)?.map_or(Ok(b"0" as &[u8]), |part| part.bytes())?)?),
        "IntOrString" => {
            let bytes = part.bytes()?;
            let number = |field| find(bytes, field)?.map_or(Ok(0), |part| part.number());
            match number(1)? {
                0 => json!(number(2)?),
                _ => json!(text(find(bytes, 3)?.map_or(Ok(b"" as &[u8]), |part| part.bytes())?)?),
            }
        }
        "FieldsV1" | "RawExtension" => {
            let raw = find(part.bytes()?, 1)?.map_or(Ok(b"null" as &[u8]), |part| part.bytes())?;
            serde_json::from_slice(raw).map_err(|error| error.to_string())?
        }
        "ExtraValue" => {
            let mut items = Vec::new();
            for part in Wire(part.bytes()?) {
                items.push(json!(text(part?.1.bytes()?)?));
            }
            Value::Array(items)
        }
        message => {
            let mut object = Map::new();
            read(known(message)?, part.bytes()?, &mut object, depth)?;
            Value::Object(object)
        }
    })
}

fn known(message: &str) -> Result<&'static Message, String> {
    MESSAGES.get(message).ok_or(format!("{message} is not known in protobuf"))
}

/// What Go writes for a field that was not set. A message is set if it is there.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Bool(true) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// `Null` for the time that was not set.
fn time(of: &str, bytes: &[u8]) -> Result<Value, String> {
    let Some(seconds) = find(bytes, 1)? else { return Ok(Value::Null) };
    let nanos = find(bytes, 2)?.map_or(Ok(0), |part| part.number())?;
    let nanos = i32::try_from(nanos).map_err(|error| error.to_string())?;
    let time = jiff::Timestamp::new(seconds.number()?, nanos).map_err(|error| error.to_string())?;
    let format = if of == "Time" { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
    Ok(json!(time.strftime(format).to_string()))
}

fn find(bytes: &[u8], number: u64) -> Result<Option<Part<'_>>, String> {
    for part in Wire(bytes) {
        match part? {
            (found, part) if found == number => return Ok(Some(part)),
            _ => {}
        }
    }
    Ok(None)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

#[derive(Clone, Copy)]
enum Part<'a> {
    Number(i64),
    Bytes(&'a [u8]),
}

impl<'a> Part<'a> {
    fn number(self) -> Result<i64, String> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err("proto: wrong wireType for a number".to_owned()),
        }
    }

    fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err("proto: wrong wireType for text".to_owned()),
        }
    }
}

/// The parts of a message as they lie on the wire: field number and content.
struct Wire<'a>(&'a [u8]);

impl<'a> Iterator for Wire<'a> {
    type Item = Result<(u64, Part<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let part = self.part();
        if part.is_none() {
            self.0 = &[];
        }
        Some(part.ok_or_else(|| "unexpected EOF".to_owned()))
    }
}

impl<'a> Wire<'a> {
    fn part(&mut self) -> Option<(u64, Part<'a>)> {
        let tag = self.varint()?;
        let part = match tag & 7 {
            0 => Part::Number(self.varint()?.cast_signed()),
            1 => Part::Bytes(self.take(8)?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Part::Bytes(self.take(length)?)
            }
            5 => Part::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, part))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    // What kubectl 1.35 sent.
    const CAN_I: &str = "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a6563744163636573\
        7352657669657712370a100a0012001a0022002a0032003800420012190a170a017812046c6973741a0022002a04706f647332003a00\
        1a08080012001a0020001a002200";
    const DEPLOYMENT: &str = "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412ad010a1d0a02646412001a0022002a0032003800\
        42005a090a0361707012026464127e0800120b0a090a03617070120264641a650a1b0a0012001a0022002a003200380042005a090a0361\
        707012026464124612280a01781203783a312a00320a0a001000185022002a0042006a007200800100880100900100a201001a0032004200\
        4a0052005800600068008201008a01009a0100c2010022020a00280038001a0c0800100018002000280038001a002200";
    const ROLE: &str = "6b3873000a240a1c726261632e617574686f72697a6174696f6e2e6b38732e696f2f76311204526f6c6512230a120a02727212\
        001a0022002a00320038004200120d0a0367657412001a04706f64731a002200";
    const SECRET: &str = "6b3873000a0c0a0276311206536563726574121e0a120a02737312001a0022002a0032003800420012060a016112016\
        21a001a002200";

    #[test]
    fn what_kubectl_sends_is_read() {
        assert_eq!(
            decode(&bytes(CAN_I)).unwrap(),
            json!({
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "metadata": {},
                "spec": {"resourceAttributes": {"namespace": "x", "verb": "list", "resource": "pods"}},
                "status": {},
            })
        );
        assert_eq!(
            decode(&bytes(ROLE)).unwrap(),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": "rr"},
                "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
            })
        );
        assert_eq!(
            decode(&bytes(SECRET)).unwrap(),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ss"}, "data": {"a": "Yg=="}})
        );
    }

    #[test]
    fn a_zero_that_was_set_is_kept_and_one_that_was_not_is_dropped() {
        assert_eq!(
            decode(&bytes(DEPLOYMENT)).unwrap(),
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "dd", "labels": {"app": "dd"}},
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": {"app": "dd"}},
                    "strategy": {},
                    "template": {
                        "metadata": {"labels": {"app": "dd"}},
                        "spec": {
                            "containers": [
                                {"name": "x", "image": "x:1", "ports": [{"containerPort": 80}], "resources": {}},
                            ],
                        },
                    },
                },
                "status": {},
            })
        );
    }

    #[test]
    fn special_types_have_the_form_they_have_in_json() {
        let read = |of, hex: &str| value(of, Part::Bytes(&bytes(hex)), DEEPEST).unwrap();
        assert_eq!(read("Time", "08edd3e8d706"), json!("2026-11-15T21:53:49Z"));
        assert_eq!(read("MicroTime", "08edd3e8d70610e807"), json!("2026-11-15T21:53:49.000001Z"));
        assert_eq!(read("Time", ""), Value::Null);
        assert_eq!(read("IntOrString", "08001050"), json!(80));
        assert_eq!(read("IntOrString", "080110001a03323525"), json!("25%"));
        assert_eq!(read("Quantity", "0a0331476d"), json!("1Gm"));
        assert_eq!(read("FieldsV1", "0a027b7d"), json!({}));
        assert_eq!(read("ExtraValue", "0a01610a0162"), json!(["a", "b"]));
        let probe = json!({"exec": {"command": ["x"]}, "periodSeconds": 5});
        assert_eq!(read("Probe", "0a050a030a01782005"), probe);
    }

    #[test]
    fn malformed_bodies_are_errors() {
        let whole = bytes(DEPLOYMENT);
        assert!(decode(b"{}").is_err());
        assert!(decode(b"k8s\0").is_err());
        for length in 5..whole.len() {
            // A cut may by chance fall between two fields of the envelope; it must never do more than fail.
            let _ = decode(&whole[..length]);
        }
        assert!(decode(&whole[..whole.len() - 1]).is_err());
        let mut odd = whole.clone();
        odd[30] ^= 0xff;
        let _ = decode(&odd);
    }

    #[test]
    fn every_message_that_a_field_names_is_there() {
        let own = [
            "s",
            "b",
            "i",
            "B",
            "Time",
            "MicroTime",
            "Quantity",
            "IntOrString",
            "FieldsV1",
            "RawExtension",
            "ExtraValue",
        ];
        for (name, message) in MESSAGES.iter() {
            for field in message.values() {
                assert!(
                    own.contains(&field.of) || MESSAGES.contains_key(field.of),
                    "{name}.{}: {}",
                    field.name,
                    field.of
                );
            }
        }
    }
}
