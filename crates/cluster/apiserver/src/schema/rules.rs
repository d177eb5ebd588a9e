//! CEL rules (`x-kubernetes-validations`): compiled with their schema, evaluated per write.

use std::sync::Arc;

use serde_json::Value;

use super::validate::{json_type, old_item};
use super::{ListType, Rule, Schema, Type, join};
use crate::cel::{self, CelValue, Expression, NO_SUCH_OVERLOAD, Scope};
use crate::status::{FieldError, FieldErrorKind};

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compiled {
    condition: Expression,
    message: Option<Expression>,
    /// A transition rule: it compares with what was there before.
    uses_old: bool,
}

/// Compiles the rules of a schema and of all below it, and tells whether all of them are well written: only then the
/// expressions above them are looked at. `uncorrelatable` is the path of the list above whose items have no identity
/// over time, if there is one.
pub(super) fn compile(
    schema: &mut Schema,
    path: &str,
    uncorrelatable: Option<&str>,
    errors: &mut Vec<FieldError>,
) -> bool {
    let mut right = true;
    for (field, property) in &mut schema.properties {
        let path = join(path, &format!("properties[{field}]"));
        right &= compile(Arc::make_mut(property), &path, uncorrelatable, errors);
    }
    if let Some(values) = &mut schema.additional {
        right &= compile(Arc::make_mut(values), &join(path, "additionalProperties"), uncorrelatable, errors);
    }
    if let Some(items) = &mut schema.items {
        let keyed = matches!(schema.list, ListType::Map(_));
        let uncorrelatable = uncorrelatable.or(if keyed { None } else { Some(path) });
        right &= compile(Arc::make_mut(items), &join(path, "items"), uncorrelatable, errors);
    }
    let mut rules = std::mem::take(&mut schema.rules);
    let at = |index: usize| join(path, &format!("x-kubernetes-validations[{index}]"));
    let known = errors.len();
    for (index, rule) in rules.iter().enumerate() {
        well_written(rule, schema, &at(index), errors);
    }
    right &= errors.len() == known;
    for (index, rule) in rules.iter_mut().enumerate().filter(|_| right) {
        rule.compiled = compiled(rule, schema, &at(index), uncorrelatable, errors);
    }
    schema.rules = rules;
    right
}

fn well_written(rule: &Rule, schema: &Schema, at: &str, errors: &mut Vec<FieldError>) {
    let place = |field: &str| join(at, field);
    let invalid = |field: &str, value: &str, why: &str| FieldError::invalid(place(field), &value.into(), why);
    if rule.rule.trim().is_empty() {
        return errors.push(FieldError::required(place("rule"), "rule is not specified"));
    }
    if !rule.message.is_empty() && rule.message.trim().is_empty() {
        errors.push(invalid("message", &rule.message, "must be non-empty if specified"));
    }
    if rule.message.contains('\n') {
        errors.push(invalid("message", &rule.message, "must not contain line breaks"));
    }
    if rule.rule.contains('\n') && rule.message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(place("message"), why));
    }
    if !rule.reason.is_empty() && !REASONS.contains(&rule.reason.as_str()) {
        errors.push(FieldError::not_supported(place("reason"), &rule.reason.as_str().into(), &REASONS));
    }
    if !rule.field_path.is_empty() && !cel::field_exists(schema, &rule.field_path) {
        errors.push(invalid("fieldPath", &rule.field_path, "must be a valid path"));
    }
}

fn compiled(
    rule: &Rule,
    schema: &Schema,
    at: &str,
    uncorrelatable: Option<&str>,
    errors: &mut Vec<FieldError>,
) -> Option<Compiled> {
    let place = |field: &str| join(at, field);
    let old = Some(schema).filter(|_| !rule.optional_old_self);
    let scope = Scope::from([("self".to_owned(), Some(schema)), ("oldSelf".to_owned(), old)]);
    let mut compile = |field: &str, source: &str, wanted: Type, prefix: &str, other_type: &str| {
        let why = match cel::compile(source, &scope) {
            Ok((_, Some(found))) if ![Type::Any, Type::IntOrString, wanted].contains(&found.kind) => {
                other_type.to_owned()
            }
            Ok((expression, _)) => return Some(expression),
            Err(why) => format!("{prefix}compilation failed: {why}"),
        };
        let detail = format!("Invalid value: {}: {why}", written(rule));
        errors.push(FieldError { kind: FieldErrorKind::Invalid, field: place(field), detail });
        None
    };
    let condition = compile("rule", &rule.rule, Type::Boolean, "", "cel expression must evaluate to a bool")?;
    let message = match rule.message_expression.trim() {
        "" => None,
        source => {
            let other_type = "messageExpression must evaluate to a string";
            compile("messageExpression", source, Type::String, "messageExpression ", other_type)
        }
    };
    let uses_old = condition.references().has_variable("oldSelf");
    if let Some(list) = uncorrelatable.filter(|_| uses_old) {
        let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
        errors.push(FieldError::invalid(place("rule"), &rule.rule.as_str().into(), &why));
    }
    if rule.optional_old_self && !uses_old {
        let why = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(place("optionalOldSelf"), &true.into(), why));
    }
    Some(Compiled { condition, message, uses_old })
}

