//! What can be known of a CEL expression before any object comes: that its names and fields exist.
//!
//! Not a type checker: where a type is not known from the schema, anything goes.

use std::collections::BTreeMap;

use kube_cel::cel::ExecutionError;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

use super::{FUNCTIONS, parts};
use crate::schema::{Schema, Type};

/// Names that stand for types, or that functions are grouped under.
const GLOBAL_NAMES: &str = "base64 bool bytes cel cidr double duration dyn format google int ip jsonpatch list map math \
    null_type optional optional_type sets string strings timestamp type uint";

/// Fields that are called so must be written otherwise.
const RESERVED: &str = "true false null in as break const continue else for function if import let loop package \
    namespace return var void while";

/// What the names in scope are, as far as it is known.
pub type Scope<'a> = BTreeMap<String, Known<'a>>;
type Known<'a> = Option<&'a Schema>;

/// Checks names and fields. The error is worded as Kubernetes' compiler does.
pub(super) fn check<'a>(expression: &IdedExpr, source: &str, scope: &Scope<'a>) -> Result<Known<'a>, String> {
    known(expression, scope).map_err(|problem| problem.at(source))
}

/// Whether a rule's `fieldPath` (`.a.b`, `.m['key']`) leads to a field below the schema.
pub fn field_exists(schema: &Schema, path: &str) -> bool {
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(inside) = rest.strip_prefix("['") {
            match inside.split_once("']") {
                Some(found) => found,
                None => return false,
            }
        } else if let Some(inside) = rest.strip_prefix('.') {
            inside.split_at(inside.find(['.', '[']).unwrap_or(inside.len()))
        } else {
            return false;
        };
        let Some(below) = schema.properties.get(name).or(schema.additional.as_ref()) else { return false };
        (schema, rest) = (below, after);
    }
    true
}

/// A field's name as rules write it.
pub(super) fn escape(field: &str) -> String {
    if RESERVED.split(' ').any(|word| word == field) {
        return format!("__{field}__");
    }
    field.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

fn is_global(name: &str) -> bool {
    GLOBAL_NAMES.split(' ').any(|global| global == name)
}

enum Problem {
    Undeclared(String),
    /// Kubernetes points at the parenthesis.
    NoFunction(String),
    NoField(String),
}

impl Problem {
    /// The problem with the place it is found at: the first that is spelt so.
    fn at(&self, source: &str) -> String {
        let (text, offset) = match self {
            Self::Undeclared(name) => {
                (format!("undeclared reference to '{name}' (in container '')"), source.find(name))
            }
            Self::NoFunction(name) => {
                let offset = source.find(&format!("{name}(")).map(|offset| offset + name.len());
                (format!("undeclared reference to '{name}' (in container '')"), offset)
            }
            Self::NoField(field) => (format!("undefined field '{field}'"), source.find(&format!(".{field}"))),
        };
        let before = &source[..offset.unwrap_or(0)];
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let drawn = source.lines().nth(line).unwrap_or_default();
        format!("ERROR: <input>:{}:{}: {text}\n | {drawn}\n | {}^", line + 1, column + 1, ".".repeat(column))
    }
}

fn known<'a>(expression: &IdedExpr, scope: &Scope<'a>) -> Result<Known<'a>, Problem> {
    match &expression.expr {
        Expr::Ident(name) => match scope.get(name) {
            Some(found) => Ok(*found),
            None if is_global(name) => Ok(None),
            None => Err(Problem::Undeclared(name.clone())),
        },
        Expr::Select(select) => match known(&select.operand, scope)? {
            // `has(a.b)` is true or false, whatever the field is.
            Some(schema) => field(schema, &select.field).map(|found| found.filter(|_| !select.test)),
            None => Ok(None),
        },
        Expr::Call(call) => {
            let found = parts(expression).into_iter().map(|part| known(part, scope)).collect::<Result<Vec<_>, _>>()?;
            let is_operator = !call.func_name.starts_with(|c: char| c.is_ascii_alphabetic());
            if !is_operator && !is_function(call) {
                return Err(Problem::NoFunction(call.func_name.clone()));
            }
            match (call.func_name.as_str(), found.first()) {
                (operators::INDEX, Some(Some(of))) => Ok(of.items.as_deref().or(of.additional.as_deref())),
                _ => Ok(None),
            }
        }
        Expr::Comprehension(of) => {
            let range = known(&of.iter_range, scope)?;
            let item = range.filter(|range| range.kind == Type::Array).and_then(|range| range.items.as_deref());
            known(&of.accu_init, scope)?;
            let mut inner = scope.clone();
            inner.insert(of.iter_var.clone(), item);
            inner.extend(of.iter_var2.iter().chain([&of.accu_var]).map(|name| (name.clone(), None)));
            [&of.loop_cond, &of.loop_step, &of.result]
                .into_iter()
                .try_for_each(|part| known(part, &inner).map(drop))?;
            Ok(None)
        }
        Expr::Unspecified | Expr::Literal(_) | Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => {
            parts(expression).into_iter().try_for_each(|part| known(part, scope).map(drop))?;
            Ok(None)
        }
    }
}

/// Whether the evaluator knows the function. It keeps no list that can be read, but says so when it is called.
fn is_function(call: &CallExpr) -> bool {
    let group = call.target.as_deref().and_then(|target| match &target.expr {
        Expr::Ident(name) if is_global(name) => Some(format!("{name}.{}", call.func_name)),
        _ => None,
    });
    let called = |name: String| {
        let expr = Expr::Call(CallExpr { func_name: name.clone(), target: None, args: Vec::new() });
        let outcome = FUNCTIONS.resolve(&IdedExpr { id: 0, expr });
        !matches!(outcome, Err(ExecutionError::UndeclaredReference(missing)) if *missing == name)
    };
    group.is_some_and(called) || called(call.func_name.clone())
}

fn field<'a>(schema: &'a Schema, name: &str) -> Result<Known<'a>, Problem> {
    let open = schema.preserve_unknown || schema.embedded || schema.kind != Type::Object;
    if let Some((_, found)) = schema.properties.iter().find(|(field, _)| escape(field) == name) {
        return Ok(Some(found));
    }
    match &schema.additional {
        Some(values) => Ok(Some(values)),
        // The root's own fields need not be declared.
        None if open || matches!(name, "apiVersion" | "kind" | "metadata") => Ok(None),
        None => Err(Problem::NoField(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_rules_cannot_spell_are_escaped() {
        assert_eq!(escape("namespace"), "__namespace__");
        assert_eq!(escape("a-b.c/d"), "a__dash__b__dot__c__slash__d");
        assert_eq!(escape("a__b"), "a__underscores__b");
        assert_eq!(escape("a_b"), "a_b");
    }

    #[test]
    fn a_field_path_must_lead_somewhere() {
        let openapi = serde_json::json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        let schema = Schema::from_openapi(&openapi).unwrap();
        for good in [".a", ".a.b", ".m['any key']", "['a'].b"] {
            assert!(field_exists(&schema, good), "{good}");
        }
        for bad in [".b", "a", ".a.c", ".a[", ".a['b"] {
            assert!(!field_exists(&schema, bad), "{bad}");
        }
    }
}
