//! CEL rules (`x-kubernetes-validations`): compiled once per schema, evaluated per write.
//!
//! Kubernetes' type checker is only partly here ([`super::cel_check`]): unknown names and fields are refused when
//! the CRD is written, a wrong overload only when an object meets it. There are no cost limits; a rule's length is
//! limited instead, and the size of what it sees by the size of a request. A panic in the evaluator becomes an
//! error of the object.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::parser::{Expression, Parser};
use kube_cel::cel::{Context, ExecutionError, Value as CelValue};
use serde_json::Value;

use super::prune::join;
use super::validate::{json_type, old_item};
use super::{Rule, Schema, Type, cel_check, cel_optional, format};
use crate::status::{FieldError, FieldErrorKind};

/// The longest rule that is compiled, and the stack that the parser needs for the worst of that length.
const LONGEST_RULE: usize = 4096;
const PARSER_STACK: usize = 256 << 20;

/// How deep a rule may nest: Kubernetes' parser stops there too.
const DEEPEST_RULE: usize = 250;

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Kubernetes' functions, and the names of types.
pub(super) static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    // The evaluator has no types as values: their names serve for `type(self) == string`.
    context.add_function("type", |value: CelValue| type_name(&value).to_owned());
    context.add_function("dyn", |value: CelValue| Ok::<_, ExecutionError>(value));
    for name in ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"] {
        context.add_variable_from_value(name, name);
    }
    context
});

fn type_name(value: &CelValue) -> &'static str {
    match value {
        CelValue::List(_) => "list",
        CelValue::Map(_) => "map",
        CelValue::Int(_) => "int",
        CelValue::UInt(_) => "uint",
        CelValue::Float(_) => "double",
        CelValue::String(_) => "string",
        CelValue::Bytes(_) => "bytes",
        CelValue::Bool(_) => "bool",
        CelValue::Duration(_) => "google.protobuf.Duration",
        CelValue::Timestamp(_) => "google.protobuf.Timestamp",
        CelValue::Null => "null_type",
        CelValue::Function(..) | CelValue::Opaque(_) => "opaque",
    }
}

/// The compiled rules of a schema and of everything below it.
#[derive(Debug, Default)]
pub struct Rules {
    here: Vec<Compiled>,
    properties: BTreeMap<String, Rules>,
    additional: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
}

#[derive(Debug)]
struct Compiled {
    rule: Rule,
    condition: Expression,
    message: Option<Expression>,
    /// A transition rule: it compares with what was there before.
    uses_old: bool,
}

