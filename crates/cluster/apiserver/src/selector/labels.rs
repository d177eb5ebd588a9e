//! Label selectors: from a query string or from a LabelSelector object, matched against an object's labels.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::label_syntax::{label_key_problems, label_value_problems};
use super::parse;
use crate::object;
use crate::status::{FieldError, Status, joined};

/// Which objects are meant, by their labels: those that meet every requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelSelector {
    /// `None` selects nothing at all, as an absent LabelSelector object does. Sorted by key.
    requirements: Option<Vec<Requirement>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=` and `==`; `!=` is [`Operator::NotIn`].
    Equals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    pub fn everything() -> Self {
        Self { requirements: Some(Vec::new()) }
    }

    pub(super) fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Self { requirements: Some(requirements) }
    }

    /// From a `LabelSelector` object (`matchLabels`, `matchExpressions`). An absent one (`Null`) selects nothing, an
    /// empty one everything. The error is Kubernetes' sentence.
    pub fn from_object(selector: &Value) -> Result<Self, String> {
        if selector.is_null() {
            return Ok(Self { requirements: None });
        }
        let mut requirements = Vec::new();
        for (key, value) in object::fields(selector, "/matchLabels") {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
        }
        for expression in object::list(selector, "/matchExpressions") {
            let operator = match object::text(expression, "/operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("\"{other}\" is not a valid label selector operator")),
            };
            let values = object::texts(expression, "/values");
            requirements.push(Requirement::new(object::text(expression, "/key"), operator, values)?);
        }
        Ok(Self::new(requirements))
    }

    /// Whether an object's own labels are selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.matches_labels(object.pointer("/metadata/labels").unwrap_or(&Value::Null))
    }

    /// Whether a map of labels is selected (a pod template's, a namespace's).
    pub fn matches_labels(&self, labels: &Value) -> bool {
        let Some(requirements) = &self.requirements else { return false };
        requirements.iter().all(|requirement| requirement.matches(labels.get(&requirement.key).and_then(Value::as_str)))
    }

    /// What an object's labels must meet, sorted by key.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().flatten()
    }

    /// Whether it selects every object without looking.
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }
}

/// From the query string's form: `a=b,c!=d,e in (x,y),!f`.
impl FromStr for LabelSelector {
    type Err = Status;

    fn from_str(text: &str) -> Result<Self, Status> {
        parse::requirements(text).map(Self::new).map_err(Status::bad_request)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().flatten().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl Requirement {
    /// Checked as Kubernetes checks it; the error is its sentence.
    pub(super) fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut errors = Vec::new();
        let problems = label_key_problems(key);
        if !problems.is_empty() {
            errors.push(FieldError::invalid("key", &key.into(), &problems.join("; ")));
        }
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                let why = "for 'in', 'notin' operators, values set can't be empty";
                errors.push(FieldError::invalid("values", &Value::Array(Vec::new()), why));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                let why = "values set must be empty for exists and does not exist";
                errors.push(FieldError::invalid("values", &values.clone().into(), why));
            }
            Operator::GreaterThan | Operator::LessThan => {
                for (position, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.push(FieldError::invalid(format!("values[{position}]"), &value.as_str().into(), why));
                }
            }
            _ => {}
        }
        for (position, value) in values.iter().enumerate() {
            let problems = label_value_problems(value);
            if !problems.is_empty() {
                let field = format!("values[{position}][{key}]");
                errors.push(FieldError::invalid(field, &value.as_str().into(), &problems.join("; ")));
            }
        }
        match errors.is_empty() {
            true => Ok(Self { key: key.to_owned(), operator, values }),
            false => Err(joined(errors.iter().map(FieldError::to_string).collect())),
        }
    }

    fn matches(&self, label: Option<&str>) -> bool {
        let has = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::Equals | Operator::In => label.is_some_and(has),
            Operator::NotIn => !label.is_some_and(has),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compares(label, |label, wanted| label > wanted),
            Operator::LessThan => self.compares(label, |label, wanted| label < wanted),
        }
    }

    fn compares(&self, label: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let numbers = label.and_then(|label| Some((label.parse().ok()?, self.values.first()?.parse().ok()?)));
        numbers.is_some_and(|(label, wanted)| holds(label, wanted))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.values.clone();
        sorted.sort();
        let (key, values) = (&self.key, sorted.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: Value) -> bool {
        selector.parse::<LabelSelector>().expect(selector).matches(&json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn every_requirement_must_hold() {
        assert!(selects("a=b,c!=d,e in (x,y),!f,g notin (z)", json!({"a": "b", "e": "y"})));
        assert!(!selects("a=b,e in (x,y)", json!({"a": "b", "e": "z"})));
        assert!(!selects("!a", json!({"a": ""})));
        assert!(selects("a", json!({"a": ""})));
    }

    #[test]
    fn an_absent_label_is_different_from_every_value() {
        assert!(selects("a!=b", json!({})));
        assert!(selects("a notin (b)", json!({})));
        assert!(!selects("a=", json!({})));
        assert!(selects("a in ()", json!({"a": ""})));
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(selects("a>9", json!({"a": "10"})));
        assert!(!selects("a<9", json!({"a": "10"})));
        assert!(!selects("a>9", json!({"a": "many"})));
    }

    #[test]
    fn an_absent_selector_object_selects_nothing_and_an_empty_one_everything() {
        let pod = json!({"metadata": {}});
        assert!(!LabelSelector::from_object(&Value::Null).expect("absent").matches(&pod));
        assert!(LabelSelector::from_object(&json!({})).expect("empty").matches(&pod));
    }

    #[test]
    fn a_selector_object_prints_as_a_query_sorted_by_key() {
        let object = json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "DoesNotExist"},
                {"key": "d", "operator": "Exists"},
            ],
        });
        let selector = LabelSelector::from_object(&object).expect("valid");
        assert_eq!(selector.to_string(), "a in (x,y),b=1,!c,d");
        assert!(selector.matches_labels(&json!({"a": "x", "b": "1", "d": ""})));
    }

    #[test]
    fn an_unknown_operator_is_named() {
        let object = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
        let error = LabelSelector::from_object(&object).expect_err("no such operator");
        assert_eq!(error, "\"Like\" is not a valid label selector operator");
    }
}
