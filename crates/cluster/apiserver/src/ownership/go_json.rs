//! JSON text as Go writes it: clients compare the strings that Kubernetes makes of values.

use serde_json::Value;

/// Compact, keys sorted, and with `<`, `>` and `&` escaped.
pub(super) fn print(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&']) {
        return text;
    }
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
