//! The form of a case: a sentence and the steps that show it.
//!
//! `{ns}` in a step is the case's namespace, `{image}` an image with a shell, `{webhook}` the address of a webhook server on the host
//! ([`super::webhook`]) and `{ca}` its CA, and what an earlier step saved is there under its own name. A text that is
//! nothing but one of these takes the value as it is, a number too.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub steps: Vec<Step>,
    /// Requests that take away what is not in the namespace, sent however the case ends; their answers do not matter.
    #[serde(default)]
    pub finally: Vec<Step>,
}

/// One step: exactly one of `request`, `watch`, `until`, `record` and `recorded`.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// `VERB /path?query`: one request; status, warnings and body are compared.
    pub request: Option<String>,
    /// `/path?query`: a watch, read until `events` have come or the server ends it; the events are compared.
    pub watch: Option<String>,
    /// `/path` or `VERB /path`: asked again and again until `is` holds; nothing is compared.
    pub until: Option<String>,
    /// `/path` of a collection: watched from now on, in the background, under the name in `named`.
    pub record: Option<String>,
    /// The name of a recording: what became of `fields` of each of its objects, in order, without repeats.
    pub recorded: Option<String>,

    pub body: Option<Value>,
    /// A body sent as it is.
    pub text: Option<String>,
    /// The content type by its short name: `json`, `merge`, `strategic`, `apply`, `yaml`; or in full.
    pub r#type: Option<String>,
    pub accept: Option<String>,
    /// Acts as this user.
    pub r#as: Option<String>,
    pub groups: Vec<String>,
    pub headers: BTreeMap<String, String>,
    /// Sent with this token and no other credentials; without any if it is empty.
    pub token: Option<String>,
    /// The real cluster may name more in the answer's lists: only what the embedded one names is compared.
    pub named_only: bool,
    /// Variable -> JSON pointer into the answer.
    pub save: BTreeMap<String, String>,
    pub events: Option<usize>,
    /// JSON pointer -> value; `null`: absent. The pointer `status code` is the answer's.
    pub is: BTreeMap<String, Value>,
    pub named: Option<String>,
    /// JSON pointers, with `*` for every element of a list and `key=value` for the one that has it: all that is compared
    /// of a recording, or of an answer (`/status`, `/warnings`, `/body/...`).
    pub fields: Vec<String>,
}

/// What a step does, checked.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    Request { verb: &'a str, path: &'a str },
    Watch { path: &'a str, events: usize },
    Until { verb: &'a str, path: &'a str },
    Record { path: &'a str, name: &'a str },
    Recorded { name: &'a str },
}

impl Step {
    pub fn act(&self) -> Result<Act<'_>> {
        let Self { request, watch, until, record, recorded, .. } = self;
        match (request, watch, until, record, recorded) {
            (Some(line), None, None, None, None) => {
                let (verb, path) = line.split_once(' ').with_context(|| format!("`{line}` is not `VERB /path`"))?;
                Ok(Act::Request { verb, path })
            }
            // Without a number: until the server ends it, so the query should have a `timeoutSeconds`.
            (None, Some(path), None, None, None) => Ok(Act::Watch { path, events: self.events.unwrap_or(usize::MAX) }),
            (None, None, Some(line), None, None) if !self.is.is_empty() => {
                let (verb, path) =
                    line.split_once(' ').filter(|_| !line.starts_with('/')).unwrap_or(("GET", line.as_str()));
                Ok(Act::Until { verb, path })
            }
            (None, None, None, Some(path), None) => {
                Ok(Act::Record { path, name: self.named.as_deref().context("a recording needs `named`")? })
            }
            (None, None, None, None, Some(name)) if !self.fields.is_empty() => Ok(Act::Recorded { name }),
            _ => {
                bail!("a step is one of request, watch, until (with `is`), record, recorded (with `fields`): {self:?}")
            }
        }
    }

    pub fn content_type(&self) -> &str {
        match self.r#type.as_deref().unwrap_or("plain") {
            "plain" => "application/json",
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            "yaml" => "application/yaml",
            full => full,
        }
    }
}

/// The cases of one file.
pub fn read(yaml: &str) -> Result<Vec<Case>> {
    let cases: Vec<Case> = serde_saphyr::from_str(yaml).map_err(|error| anyhow::anyhow!("{error}"))?;
    for case in &cases {
        for step in case.steps.iter().chain(&case.finally) {
            step.act().with_context(|| format!("case `{}`", case.name))?;
        }
    }
    Ok(cases)
}

/// The variables of one case on one cluster.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, Value>);

impl Variables {
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.replace(&format!("{{{name}}}"), &value)
        })
    }

    pub fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                let whole = whole.and_then(|name| self.0.get(name));
                whole.cloned().unwrap_or_else(|| Value::String(self.fill(text)))
            }
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (self.fill(key), self.fill_value(value))).collect()
            }
            plain => plain.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_is_one_thing() {
        let error = read("- name: two at once\n  steps:\n  - {request: GET /api, watch: /api}\n").unwrap_err();
        assert!(format!("{error:#}").contains("two at once"), "{error:#}");
        let error = read("- name: none\n  steps:\n  - {requst: GET /api}\n").unwrap_err();
        assert!(format!("{error:#}").contains("requst"), "{error:#}");
        assert_eq!(read("- name: one\n  steps:\n  - request: GET /api\n").unwrap().len(), 1);
    }

    #[test]
    fn variables_fill_texts_and_stand_for_values() {
        let mut variables = Variables::default();
        variables.set("ns", json!("harbour"));
        variables.set("port", json!(80));
        assert_eq!(variables.fill("/namespaces/{ns}/pods/{other}"), "/namespaces/harbour/pods/{other}");
        let filled = variables.fill_value(&json!({"{ns}.dev": ["{port}", "p{port}", 1]}));
        assert_eq!(filled, json!({"harbour.dev": [80, "p80", 1]}));
    }
}
