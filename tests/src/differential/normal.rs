//! What every cluster chooses for itself, replaced by a name for its place in the order of appearance.
//!
//! Uids, object versions and generated names keep their identity: the same one is the same name wherever it appears,
//! so an answer that mixes two of them up still differs. Times, addresses and tokens are only said to be there.

use std::collections::BTreeMap;

use serde_json::Value;

/// What has been seen in the answers of one cluster to one case.
#[derive(Default)]
pub struct Normaliser {
    /// Text -> what stands for it, replaced wherever it appears in a text; longer ones first.
    texts: Vec<(String, String)>,
    /// The image with a shell, which has another name on each cluster: replaced where it is the whole text.
    image: String,
    uids: Names,
    versions: Names,
    names: Names,
    hashes: Names,
}

/// Things numbered in the order of their appearance.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn number(&mut self, text: &str) -> usize {
        let next = self.0.len() + 1;
        *self.0.entry(text.to_owned()).or_insert(next)
    }
}

impl Normaliser {
    pub fn new(namespace: &str, image: &str) -> Self {
        Self { texts: vec![(namespace.to_owned(), "{ns}".to_owned())], image: image.to_owned(), ..Self::default() }
    }

    pub fn normalise(&mut self, mut value: Value) -> Value {
        self.learn(&value);
        self.replace(&mut value, "");
        value
    }

    fn stands_for(&mut self, text: &str, name: String) {
        if !text.is_empty() && self.texts.iter().all(|(known, _)| known != text) {
            self.texts.push((text.to_owned(), name));
            self.texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        }
    }

    /// Generated names and template hashes: they appear inside other texts too.
    pub(super) fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let text = |key: &str| fields.get(key).and_then(Value::as_str);
                if let (Some(stem), Some(name)) = (text("generateName"), text("name"))
                    && name.starts_with(stem)
                {
                    let known = format!("{}<name {}>", self.known(stem), self.names.number(name));
                    self.stands_for(name, known);
                }
                if let Some(hash) = text("pod-template-hash") {
                    let known = format!("<hash {}>", self.hashes.number(hash));
                    self.stands_for(hash, known);
                }
                fields.values().for_each(|value| self.learn(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            // A Deployment names its ReplicaSet before anybody shows it.
            Value::String(text) => {
                if let Some((_, rest)) = text.split_once("ReplicaSet \"")
                    && let Some((name, _)) = rest.split_once('"')
                    && let Some((_, hash)) = name.rsplit_once('-')
                {
                    let known = format!("<hash {}>", self.hashes.number(hash));
                    self.stands_for(hash, known);
                }
            }
            _ => {}
        }
    }

    fn known(&self, text: &str) -> String {
        self.texts.iter().fold(text.to_owned(), |text, (known, name)| text.replace(known, name))
    }

    fn replace(&mut self, value: &mut Value, key: &str) {
        sort_causes(value);
        match value {
            Value::Object(fields) => {
                let list = ["items", "rows"].iter().any(|key| fields.contains_key(*key));
                if fields.get("type").is_some_and(|kind| kind == "BOOKMARK")
                    && let Some(metadata) = fields.get_mut("object").and_then(|object| object.get_mut("metadata"))
                {
                    mask(metadata, "resourceVersion", "<bookmark version>");
                }
                let old = std::mem::take(fields);
                for (name, mut value) in old {
                    if list && name == "metadata" {
                        mask(&mut value, "resourceVersion", "<list version>");
                    }
                    self.replace(&mut value, &name);
                    fields.insert(self.text(&name), value);
                }
            }
            Value::Array(items) => {
                if key == "managedFields" {
                    // By time in seconds, and by name only then: how it falls is chance.
                    items.sort_by_key(|item| ["manager", "operation", "subresource"].map(|key| item[key].to_string()));
                }
                items.iter_mut().for_each(|item| self.replace(item, key));
            }
            Value::String(text) => *text = self.string(text, key),
            _ => {}
        }
    }