impl Rules {
    /// Compiles the rules of a schema. The fields of errors begin at the schema.
    pub fn compile(schema: &Schema) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let rules = compile(schema, "", None, &mut errors).unwrap_or_default();
        if errors.is_empty() { Ok(rules) } else { Err(errors) }
    }

    /// Which rules a value breaks, by the schema they were compiled from. Transition rules run only where there
    /// was a value before; a rule that a value broke before this update too is not held against it.
    pub fn check(&self, schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.walk(schema, value, old, "", &mut errors);
        errors
    }

    fn walk(&self, schema: &Schema, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !self.here.is_empty() {
            let this = cel_value(schema, value);
            let before = old.map(|old| cel_value(schema, old));
            for rule in &self.here {
                errors.extend(rule.judge(schema, value, &this, before.as_ref(), old == Some(value), path));
            }
        }
        match value {
            Value::Object(fields) => {
                for (field, value) in fields {
                    let old = old.and_then(|old| old.get(field));
                    if let Some(property) = schema.properties.get(field) {
                        if let Some(rules) = self.properties.get(field) {
                            rules.walk(property, value, old, &join(path, field), errors);
                        }
                    } else if let (Some(rules), Some(of)) = (&self.additional, &schema.additional) {
                        rules.walk(of, value, old, &format!("{path}[{field}]"), errors);
                    }
                }
            }
            Value::Array(items) => {
                if let (Some(rules), Some(of)) = (&self.items, &schema.items) {
                    for (index, item) in items.iter().enumerate() {
                        rules.walk(of, item, old_item(schema, item, old), &format!("{path}[{index}]"), errors);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The rules of a schema; `None` if it has none, here or below. `uncorrelatable` is the path of the list above whose
/// items have no identity over time, if there is one.
fn compile(schema: &Schema, path: &str, uncorrelatable: Option<&str>, errors: &mut Vec<FieldError>) -> Option<Rules> {
    let mut rules = Rules::default();
    for (index, rule) in schema.rules.iter().enumerate() {
        let at = join(path, &format!("x-kubernetes-validations[{index}]"));
        match Compiled::new(rule, schema, &at, uncorrelatable) {
            Ok(compiled) => rules.here.push(compiled),
            Err(wrong) => errors.extend(wrong),
        }
    }
    for (field, property) in &schema.properties {
        let at = join(path, &format!("properties[{field}]"));
        if let Some(below) = compile(property, &at, uncorrelatable, errors) {
            rules.properties.insert(field.clone(), below);
        }
    }
    if let Some(values) = &schema.additional {
        rules.additional = compile(values, &join(path, "additionalProperties"), uncorrelatable, errors).map(Box::new);
    }
    if let Some(items) = &schema.items {
        let keyed = matches!(schema.list, super::ListType::Map(_));
        let uncorrelatable = uncorrelatable.or(if keyed { None } else { Some(path) });
        rules.items = compile(items, &join(path, "items"), uncorrelatable, errors).map(Box::new);
    }
    let Rules { here, properties, additional, items } = &rules;
    let some = !here.is_empty() || !properties.is_empty() || additional.is_some() || items.is_some();
    some.then_some(rules)
}

impl Compiled {
    fn new(rule: &Rule, schema: &Schema, at: &str, uncorrelatable: Option<&str>) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        if rule.rule.trim().is_empty() {
            return Err(vec![FieldError::required(join(at, "rule"), "rule is not specified")]);
        }
        if rule.message.contains('\n') {
            errors.push(FieldError::invalid(
                join(at, "message"),
                &rule.message.clone().into(),
                "must not contain line breaks",
            ));
        }
        if rule.rule.contains('\n') && rule.message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(join(at, "message"), why));
        }
        if !rule.reason.is_empty() && !REASONS.contains(&rule.reason.as_str()) {
            errors.push(FieldError::not_supported(join(at, "reason"), &rule.reason.clone().into(), &REASONS));
        }
        if !rule.field_path.is_empty() && !cel_check::field_exists(schema, &rule.field_path) {
            let path = rule.field_path.clone().into();
            errors.push(FieldError::invalid(join(at, "fieldPath"), &path, "must be a valid path"));
        }
        let as_written = written(rule);
        let refused = |field: &str, why: String| FieldError {
            kind: FieldErrorKind::Invalid,
            field: join(at, field),
            detail: format!("Invalid value: {as_written}: {why}"),
        };
        let condition = parse(&rule.rule).and_then(|mut condition| {
            cel_optional::rewrite(&mut condition, rule.optional_old_self);
            cel_check::check(&condition, &rule.rule, schema, rule.optional_old_self)?;
            Ok(condition)
        });
        let condition = match condition {
            Ok(condition) => condition,
            Err(why) => {
                errors.push(refused("rule", format!("compilation failed: {why}")));
                return Err(errors);
            }
        };
        if cel_check::is_surely_no(&condition, schema, Type::Boolean) {
            errors.push(refused("rule", "cel expression must evaluate to a bool".to_owned()));
        }
        let uses_old = condition.references().has_variable("oldSelf");
        if let Some(list) = uncorrelatable.filter(|_| uses_old) {
            let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
            errors.push(FieldError::invalid(join(at, "rule"), &rule.rule.clone().into(), &why));
        }
        if rule.optional_old_self && !uses_old {
            let why = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(join(at, "optionalOldSelf"), &true.into(), why));
        }
        let message = match rule.message_expression.trim() {
            "" => None,
            source => {
                let message = parse(source).and_then(|mut message| {
                    cel_optional::rewrite(&mut message, rule.optional_old_self);
                    cel_check::check(&message, source, schema, rule.optional_old_self)?;
                    Ok(message)
                });
                match message {
                    Ok(message) if cel_check::is_surely_no(&message, schema, Type::String) => {
                        errors.push(refused(
                            "messageExpression",
                            "messageExpression must evaluate to a string".to_owned(),
                        ));
                        None
                    }
                    Ok(message) => Some(message),
                    Err(why) => {
                        errors
                            .push(refused("messageExpression", format!("messageExpression compilation failed: {why}")));
                        None
                    }
                }
            }
        };
        if errors.is_empty() { Ok(Self { rule: rule.clone(), condition, message, uses_old }) } else { Err(errors) }
    }

    fn judge(
        &self,
        schema: &Schema,
        value: &Value,
        this: &CelValue,
        before: Option<&CelValue>,
        unchanged: bool,
        path: &str,
    ) -> Option<FieldError> {
        if self.uses_old && before.is_none() && !self.rule.optional_old_self {
            return None;
        }
        let mut context = FUNCTIONS.new_inner_scope();
        context.add_variable_from_value("self", this.clone());
        match (self.rule.optional_old_self, before) {
            (true, Some(before)) => {
                context.add_variable_from_value("oldSelf", optional(OptionalValue::of(before.clone())))
            }
            (true, None) => context.add_variable_from_value("oldSelf", optional(OptionalValue::none())),
            (false, Some(before)) => context.add_variable_from_value("oldSelf", before.clone()),
            (false, None) => {}
        }
        let at = if path.is_empty() { "<nil>" } else { path };
        let failed = |why: String| {
            let kind = json_type(value);
            let detail = format!("Invalid value: \"{kind}\": {why}");
            Some(FieldError { kind: FieldErrorKind::Invalid, field: at.to_owned(), detail })
        };
        match evaluate(&self.condition, &context) {
            Ok(CelValue::Bool(true)) => None,
            // A rule broken before this update, by the same value, does not stop the update.
            Ok(CelValue::Bool(false)) if unchanged && !self.uses_old => None,
            Ok(CelValue::Bool(false)) => {
                let message = self.message.as_ref().and_then(|message| message_of(message, &context));
                Some(self.refusal(schema, value, path, message))
            }
            Ok(_) => failed(format!("cel expression must evaluate to a bool evaluating rule: {}", self.known_as())),
            Err(Fault::Cel(ExecutionError::NoSuchOverload)) => failed(format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {}",
                self.known_as()
            )),
            Err(fault) => failed(format!("{} evaluating rule: {}", fault.words(), self.known_as())),
        }
    }

    fn refusal(&self, schema: &Schema, value: &Value, path: &str, message: Option<String>) -> FieldError {
        let detail = message.unwrap_or_else(|| match self.rule.message.trim() {
            "" => format!("failed rule: {}", self.rule.rule.trim()),
            message => message.to_owned(),
        });
        let field = match self.rule.field_path.trim_start_matches('.') {
            "" if path.is_empty() => "<nil>".to_owned(),
            "" => path.to_owned(),
            below => join(path, below),
        };
        // Objects and lists are not repeated in the message.
        let omitted = matches!(schema.kind, Type::Object | Type::Array);
        match self.rule.reason.as_str() {
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

    /// How messages about the rule itself name it.
    fn known_as(&self) -> &str {
        match self.rule.message.trim() {
            "" => self.rule.rule.trim(),
            message => message,
        }
    }
}

/// The rule as Kubernetes prints it in the error that refuses it.
fn written(rule: &Rule) -> String {
    // Go's encoder escapes these three.
    let text = |text: &str| {
        Value::from(text).to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    };
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

/// Parses a rule. The parser's stack grows with the rule's length, evaluation's with its depth: so the one runs on
/// a large stack of its own, and the other is limited here.
fn parse(source: &str) -> Result<Expression, String> {
    if source.len() > LONGEST_RULE {
        return Err(format!("a rule longer than {LONGEST_RULE} bytes is not supported"));
    }
    let parse = || {
        let parsed = Parser::new().enable_optional_syntax(true).parse(source);
        match parsed.map_err(|errors| errors.to_string().replace("\n|", "\n |")) {
            Ok(parsed) if cel_check::depth(&parsed) > DEEPEST_RULE => {
                Err("expression recursion limit exceeded".to_owned())
            }
            parsed => parsed,
        }
    };
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, parse);
        match parser.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(_)) | Err(_) => Err("the parser gave up".to_owned()),
        }
    })
}

