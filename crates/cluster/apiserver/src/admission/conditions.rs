//! `matchConditions` of a webhook: whether a request that matches its rules is really to be sent.

use kube_cel::cel::Value as Cel;
use serde_json::Value;

use super::cel::Expression;
use crate::object;

/// What a condition can read. Kubernetes has `authorizer` too; here it is refused when the condition is compiled.
const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

#[derive(Debug)]
pub(super) struct Conditions {
    conditions: Vec<(String, Result<Expression, String>)>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Match {
    Yes,
    No,
    /// Nothing said no, and something could not be evaluated.
    Failed(String),
}

/// What is wrong with a condition's expression; to be refused when the configuration is written.
pub fn expression_problem(expression: &str) -> Option<String> {
    Expression::compile(expression, &VARIABLES).err()
}

impl Conditions {
    /// From a webhook's `matchConditions`.
    pub(super) fn parse(conditions: &Value) -> Self {
        let conditions = conditions.as_array().into_iter().flatten().map(|condition| {
            let source = object::text(condition, "/expression");
            (source.to_owned(), Expression::compile(source, &VARIABLES))
        });
        Self { conditions: conditions.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// One `false` decides, whatever else fails; all must be true to match. `request` is the review's.
    pub(super) fn evaluate(&self, object: &Value, old: &Value, request: &Value) -> Match {
        let variables = [("object", object), ("oldObject", old), ("request", request)];
        let mut errors = Vec::new();
        for (source, expression) in &self.conditions {
            let answer =
                expression.as_ref().map_err(Clone::clone).and_then(|expression| expression.evaluate(&variables));
            match answer {
                Ok(Cel::Bool(false)) => return Match::No,
                Ok(Cel::Bool(true)) => {}
                Ok(_) => errors.push(format!("expression '{source}' resulted in error: must evaluate to bool")),
                Err(error) => errors.push(format!("expression '{source}' resulted in error: {error}")),
            }
        }
        match errors.as_slice() {
            [] => Match::Yes,
            [one] => Match::Failed(one.clone()),
            many => Match::Failed(format!("[{}]", many.join(", "))),
        }
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
