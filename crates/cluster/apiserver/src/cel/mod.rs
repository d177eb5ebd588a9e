//! CEL as Kubernetes uses it, in the rules of CRDs and in the conditions of webhooks: compiled once, evaluated often.
//!
//! Kubernetes' type checker is only partly here ([`check`]): unknown names and fields are refused when an expression is
//! written, a wrong overload only when an object meets it. There are no cost limits; an expression's length is limited
//! instead, and the size of what it sees by the size of a request. A panic in the evaluator is an error of that object.

mod check;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError};
use serde_json::Value;

pub use check::{Scope, field_exists};
pub use kube_cel::cel::Value as CelValue;
pub use kube_cel::cel::parser::Expression;

use crate::schema::{Schema, Type, go_duration};

/// The longest expression that is compiled, and the stack that the parser needs for the worst of that length.
const LONGEST: usize = 4096;
const PARSER_STACK: usize = 256 << 20;

/// How deep an expression may nest: Kubernetes' parser stops there too.
const DEEPEST: usize = 250;

/// Kubernetes' functions, and the names of types. Made once: registering them takes longer than an evaluation.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
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

/// Compiles an expression that reads the names in `scope`; tells also which schema its value has, if that is known.
pub fn compile<'a>(source: &str, scope: &Scope<'a>) -> Result<(Expression, Option<&'a Schema>), String> {
    let mut expression = parse(source)?;
    let found = check::check(&expression, source, scope)?;
    rewrite(&mut expression);
    Ok((expression, found))
}

/// The parser's stack grows with the length of the text, evaluation's with its depth: so the one runs on a large
/// stack of its own, and the other is limited here.
fn parse(source: &str) -> Result<Expression, String> {
    if source.len() > LONGEST {
        return Err(format!("an expression longer than {LONGEST} bytes is not supported"));
    }
    let parse = || {
        let parsed = Parser::new().enable_optional_syntax(true).parse(source);
        match parsed.map_err(|errors| errors.to_string().replace("\n|", "\n |")) {
            Ok(parsed) if depth(&parsed) > DEEPEST => Err("expression recursion limit exceeded".to_owned()),
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

fn depth(expression: &IdedExpr) -> usize {
    1 + parts(expression).into_iter().map(depth).max().unwrap_or_default()
}

/// The expressions that an expression is made of.
fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    fn entry(entry: &EntryExpr) -> Vec<&IdedExpr> {
        match entry {
            EntryExpr::StructField(field) => vec![&field.value],
            EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        }
    }
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => Vec::new(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|it| entry(&it.expr)).collect(),
        Expr::Struct(fields) => fields.entries.iter().flat_map(|it| entry(&it.expr)).collect(),
        Expr::Comprehension(of) => {
            vec![&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result]
        }
    }
}

fn parts_mut(expression: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    fn entry(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
        match entry {
            EntryExpr::StructField(field) => vec![&mut field.value],
            EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
        }
    }
    match &mut expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => Vec::new(),
        Expr::Select(select) => vec![&mut *select.operand],
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => map.entries.iter_mut().flat_map(|it| entry(&mut it.expr)).collect(),
        Expr::Struct(fields) => fields.entries.iter_mut().flat_map(|it| entry(&mut it.expr)).collect(),
        Expr::Comprehension(of) => {
            vec![&mut of.iter_range, &mut of.accu_init, &mut of.loop_cond, &mut of.loop_step, &mut of.result]
        }
    }
}

/// The interpreter gets three things wrong: `a.?b` fails where `b` is absent, `a.b` is `false` where `a` is no map, and
/// a plain `.field` does not carry an optional through. Indexing does all of them right: selections become it.
fn rewrite(expression: &mut IdedExpr) {
    parts_mut(expression).into_iter().for_each(rewrite);
    match &mut expression.expr {
        Expr::Select(select) if !select.test => {
            let field = Expr::Literal(LiteralValue::String(select.field.as_str().into()));
            let args = vec![std::mem::take(&mut *select.operand), IdedExpr { id: expression.id, expr: field }];
            let func_name = operators::INDEX.to_owned();
            expression.expr = Expr::Call(CallExpr { func_name, target: None, args });
        }
        Expr::Call(call) if call.func_name == operators::OPT_SELECT => {
            call.func_name = operators::OPT_INDEX.to_owned();
        }
        _ => {}
    }
}

/// Evaluates an expression over its variables. The error is in Kubernetes' words.
pub fn evaluate(expression: &Expression, variables: &[(&str, CelValue)]) -> Result<CelValue, String> {
    let mut context = FUNCTIONS.new_inner_scope();
    for (name, value) in variables {
        context.add_variable_from_value(*name, value.clone());
    }
    let result = catch_unwind(AssertUnwindSafe(|| context.resolve(expression)));
    result.map_err(|_| "internal error".to_owned())?.map_err(|error| match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload => NO_SUCH_OVERLOAD.to_owned(),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        error => error.to_string(),
    })
}

pub const NO_SUCH_OVERLOAD: &str = "no such overload";

/// A value that may be absent, as CEL's optional.
pub fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// A value as expressions see it: typed by the schema, field names escaped, keys of maps as they are.
pub fn value(schema: &Schema, json: &Value) -> CelValue {
    let of = |schema: Option<&Arc<Schema>>, json: &Value| match schema {
        Some(schema) => value(schema, json),
        None => value(&Schema::default(), json),
    };
    match json {
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
            let fields = fields.iter().map(|(field, json)| {
                let known = schema.properties.get(field);
                let key = if known.is_some() { check::escape(field) } else { field.clone() };
                (Key::String(Arc::new(key)), of(known.or(schema.additional.as_ref()), json))
            });
            CelValue::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

fn typed_text(schema: &Schema, text: &str) -> CelValue {
    let time = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok().map(CelValue::Timestamp);
    let typed = match schema.limits.format.as_str() {
        _ if schema.kind != Type::String => None,
        "date-time" => time(text),
        "date" => time(&format!("{text}T00:00:00Z")),
        "duration" => go_duration(text).map(|nanos| CelValue::Duration(chrono::Duration::nanoseconds(nanos))),
        "byte" => STANDARD.decode(text).ok().map(|bytes| CelValue::Bytes(Arc::new(bytes))),
        _ => None,
    };
    typed.unwrap_or_else(|| CelValue::String(Arc::new(text.to_owned())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluated(source: &str, object: Value) -> Result<CelValue, String> {
        let scope = Scope::from([("object".to_owned(), None)]);
        let object = value(&Schema::default(), &object);
        evaluate(&compile(source, &scope)?.0, &[("object", object)])
    }

    fn holds(source: &str, object: Value) -> bool {
        match evaluated(source, object) {
            Ok(CelValue::Bool(answer)) => answer,
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
        assert_eq!(
            evaluated("object.metadata.foo == 'x'", json!({"metadata": {}})),
            Err("no such key: foo".to_owned())
        );
        assert!(evaluated("object.metadata.name != ''", Value::Null).is_err());
        assert!(evaluated("object.a.b == 1", json!({"a": "text"})).is_err());
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
        let why = |source| evaluated(source, json!({})).unwrap_err();
        let wanted = "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^";
        assert_eq!(why("foo == 1"), wanted);
        assert!(why("authorizer.group('').check('get').allowed()").contains("'authorizer'"));
        assert!(why("object.").starts_with("ERROR: "));
        assert!(why("[1].all(i, j == i)").contains("'j'"));
    }
}
