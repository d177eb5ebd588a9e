//! Label selectors as kubectl writes them, as objects have them.

use boathook_apiserver::selector::{self, Operator, Requirement};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// `app=db,tier in (a,b),!canary`. An empty one would mean everything, which nobody freezes by accident.
pub(crate) fn parse(given: &str) -> Result<LabelSelector, String> {
    let parsed: selector::LabelSelector =
        given.parse().map_err(|wrong: boathook_apiserver::status::Status| wrong.message.clone())?;
    let mut object = LabelSelector::default();
    for Requirement { key, operator, values } in parsed.requirements() {
        let (key, values) = (key.clone(), Some(values.clone()).filter(|values| !values.is_empty()));
        let operator = match operator {
            Operator::Equals | Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::GreaterThan | Operator::LessThan => {
                return Err(format!("`{given}`: < and > cannot be written into an object"));
            }
        };
        match (operator, values) {
            ("In", Some(mut only)) if only.len() == 1 => {
                let value = only.remove(0);
                let labels = object.match_labels.get_or_insert_default();
                if labels.insert(key.clone(), value).is_some() {
                    return Err(format!("`{given}`: `{key}` cannot have two values"));
                }
            }
            (operator, values) => object.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
                key,
                operator: operator.to_owned(),
                values,
            }),
        }
    }
    match object == LabelSelector::default() {
        true => Err("an empty selector would select everything: write for example app=db".to_owned()),
        false => Ok(object),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_written_as_kubectl_writes_it() {
        let parsed = parse("app=db,tier in (a, b),zone!=x,!canary,live").unwrap();
        let wanted = json!({"matchLabels": {"app": "db"}, "matchExpressions": [
            {"key": "canary", "operator": "DoesNotExist"}, {"key": "live", "operator": "Exists"},
            {"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "zone", "operator": "NotIn", "values": ["x"]},
        ]});
        assert_eq!(serde_json::to_value(parsed).unwrap(), wanted);
    }

    #[test]
    fn what_selects_too_much_or_nothing_is_refused() {
        for (wrong, word) in [("", "everything"), ("a>1", "object"), ("a=1,a=2", "two values"), ("a=(", "parse")] {
            assert!(parse(wrong).is_err_and(|told| told.contains(word)), "{wrong}: {:?}", parse(wrong));
        }
    }
}
