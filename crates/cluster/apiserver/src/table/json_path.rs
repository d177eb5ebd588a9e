//! The slice of JSONPath that printer columns use: fields (`.a.b`, `\.` for a dot in a name), `['a']`, `[0]`, `[-1]`,
//! `[*]` and filters (`[?(@.type=="Ready")]`).

use serde_json::Value;

/// A path, parsed once.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Filter { path: JsonPath, test: Test },
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Exists,
    Equals(Value),
    Differs(Value),
}

impl JsonPath {
    /// A path that cannot be read is nothing: its column stays empty.
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            rest = match rest.strip_prefix('[') {
                Some(inside) => {
                    let end = closing_bracket(inside)?;
                    steps.extend(bracket(&inside[..end])?);
                    &inside[end + 1..]
                }
                None => field(rest.strip_prefix('.').unwrap_or(rest), &mut steps)?,
            };
        }
        Some(Self(steps))
    }

    /// The first value that the path leads to; a `null` counts as one.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let mut found = vec![value];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.follow(value)).collect();
        }
        found.first().copied()
    }
}

/// Reads one field's name, and what comes after it.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => {
                end = position;
                break;
            }
            other => name.push(other),
        }
    }
    match name.as_str() {
        "" => return None,
        "*" => steps.push(Step::All),
        _ => steps.push(Step::Field(name)),
    }
    Some(&text[end..])
}

/// Where the bracket ends: brackets in quotes do not count.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    text.char_indices().find_map(|(position, character)| {
        match (quote, character) {
            (None, ']') => return Some(position),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
        None
    })
}

fn bracket(text: &str) -> Option<Vec<Step>> {
    let text = text.trim();
    if text == "*" {
        return Some(vec![Step::All]);
    }
    if let Some(name) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        // As Kubernetes reads it: a dot in a quoted name still separates, unless it is escaped.
        return JsonPath::parse(name).map(|path| path.0);
    }
    if let Some(condition) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        return filter(condition).map(|step| vec![step]);
    }
    text.parse().ok().map(|index| vec![Step::Index(index)])
}

fn filter(text: &str) -> Option<Step> {
    let path = |text: &str| JsonPath::parse(text.trim().strip_prefix('@')?);
    let literal = |text: &str| match text.trim() {
        text if text.len() > 1 && text.starts_with('\'') && text.ends_with('\'') => {
            Some(Value::from(&text[1..text.len() - 1]))
        }
        text => serde_json::from_str(text).ok(),
    };
    if let Some((left, right)) = text.split_once("==") {
        return Some(Step::Filter { path: path(left)?, test: Test::Equals(literal(right)?) });
    }
    if let Some((left, right)) = text.split_once("!=") {
        return Some(Step::Filter { path: path(left)?, test: Test::Differs(literal(right)?) });
    }
    Some(Step::Filter { path: path(text)?, test: Test::Exists })
}

impl Step {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(items)) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { length + index } else { *index };
                usize::try_from(index).ok().and_then(|index| items.get(index)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(map)) => map.values().collect(),
            (Self::Filter { path, test }, Value::Array(items)) => {
                items.iter().filter(|item| test.holds(path.first(item))).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Test {
    fn holds(&self, found: Option<&Value>) -> bool {
        match (self, found) {
            (_, None) => false,
            (Self::Exists, Some(_)) => true,
            (Self::Equals(wanted), Some(found)) => found == wanted,
            (Self::Differs(wanted), Some(found)) => found != wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(path: &str, value: &Value) -> Option<Value> {
        JsonPath::parse(path).expect(path).first(value).cloned()
    }

    #[test]
    fn a_path_leads_through_fields_lists_and_filters() {
        let value = json!({
            "metadata": {"labels": {"example.com/a": "b"}},
            "list": [{"type": "A", "x": 1}, {"type": "Ready]", "x": 2}],
        });
        assert_eq!(first(r".metadata.labels.example\.com/a", &value), Some(json!("b")));
        assert_eq!(first(r".metadata.labels['example\.com/a']", &value), Some(json!("b")));
        assert_eq!(first(".list[0].x", &value), Some(json!(1)));
        assert_eq!(first(".list[-1].x", &value), Some(json!(2)));
        assert_eq!(first(".list[*].x", &value), Some(json!(1)));
        assert_eq!(first(r#".list[?(@.type=="Ready]")].x"#, &value), Some(json!(2)));
        assert_eq!(first(r#".list[?(@.type!='A')].x"#, &value), Some(json!(2)));
        assert_eq!(first(".list[?(@.x==2)].type", &value), Some(json!("Ready]")));
        assert_eq!(first(".list[?(@.y)].type", &value), None);
        assert_eq!(first(".list[7].x", &value), None);
    }

    #[test]
    fn a_path_that_cannot_be_read_is_nothing() {
        for path in [".a[", ".a[x]", "..", ".a[?(x)]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
