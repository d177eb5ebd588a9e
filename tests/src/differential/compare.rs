//! Two outcomes side by side: where they differ, and whether that place is listed.

use std::sync::Mutex;

use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::Value;

/// A place where the embedded cluster differs on purpose.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Allowed {
    /// The case's name, or `*` for every case.
    case: String,
    /// JSON pointer into a step's outcome; `*` stands for any one segment. What is below it may differ too.
    at: String,
    why: String,
    #[serde(skip)]
    used: bool,
}

/// The list of them. One that no longer differs is reported, so the list stays short.
pub struct Differences(Mutex<Vec<Allowed>>);

impl Differences {
    pub fn read(yaml: &str) -> Result<Self> {
        let list: Vec<Allowed> = serde_saphyr::from_str(yaml).map_err(|error| anyhow!("{error}"))?;
        match list.iter().find(|allowed| allowed.why.trim().is_empty()) {
            Some(allowed) => {
                Err(anyhow!("the difference at `{}` of case `{}` has no reason", allowed.at, allowed.case))
            }
            None => Ok(Self(Mutex::new(list))),
        }
    }

    fn allows(&self, case: &str, at: &str) -> bool {
        let mut list = self.0.lock().expect("nothing panics while it holds the list");
        let mut allowed = false;
        for entry in list.iter_mut().filter(|entry| entry.case == "*" || entry.case == case) {
            let hit = covers(&entry.at, at);
            entry.used |= hit;
            allowed |= hit;
        }
        allowed
    }

    /// Those that no case ran into.
    pub fn unused(&self) -> Vec<String> {
        let list = self.0.lock().expect("nothing panics while it holds the list");
        let unused = list.iter().filter(|allowed| !allowed.used);
        unused.map(|allowed| format!("case `{}` at `{}`", allowed.case, allowed.at)).collect()
    }

    /// The unlisted differences of one step, a line or two each.
    pub fn between(&self, case: &str, real: &Value, embedded: &Value) -> Vec<String> {
        let mut found = Vec::new();
        match real.get("status") == embedded.get("status") {
            true => differences(String::new(), Some(real), Some(embedded), &mut found),
            // An answer and a refusal have nothing in common: the rest would only be noise.
            false => found.push(("/status".to_owned(), side_by_side(Some(real), Some(embedded)))),
        }
        found.retain(|(at, _)| !self.allows(case, at));
        found.into_iter().map(|(at, text)| format!("{at}\n{text}")).collect()
    }
}

/// Takes from the real outcome's lists the named things that the embedded one does not name, and lists the resources
/// of custom groups, which have no order, by name.
pub fn keep_named(real: &mut Value, embedded: &Value) {
    match (real, embedded) {
        (Value::Object(real), Value::Object(embedded)) => {
            for (key, value) in real {
                if let (Some(resources), "resources") = (value.as_array_mut(), key.as_str()) {
                    resources.sort_by(|one, other| name(one).cmp(&name(other)));
                }
                keep_named(value, embedded.get(key).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(real), Value::Array(embedded)) => {
            let like = |item: &Value| embedded.iter().find(|other| name(other).is_some() && name(other) == name(item));
            real.retain(|item| name(item).is_none() || like(item).is_some());
            for item in real {
                keep_named(item, like(item).unwrap_or(&Value::Null));
            }
        }
        _ => {}
    }
}

/// What a thing in one of discovery's lists is called.
fn name(item: &Value) -> Option<&str> {
    // The core group has no name, but metadata.
    if let Some(metadata) = item.get("metadata") {
        return Some(metadata["name"].as_str().unwrap_or_default());
    }
    ["name", "resource", "subresource", "version"].iter().find_map(|key| item.get(key)?.as_str())
}

fn covers(pattern: &str, at: &str) -> bool {
    let mut place = at.split('/');
    pattern.split('/').all(|wanted| place.next().is_some_and(|segment| wanted == "*" || wanted == segment))
}

fn differences(at: String, real: Option<&Value>, embedded: Option<&Value>, found: &mut Vec<(String, String)>) {
    match (real, embedded) {
        (Some(Value::Object(real)), Some(Value::Object(embedded))) => {
            let mut keys: Vec<_> = real.keys().chain(embedded.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let below = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                differences(below, real.get(key), embedded.get(key), found);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(embedded))) => {
            for index in 0..real.len().max(embedded.len()) {
                differences(format!("{at}/{index}"), real.get(index), embedded.get(index), found);
            }
        }
        (real, embedded) if real == embedded => {}
        (real, embedded) => found.push((at, side_by_side(real, embedded))),
    }
}

fn side_by_side(real: Option<&Value>, embedded: Option<&Value>) -> String {
    let show = |value: Option<&Value>| value.map_or_else(|| "(absent)".to_owned(), Value::to_string);
    format!("      real: {}\n  embedded: {}", show(real), show(embedded))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIST: &str = "- {case: a, at: /body/*/message, why: words}\n- {case: '*', at: /body/never, why: none}\n";

    #[test]
    fn only_listed_places_may_differ() {
        let differences = Differences::read(LIST).unwrap();
        let real = json!({"status": 200, "body": [{"message": "x"}]});
        let embedded = json!({"status": 200, "body": [{"message": "y"}]});
        assert!(differences.between("a", &real, &embedded).is_empty());
        let found = differences.between("b", &real, &embedded);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("/body/0/message\n"), "{found:?}");
        assert_eq!(differences.unused(), ["case `*` at `/body/never`"]);
    }

    #[test]
    fn something_absent_differs() {
        let differences = Differences::read("[]").unwrap();
        let found = differences.between("a", &json!({"a": 1, "l": [1, 2]}), &json!({"l": [1]}));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn what_only_the_real_one_names_is_left_out() {
        let named = |names: &[&str]| Value::from_iter(names.iter().map(|name| json!({"name": name, "of": ["x"]})));
        let mut real = json!({"groups": named(&["a", "b", "c"]), "verbs": ["get", "list"]});
        keep_named(&mut real, &json!({"groups": named(&["c", "a"]), "verbs": ["get"]}));
        assert_eq!(real, json!({"groups": named(&["a", "c"]), "verbs": ["get", "list"]}));
    }

    #[test]
    fn a_difference_needs_a_reason() {
        assert!(Differences::read("- {case: a, at: /x, why: ''}\n").is_err());
    }
}
