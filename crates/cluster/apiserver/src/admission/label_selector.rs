//! A `LabelSelector` object, parsed once and matched against the labels of objects.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object;

#[derive(Debug, Default)]
pub(crate) struct LabelSelector {
    requirements: Vec<(String, Requirement)>,
}

#[derive(Debug)]
enum Requirement {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// An absent selector selects everything, as an empty one does.
    pub(crate) fn from_object(selector: &Value) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push((key.clone(), Requirement::In(vec![value])));
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let requirement = match object::text(expression, "/operator") {
                "In" => Requirement::In(values),
                "NotIn" => Requirement::NotIn(values),
                "Exists" => Requirement::Exists,
                "DoesNotExist" => Requirement::DoesNotExist,
                other => return Err(format!("{other:?} is not a valid label selector operator")),
            };
            requirements.push((object::text(expression, "/key").to_owned(), requirement));
        }
        Ok(Self { requirements })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels: BTreeMap<&str, &str> = object::labels(object).collect();
        self.requirements.iter().all(|(key, requirement)| {
            let value = labels.get(key.as_str()).copied();
            let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
            match requirement {
                Requirement::In(values) => among(values),
                Requirement::NotIn(values) => !among(values),
                Requirement::Exists => value.is_some(),
                Requirement::DoesNotExist => value.is_none(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: Value, labels: &[(&str, &str)]) -> bool {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        LabelSelector::from_object(&selector).unwrap().matches(&json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn every_requirement_must_hold() {
        let one = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        assert!(selects(json!({}), &[]) && selects(Value::Null, &[("a", "b")]));
        assert!(selects(json!({"matchLabels": {"a": "b"}}), &[("a", "b"), ("c", "d")]));
        assert!(!selects(json!({"matchLabels": {"a": "b", "c": "x"}}), &[("a", "b"), ("c", "d")]));
        assert!(selects(one("In", &["b", "c"]), &[("a", "c")]) && !selects(one("In", &["b"]), &[]));
        assert!(selects(one("NotIn", &["b"]), &[]) && !selects(one("NotIn", &["b"]), &[("a", "b")]));
        assert!(selects(one("Exists", &[]), &[("a", "")]) && !selects(one("Exists", &[]), &[("b", "")]));
        assert!(selects(one("DoesNotExist", &[]), &[("b", "")]) && !selects(one("DoesNotExist", &[]), &[("a", "")]));
    }

    #[test]
    fn an_unknown_operator_is_an_error() {
        let selector = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        assert_eq!(
            LabelSelector::from_object(&selector).unwrap_err(),
            "\"Near\" is not a valid label selector operator"
        );
    }
}