    fn string(&mut self, text: &str, key: &str) -> String {
        match key {
            "resourceVersion" if text.parse::<u64>().is_ok_and(|version| version > 0) => {
                format!("<version {}>", self.versions.number(text))
            }
            "cells" if is_age(text) => "<age>".to_owned(),
            "cells" if text.parse::<std::net::Ipv4Addr>().is_ok() => "<address>".to_owned(),
            "message" if text.contains("ersion") => {
                let known = self.text(text);
                self.versions_in(&known)
            }
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            "token" if text.split('.').count() == 3 => "<token>".to_owned(),
            "nodeName" | "containerID" | "imageID" | "holderIdentity" => format!("<{key}>"),
            "name" if text.len() == "kube-api-access-xxxxx".len() && text.starts_with("kube-api-access-") => {
                "kube-api-access-<name>".to_owned()
            }
            "clusterIP" | "clusterIPs" | "podIP" | "hostIP" | "ip" if text.contains(['.', ':']) => {
                "<address>".to_owned()
            }
            _ if text == self.image => "{image}".to_owned(),
            _ => self.text(text),
        }
    }

    fn text(&mut self, text: &str) -> String {
        match is_time(text) {
            true => format!("<time of {} characters>", text.len()),
            false => {
                let known = self.known(text);
                self.uids_in(&known)
            }
        }
    }

    /// A message's versions: those of objects by their number, the current one of the store as such.
    fn versions_in(&self, text: &str) -> String {
        let too_old = text.starts_with("too old resource version");
        let mut out = String::new();
        for part in text.split_inclusive(|char: char| !char.is_ascii_digit()) {
            let digits = part.trim_end_matches(|char: char| !char.is_ascii_digit());
            match self.versions.0.get(digits) {
                Some(number) => out += &format!("<version {number}>"),
                None if !digits.is_empty() && (out.ends_with("current: ") || (too_old && out.ends_with('('))) => {
                    out += "<current>";
                }
                None => out += digits,
            }
            out += &part[digits.len()..];
        }
        out
    }

    /// Every uid in a text, by its number.
    fn uids_in(&mut self, text: &str) -> String {
        const UID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let head: Vec<char> = rest.chars().take(UID.len()).collect();
            let is_uid = head.len() == UID.len()
                && UID.chars().zip(&head).all(|(form, char)| match form {
                    'x' => char.is_ascii_digit() || ('a'..='f').contains(char),
                    dash => dash == *char,
                });
            if is_uid {
                let (uid, tail) = rest.split_at(UID.len());
                out += &format!("<uid {}>", self.uids.number(uid));
                rest = tail;
            } else {
                let first = head[0];
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        out
    }
}

/// Puts the causes of a refusal in the order of their texts. Kubernetes finds them by walking maps, in any order.
fn sort_causes(status: &mut Value) {
    let said = |causes: &[Value]| {
        let text = |cause: &Value| Some(format!("{}: {}", cause["field"].as_str()?, cause["message"].as_str()?));
        Some(causes.iter().map(text).collect::<Option<Vec<_>>>()?.join(", "))
    };
    let Some(Value::Array(causes)) = status.pointer_mut("/details/causes") else { return };
    let before = said(causes);
    causes.sort_by_key(Value::to_string);
    if let (Some(before), Some(after), Some(message)) = (before, said(causes), status["message"].as_str()) {
        status["message"] = message.replace(&before, &after).into();
    }
}

fn mask(value: &mut Value, key: &str, name: &str) {
    if let Some(field) = value.get_mut(key).filter(|field| field.as_str().is_some_and(|text| !text.is_empty())) {
        *field = Value::String(name.to_owned());
    }
}

/// `5s`, `2m10s`, `3d`: how a table says how long ago something was.
fn is_age(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.ends_with(['s', 'm', 'h', 'd', 'y'])
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"smhdy".contains(&byte))
}