/// The rule as Kubernetes prints it in the error that refuses it.
fn written(rule: &Rule) -> String {
    let text = |text: &str| crate::go_text::json(&text.into());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        if rule.reason.is_empty() { "null".to_owned() } else { text(&rule.reason) },
        text(&rule.field_path),
        if rule.optional_old_self { "true" } else { "null" },
    )
}

impl Schema {
    /// Whether there is any rule in it.
    pub fn has_rules(&self) -> bool {
        let below = self.properties.values().chain(&self.additional).chain(&self.items);
        !self.rules.is_empty() || below.into_iter().any(|schema| schema.has_rules())
    }

    /// Which rules a value breaks. Transition rules run only where there was a value before; a rule that a value broke
    /// before this update too is not held against it.
    pub fn check_rules(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        walk(self, value, old, "", &mut errors);
        errors
    }
}

fn walk(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    if !schema.rules.is_empty() {
        let (this, before) = (cel::value(schema, value), old.map(|old| cel::value(schema, old)));
        let judge = |rule: &Rule| rule.judge(schema, value, &this, before.as_ref(), old == Some(value), path);
        errors.extend(schema.rules.iter().filter_map(judge));
    }
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let old = old.and_then(|old| old.get(field));
                if let Some(property) = schema.properties.get(field) {
                    walk(property, value, old, &join(path, field), errors);
                } else if let Some(of) = &schema.additional {
                    walk(of, value, old, &format!("{path}[{field}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(of) = &schema.items {
                    walk(of, item, old_item(schema, item, old), &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Rule {
    fn judge(
        &self,
        schema: &Schema,
        value: &Value,
        this: &CelValue,
        before: Option<&CelValue>,
        unchanged: bool,
        path: &str,
    ) -> Option<FieldError> {
        let Compiled { condition, message, uses_old } = self.compiled.as_ref()?;
        let mut variables = vec![("self", this.clone())];
        match before {
            before if self.optional_old_self => variables.push(("oldSelf", cel::optional(before.cloned()))),
            Some(before) => variables.push(("oldSelf", before.clone())),
            None if *uses_old => return None,
            None => {}
        }
        // How messages about the rule itself name it.
        let known_as = Some(self.message.trim()).filter(|message| !message.is_empty()).unwrap_or(self.rule.trim());
        let why = match cel::evaluate(condition, &variables) {
            Ok(CelValue::Bool(true)) => return None,
            // A rule broken before this update, by the same value, does not stop the update.
            Ok(CelValue::Bool(false)) if unchanged && !uses_old => return None,
            Ok(CelValue::Bool(false)) => {
                let told = message.as_ref().and_then(|message| cel::evaluate(message, &variables).ok());
                return Some(self.refusal(schema, value, path, told));
            }
            Ok(_) => format!("cel expression must evaluate to a bool evaluating rule: {known_as}"),
            Err(why) if why == NO_SUCH_OVERLOAD => format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {known_as}"
            ),
            Err(why) => format!("{why} evaluating rule: {known_as}"),
        };
        let field = if path.is_empty() { "<nil>" } else { path }.to_owned();
        let detail = format!("Invalid value: \"{}\": {why}", json_type(value));
        Some(FieldError { kind: FieldErrorKind::Invalid, field, detail })
    }

    /// `told` is what the message expression gave; the message stands in for one that says nothing.
    fn refusal(&self, schema: &Schema, value: &Value, path: &str, told: Option<CelValue>) -> FieldError {
        let told = match &told {
            Some(CelValue::String(text)) => text.trim(),
            _ => "",
        };
        let detail = match self.message.trim() {
            _ if !told.is_empty() && !told.contains('\n') => told.to_owned(),
            "" => format!("failed rule: {}", self.rule.trim()),
            message => message.to_owned(),
        };
        let field = match self.field_path.trim_start_matches('.') {
            "" if path.is_empty() => "<nil>".to_owned(),
            "" => path.to_owned(),
            below => join(path, below),
        };
        // Objects and lists are not repeated in the message.
        let omitted = matches!(schema.kind, Type::Object | Type::Array);
        match self.reason.as_str() {
            "FieldValueRequired" => FieldError::required(field, &detail),
            "FieldValueForbidden" => FieldError::forbidden(field, &detail),
            "FieldValueDuplicate" if omitted => {
                FieldError { kind: FieldErrorKind::Duplicate, field, detail: "Duplicate value".to_owned() }
            }
            "FieldValueDuplicate" => FieldError::duplicate(field, value),
            _ if omitted => {
                FieldError { kind: FieldErrorKind::Invalid, field, detail: format!("Invalid value: {detail}") }
            }
            _ => FieldError::invalid(field, value, &detail),
        }
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
