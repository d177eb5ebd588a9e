//! `docs/reference.md`: every field of every kind, from the schemas that the API server is given.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Fields of types that are Kubernetes' own: its reference tells of what is in them.
const OF_KUBERNETES: &[(&str, &str)] = &[("conditions", "list of conditions"), ("selector", "label selector")];

/// A list of more values than this is not spelt out.
const FEW: usize = 8;

const INTRODUCTION: &str = "\
# Reference

Every field of the kinds of `boathook.dev/v1alpha1`, as `kubectl explain` has them too. Fields in **bold** are required.
[Notifications](notifications.md), [execution hooks](execution-hooks.md) and [snapshots](snapshots.md) say what they are for.

Made by `cargo xtask generate` from crates/api: edit it there.
";

/// The whole page.
pub(crate) fn page() -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    for crd in boathook_api::crds::all() {
        let crd = serde_json::to_value(crd).context("failed to read a definition")?;
        let kind = text(&crd["spec"]["names"], "kind");
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let about = text(schema, "description");
        write!(page, "\n## {kind}\n\n{about}\n\n| field | type | meaning |\n|---|---|---|\n")?;
        for part in ["spec", "status"] {
            fields(&mut page, part, &schema["properties"][part])?;
        }
        let rules = rules(schema);
        if !rules.is_empty() {
            write!(page, "\nThe API server holds to:\n\n{rules}")?;
        }
    }
    Ok(page)
}

/// A row for each field of this object and of those in it.
fn fields(page: &mut String, path: &str, object: &Value) -> Result<()> {
    let nothing = Map::new();
    let required = object["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, field) in object["properties"].as_object().unwrap_or(&nothing) {
        let path = format!("{path}.{name}");
        let shown = match required.iter().any(|required| required == name) {
            true => format!("**`{path}`**"),
            false => format!("`{path}`"),
        };
        let about = text(field, "description");
        let known = OF_KUBERNETES.iter().find(|(known, _)| known == name);
        let kind = known.map_or_else(|| kind(field), |(_, kind)| (*kind).to_owned());
        writeln!(page, "| {shown} | {kind} | {about} |")?;
        match field["type"].as_str() {
            _ if known.is_some() => {}
            Some("array") => fields(page, &format!("{path}[]"), &field["items"])?,
            _ => fields(page, &path, field)?,
        }
    }
    Ok(())
}

/// What may be written there.
fn kind(field: &Value) -> String {
    let values = field["enum"].as_array().filter(|values| values.len() <= FEW);
    let mut kind = match (field["type"].as_str(), values) {
        (_, Some(values)) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        (Some("array"), None) => format!("list of {}", plural(&kind(&field["items"]))),
        (Some(kind), None) => kind.to_owned(),
        (None, None) if field["x-kubernetes-int-or-string"] == true => "integer or string".to_owned(),
        (None, None) => "any".to_owned(),
    };
    if let Some(format) = field["format"].as_str().filter(|format| format.starts_with("date-time")) {
        kind = if format == "date-time" { "time".to_owned() } else { format.to_owned() };
    }
    if let Some(least) = field["minimum"].as_f64() {
        kind += &format!(", at least {least}");
    }
    match &field["default"] {
        Value::Null => kind,
        default => format!("{kind}, default {}", default.as_str().map_or_else(|| default.to_string(), str::to_owned)),
    }
}

fn plural(kind: &str) -> String {
    format!("{kind}s")
}

/// The messages of all rules, in order and once each.
fn rules(schema: &Value) -> String {
    let mut messages = Vec::new();
    collect_rules(schema, &mut messages);
    messages.iter().fold(String::new(), |list, message| format!("{list}- {message}\n"))
}

fn collect_rules(schema: &Value, messages: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let message = text(rule, "message");
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    for field in schema["properties"].as_object().into_iter().flat_map(Map::values) {
        collect_rules(field, messages);
    }
}

/// A text for a cell: on one line.
fn text(of: &Value, field: &str) -> String {
    let words = of[field].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>();
    words.join(" ").replace('|', "\\|")
}