enum Fault {
    Cel(ExecutionError),
    Panic,
}

impl Fault {
    fn words(&self) -> String {
        match self {
            Self::Cel(ExecutionError::NoSuchKey(key)) => format!("no such key: {key}"),
            Self::Cel(ExecutionError::IndexOutOfBounds(CelValue::Int(index))) => {
                format!("index out of bounds: {index}")
            }
            Self::Cel(ExecutionError::DivisionByZero(_)) => "division by zero".to_owned(),
            Self::Cel(ExecutionError::RemainderByZero(_)) => "modulus by zero".to_owned(),
            Self::Cel(ExecutionError::Overflow(..)) => "integer overflow".to_owned(),
            Self::Cel(error) => error.to_string(),
            Self::Panic => "internal error".to_owned(),
        }
    }
}

fn evaluate(expression: &Expression, context: &Context<'_>) -> Result<CelValue, Fault> {
    match catch_unwind(AssertUnwindSafe(|| context.resolve(expression))) {
        Ok(result) => result.map_err(Fault::Cel),
        Err(_) => Err(Fault::Panic),
    }
}

/// The text of a message expression; `None` if it fails or says nothing, so that the message stands instead.
fn message_of(message: &Expression, context: &Context<'_>) -> Option<String> {
    match evaluate(message, context) {
        Ok(CelValue::String(text)) => {
            Some(text.trim().to_owned()).filter(|text| !text.is_empty() && !text.contains('\n'))
        }
        _ => None,
    }
}

