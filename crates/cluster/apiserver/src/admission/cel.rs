//! CEL expressions, compiled once, evaluated over JSON.
//!
//! The interpreter underneath gets two things wrong that Kubernetes' expressions rely on: `a.?b` fails where `b` is
//! absent, and `a.b` is `false` where `a` is not a map. Indexing does both right, so selections are rewritten into it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::operators::{INDEX, OPT_INDEX, OPT_SELECT};
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value as Cel};
use serde_json::Value;

/// Made once: registering every function for each evaluation costs more than the evaluation.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// Names of types are values in CEL.
const TYPES: [&str; 9] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

#[derive(Debug)]
pub(crate) struct Expression {
    expression: IdedExpr,
    /// The variables that it reads: only these need to be converted.
    reads: BTreeSet<String>,
}

impl Expression {
    /// `variables` are those that [`Self::evaluate`] will be given.
    pub(crate) fn compile(source: &str, variables: &[&str]) -> Result<Self, String> {
        let parsed = Parser::new().enable_optional_syntax(true).parse(source);
        let mut expression = parsed.map_err(|errors| format!("compilation failed: {errors}"))?;
        let mut reads = BTreeSet::new();
        rewrite(&mut expression, &mut Vec::new(), &mut reads);
        match reads.iter().find(|name| !variables.contains(&name.as_str())) {
            Some(name) if name == "authorizer" => {
                Err("compilation failed: the variable authorizer is not supported by this cluster".to_owned())
            }
            Some(name) => Err(format!("compilation failed: undeclared reference to '{name}' (in container '')")),
            None => Ok(Self { expression, reads }),
        }
    }

    pub(crate) fn evaluate(&self, variables: &[(&str, &Value)]) -> Result<Cel, String> {
        let mut context = FUNCTIONS.new_inner_scope();
        for (name, value) in variables {
            if self.reads.contains(*name) {
                context.add_variable_from_value(*name, convert(value));
            }
        }
        Cel::resolve(&self.expression, &context).map_err(|error| match error {
            // In Kubernetes' words.
            ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
            ExecutionError::NoSuchOverload => "no such overload".to_owned(),
            error => error.to_string(),
        })
    }
}

/// Turns selections into indexing, and notes each variable that is not one of a comprehension's own (`bound`).
fn rewrite(expression: &mut IdedExpr, bound: &mut Vec<String>, reads: &mut BTreeSet<String>) {
    match &mut expression.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target
                // Of `math.greatest(1, 2)`, `math` is no variable but part of the function's name.
                && (!matches!(target.expr, Expr::Ident(_)) || !is_namespace(target))
            {
                rewrite(target, bound, reads);
            }
            for argument in &mut call.args {
                rewrite(argument, bound, reads);
            }
            if call.func_name == OPT_SELECT {
                call.func_name = OPT_INDEX.to_owned();
            }
        }
        Expr::Select(select) => {
            rewrite(&mut select.operand, bound, reads);
            if !select.test {
                let field = IdedExpr {
                    id: expression.id,
                    expr: Expr::Literal(LiteralValue::String(select.field.as_str().into())),
                };
                let args = vec![std::mem::take(&mut *select.operand), field];
                expression.expr = Expr::Call(CallExpr { func_name: INDEX.to_owned(), target: None, args });
            }
        }
        Expr::Comprehension(comprehension) => {
            rewrite(&mut comprehension.iter_range, bound, reads);
            rewrite(&mut comprehension.accu_init, bound, reads);
            let outside = bound.len();
            bound.extend([comprehension.iter_var.clone(), comprehension.accu_var.clone()]);
            bound.extend(comprehension.iter_var2.clone());
            rewrite(&mut comprehension.loop_cond, bound, reads);
            rewrite(&mut comprehension.loop_step, bound, reads);
            rewrite(&mut comprehension.result, bound, reads);
            bound.truncate(outside);
        }
        Expr::Ident(name) => {
            if !bound.contains(name) && !TYPES.contains(&name.as_str()) {
                reads.insert(name.clone());
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|element| rewrite(element, bound, reads)),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| rewrite_entry(&mut entry.expr, bound, reads)),
        Expr::Struct(of) => of.entries.iter_mut().for_each(|entry| rewrite_entry(&mut entry.expr, bound, reads)),
        Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn rewrite_entry(entry: &mut EntryExpr, bound: &mut Vec<String>, reads: &mut BTreeSet<String>) {
    match entry {
        EntryExpr::StructField(field) => rewrite(&mut field.value, bound, reads),
        EntryExpr::MapEntry(entry) => {
            rewrite(&mut entry.key, bound, reads);
            rewrite(&mut entry.value, bound, reads);
        }
    }
}