/// `2026-01-02T03:04:05Z`, with or without fractions of a second.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20
        && bytes.len() <= 30
        && bytes[4] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[bytes.len() - 1] == b'Z'
        && bytes.iter().all(|byte| byte.is_ascii_digit() || b"-T:.Z".contains(byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "0b9c6d1e-1111-4222-8333-444455556666";
    const OTHER: &str = "ffffffff-1111-4222-8333-444455556666";

    #[test]
    fn the_same_uid_is_the_same_name_and_another_is_not() {
        let mut normaliser = Normaliser::new("ns-1", "shell");
        let value = normaliser.normalise(json!({"a": UID, "b": [OTHER, UID], "c": format!("it is {UID}.")}));
        assert_eq!(value, json!({"a": "<uid 1>", "b": ["<uid 2>", "<uid 1>"], "c": "it is <uid 1>."}));
        assert_eq!(normaliser.normalise(json!(OTHER)), json!("<uid 2>"));
    }

    #[test]
    fn versions_of_objects_are_numbered_and_those_of_lists_are_not() {
        let mut normaliser = Normaliser::new("ns-1", "shell");
        let object = |version: &str| json!({"metadata": {"resourceVersion": version}});
        let list = json!({"metadata": {"resourceVersion": "99"}, "items": [object("7"), object("8"), object("7")]});
        let normal = json!({"metadata": {"resourceVersion": "<list version>"},
            "items": [object("<version 1>"), object("<version 2>"), object("<version 1>")]});
        assert_eq!(normaliser.normalise(list), normal);
    }

    #[test]
    fn a_generated_name_is_replaced_wherever_it_appears() {
        let mut normaliser = Normaliser::new("ns-1", "shell");
        let value =
            json!({"metadata": {"generateName": "web-", "name": "web-x7k2p"}, "message": "pod \"web-x7k2p\" in ns-1"});
        let normal = normaliser.normalise(value);
        assert_eq!(normal["message"], json!("pod \"web-<name 1>\" in {ns}"));
        assert_eq!(normal["metadata"]["name"], json!("web-<name 1>"));
    }

    #[test]
    fn causes_have_one_order() {
        let status = |message: &str, fields: [&str; 2]| {
            let causes = fields.map(|field| json!({"field": field, "message": "bad"}));
            json!({"message": message, "details": {"causes": causes}})
        };
        let mut normaliser = Normaliser::new("ns-1", "shell");
        let one = normaliser.normalise(status("invalid: [a: bad, b: bad]", ["a", "b"]));
        assert_eq!(one, normaliser.normalise(status("invalid: [b: bad, a: bad]", ["b", "a"])));
    }

    #[test]
    fn versions_in_messages_are_those_of_objects_or_the_current_one() {
        let mut normaliser = Normaliser::new("ns-1", "shell");
        normaliser.normalise(json!({"metadata": {"resourceVersion": "70"}}));
        let message = |text: &str| json!({"message": text});
        let normal = normaliser.normalise(message("ResourceVersion in precondition: 1, in object meta: 70"));
        assert_eq!(normal, message("ResourceVersion in precondition: 1, in object meta: <version 1>"));
        let normal = normaliser.normalise(message("too old resource version: 1 (1234)"));
        assert_eq!(normal, message("too old resource version: 1 (<current>)"));
    }

    #[test]
    fn managers_stand_in_the_order_of_their_names() {
        let mut normaliser = Normaliser::new("ns-1", "shell");
        let fields = |one: &str, other: &str| json!({"managedFields": [{"manager": one}, {"manager": other}]});
        assert_eq!(normaliser.normalise(fields("b", "a")), fields("a", "b"));
    }

    #[test]
    fn times_keep_their_form() {
        let mut normaliser = Normaliser::new("ns-1", "shell");
        let seconds = normaliser.normalise(json!("2026-01-02T03:04:05Z"));
        assert_ne!(seconds, normaliser.normalise(json!("2026-01-02T03:04:05.000001Z")));
        assert_eq!(normaliser.normalise(json!("2026-01-02")), json!("2026-01-02"));
    }
}
