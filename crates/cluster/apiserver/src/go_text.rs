//! JSON values as Go prints them: Kubernetes' messages quote values so, and clients show and compare them.

use serde_json::Value;

/// What `%v` prints: `map[image:x name:web]`, `[a b]`, `<nil>`.
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => value.clone(),
        Value::Array(items) => print_list(items),
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(name, value)| format!("{name}:{}", print(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

pub(crate) fn print_list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(print).collect();
    format!("[{}]", items.join(" "))
}

/// What Go's encoder writes: compact, keys sorted, and with `<`, `>` and `&` escaped.
pub(crate) fn json(value: &Value) -> String {
    escaped(&value.to_string())
}

pub(crate) fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The name of the Go type that a decoded value has.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go's decoder says of a value that does not fit the type `wanted`.
pub(crate) fn cannot_decode(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        let value = json!({"name": "web", "image": null, "ports": [{"port": 80}, 1.5, true], "env": {}});
        assert_eq!(print(&value), "map[env:map[] image:<nil> name:web ports:[map[port:80] 1.5 true]]");
    }
}
