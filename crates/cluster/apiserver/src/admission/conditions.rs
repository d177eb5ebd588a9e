//! `matchConditions` of a webhook: whether a request that matches its rules is really to be sent.

use serde_json::Value;

use crate::cel::{self, CelValue, Expression, Scope};
use crate::object;
use crate::schema::Schema;
use crate::status::joined;

/// What a condition can read. Kubernetes has `authorizer` too; here nothing is declared by that name.
const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

#[derive(Debug)]
pub(super) struct Conditions(Vec<(String, Result<Expression, String>)>);

#[derive(Debug, PartialEq)]
pub(super) enum Match {
    Yes,
    No,
    /// Nothing said no, and something could not be evaluated.
    Failed(String),
}

/// What is wrong with a condition's expression; to be refused when the configuration is written.
pub fn expression_problem(expression: &str) -> Option<String> {
    compile(expression).err()
}

fn compile(expression: &str) -> Result<Expression, String> {
    let scope = Scope::from(VARIABLES.map(|name| (name.to_owned(), None)));
    cel::compile(expression, &scope).map(|(compiled, _)| compiled).map_err(|why| format!("compilation failed: {why}"))
}

impl Conditions {
    /// From a webhook's `matchConditions`.
    pub(super) fn parse(conditions: &Value) -> Self {
        let conditions = object::list(conditions, "").iter().map(|condition| {
            let source = object::text(condition, "/expression");
            (source.to_owned(), compile(source))
        });
        Self(conditions.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One `false` decides, whatever else fails; all must be true to match. `request` is the review's.
    pub(super) fn evaluate(&self, object: &Value, old: &Value, request: &Value) -> Match {
        let values = [object, old, request].map(|json| cel::value(&Schema::default(), json));
        let variables: Vec<(&str, CelValue)> = VARIABLES.into_iter().zip(values).collect();
        let mut errors = Vec::new();
        for (source, expression) in &self.0 {
            let answer = expression.as_ref().map_err(Clone::clone);
            match answer.and_then(|expression| cel::evaluate(expression, &variables)) {
                Ok(CelValue::Bool(false)) => return Match::No,
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => errors.push(format!("expression '{source}' resulted in error: must evaluate to bool")),
                Err(error) => errors.push(format!("expression '{source}' resulted in error: {error}")),
            }
        }
        if errors.is_empty() { Match::Yes } else { Match::Failed(joined(errors)) }
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