fn optional(value: OptionalValue) -> CelValue {
    CelValue::Opaque(Arc::new(value))
}

/// A value as rules see it: typed by the schema, field names escaped, keys of maps as they are.
fn cel_value(schema: &Schema, value: &Value) -> CelValue {
    let of = |schema: Option<&Arc<Schema>>, value: &Value| match schema {
        Some(schema) => cel_value(schema, value),
        None => cel_value(&Schema::default(), value),
    };
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) if schema.kind != Type::Number => CelValue::Int(integer),
            _ => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => typed_text(schema, text),
        Value::Array(items) => {
            CelValue::List(Arc::new(items.iter().map(|item| of(schema.items.as_ref(), item)).collect()))
        }
        Value::Object(fields) => {
            let entry = |(field, value): (&String, &Value)| {
                let known = schema.properties.get(field);
                let key = if known.is_some() { cel_check::escape(field) } else { field.clone() };
                (Key::String(Arc::new(key)), of(known.or(schema.additional.as_ref()), value))
            };
            CelValue::Map(Map { map: Arc::new(fields.iter().map(entry).collect::<HashMap<_, _>>()) })
        }
    }
}

fn typed_text(schema: &Schema, text: &str) -> CelValue {
    use base64::Engine;
    let typed = match schema.limits.format.as_str() {
        _ if schema.kind != Type::String => None,
        "date-time" => chrono::DateTime::parse_from_rfc3339(text).ok().map(CelValue::Timestamp),
        "date" => chrono::DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")).ok().map(CelValue::Timestamp),
        "duration" => format::go_duration(text).map(|nanos| CelValue::Duration(chrono::Duration::nanoseconds(nanos))),
        "byte" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok();
            bytes.map(|bytes| CelValue::Bytes(Arc::new(bytes)))
        }
        _ => None,
    };
    typed.unwrap_or_else(|| CelValue::String(Arc::new(text.to_owned())))
}

#[cfg(test)]
#[path = "cel_tests.rs"]
mod tests;
