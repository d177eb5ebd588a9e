//! Optional fields in CEL rules (`self.?a.b.orValue(1)`), written so that the evaluator understands them.
//!
//! It fails on `.?` where a field is absent and does not carry an optional through a plain `.field`; its optional
//! index (`[?'a']`) does both as CEL says. So the former are rewritten into the latter, once, when a rule is compiled.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

/// Rewrites an expression; says whether its value is an optional, as far as its form tells. `old_is_optional` is
/// whether `oldSelf` is one.
pub(super) fn rewrite(expression: &mut IdedExpr, old_is_optional: bool) -> bool {
    let mut inside = |part: &mut IdedExpr| rewrite(part, old_is_optional);
    match &mut expression.expr {
        Expr::Unspecified | Expr::Literal(_) => false,
        Expr::Ident(name) => name == "oldSelf" && old_is_optional,
        Expr::Select(select) => {
            let optional = inside(&mut select.operand) && !select.test;
            if optional {
                let id = expression.id;
                let field = Expr::Literal(LiteralValue::String(select.field.as_str().into()));
                let args = vec![std::mem::take(&mut *select.operand), IdedExpr { id, expr: field }];
                let func_name = operators::OPT_INDEX.to_owned();
                expression.expr = Expr::Call(CallExpr { func_name, target: None, args });
            }
            optional
        }
        Expr::Call(call) => {
            call.target.as_deref_mut().map(&mut inside);
            let of_optional = call.args.iter_mut().map(inside).collect::<Vec<_>>().first() == Some(&true);
            if call.func_name == operators::OPT_SELECT {
                call.func_name = operators::OPT_INDEX.to_owned();
            }
            call.func_name == operators::OPT_INDEX || (call.func_name == operators::INDEX && of_optional)
        }
        Expr::List(list) => {
            for element in &mut list.elements {
                inside(element);
            }
            false
        }
        Expr::Map(map) => {
            map.entries.iter_mut().for_each(|entry| rewrite_entry(&mut entry.expr, old_is_optional));
            false
        }
        Expr::Struct(fields) => {
            fields.entries.iter_mut().for_each(|entry| rewrite_entry(&mut entry.expr, old_is_optional));
            false
        }
        Expr::Comprehension(of) => {
            for part in [&mut of.iter_range, &mut of.accu_init, &mut of.loop_cond, &mut of.loop_step, &mut of.result] {
                inside(part);
            }
            false
        }
    }
}

fn rewrite_entry(entry: &mut EntryExpr, old_is_optional: bool) {
    match entry {
        EntryExpr::StructField(field) => {
            rewrite(&mut field.value, old_is_optional);
        }
        EntryExpr::MapEntry(entry) => {
            rewrite(&mut entry.key, old_is_optional);
            rewrite(&mut entry.value, old_is_optional);
        }
    }
}