fn is_namespace(target: &IdedExpr) -> bool {
    let known = ["base64", "format", "jsonpatch", "math", "optional", "sets", "strings"];
    matches!(&target.expr, Expr::Ident(name) if known.contains(&name.as_str()))
}

fn convert(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Cel::Int(int),
            (None, Some(uint)) => Cel::UInt(uint),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(convert).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (Key::String(Arc::new(key.clone())), convert(value)));
            Cel::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(source: &str, object: Value) -> Result<Cel, String> {
        Expression::compile(source, &["object"])?.evaluate(&[("object", &object)])
    }

    fn holds(source: &str, object: Value) -> bool {
        match evaluate(source, object) {
            Ok(Cel::Bool(answer)) => answer,
            other => panic!("{source}: {other:?}"),
        }
    }

    #[test]
    fn an_optional_field_may_be_absent_at_every_step() {
        let object = json!({"data": {"a": "b"}});
        assert!(holds("object.?foo.?bar.baz.orValue('q') == 'q'", object.clone()));
        assert!(holds("object.?data.a.orValue('') == 'b'", object.clone()));
        assert!(holds("object.?data[?'a'].hasValue() && !object.?data[?'x'].hasValue()", object.clone()));
        assert!(holds("!object.data.?x.hasValue() && object.?data.?a.value() == 'b'", object.clone()));
        assert!(holds("[1, 2].exists(i, object.?data.?x.orValue(i) == 2)", object));
    }

    #[test]
    fn a_field_that_is_absent_is_an_error() {
        assert_eq!(evaluate("object.metadata.foo == 'x'", json!({"metadata": {}})), Err("no such key: foo".to_owned()));
        assert!(evaluate("object.metadata.name != ''", Value::Null).is_err());
        assert!(evaluate("object.a.b == 1", json!({"a": "text"})).is_err());
        assert!(holds("has(object.a) && !has(object.b)", json!({"a": 1})));
    }

    #[test]
    fn a_failing_side_of_a_disjunction_does_not_matter_if_the_other_decides() {
        assert!(holds("object.x == 1 || true", json!({})));
        assert!(!holds("object.x == 1 && false", json!({})));
    }

    #[test]
    fn reserved_words_and_odd_keys_are_fields_like_others() {
        let object = json!({"metadata": {"namespace": "shop", "labels": {"a.b/c-d": "e"}}});
        assert!(holds("object.metadata.namespace == 'shop' && object.metadata.labels['a.b/c-d'] == 'e'", object));
    }

    #[test]
    fn functions_of_kubernetes_are_there() {
        assert!(holds("math.greatest(1, 2) == 2 && 'a-b'.split('-').size() == 2", json!({})));
        assert!(holds("quantity('1Gi').isGreaterThan(quantity('1Mi'))", json!({})));
    }

    #[test]
    fn what_does_not_compile_says_why() {
        let why = |source| Expression::compile(source, &["object"]).unwrap_err();
        assert_eq!(why("foo == 1"), "compilation failed: undeclared reference to 'foo' (in container '')");
        assert!(why("authorizer.group('').check('get').allowed()").contains("authorizer is not supported"));
        assert!(why("object.").starts_with("compilation failed: "));
        assert!(why("[1].all(i, j == i)").contains("'j'"));
    }
}
