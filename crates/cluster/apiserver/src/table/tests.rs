//! Every printer against what Kubernetes 1.35 printed of the same object: `observed.json` holds the objects
//! (trimmed of what no cell reads), the rows and the time of the look.

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Deserialize)]
struct Observed {
    now: String,
    object: Value,
    cells: Value,
    #[serde(default)]
    conditions: Value,
}

#[derive(Deserialize)]
struct Fixtures {
    /// Name, type, format and priority of each column, by `apiVersion` and kind.
    columns: std::collections::BTreeMap<String, Value>,
    rows: Vec<Observed>,
}

fn fixtures() -> Fixtures {
    serde_json::from_str(include_str!("observed.json")).expect("observed.json is valid")
}

fn printer(object: &Value) -> Printer {
    let (group, _) = object::api_version(object).split_once('/').unwrap_or(("", ""));
    match group {
        "printing.example.com" => Printer::of_custom(Some(&widget_columns())),
        group => Printer::of_builtin(group, object::kind(object)),
    }
}

fn widget_columns() -> Vec<Column> {
    let of = |&(name, kind, path, priority): &(&str, &str, &str, i64)| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        json_path: path.to_owned(),
        priority,
        ..Column::default()
    };
    [
        ("Phase", "string", ".status.phase", 0),
        ("N", "integer", ".spec.n", 0),
        ("Share", "number", ".spec.share", 0),
        ("On", "boolean", ".spec.on", 1),
        ("Seen", "date", ".status.seen", 0),
        ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status", 0),
        ("First", "string", ".spec.list[0].name", 0),
        ("Last", "string", ".spec.list[-1].name", 0),
        ("All", "string", ".spec.list[*].name", 0),
        ("Map", "string", ".spec.map", 0),
        ("Label", "string", ".metadata.labels.app\\.kubernetes\\.io/name", 0),
        ("Brackets", "string", ".metadata.labels['a.b']", 0),
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Bad", "integer", ".status.phase", 0),
        ("Odd", "string", ".spec.n", 0),
        ("Frac", "integer", ".spec.share", 0),
        ("BadDate", "date", ".status.phase", 0),
        ("Bools", "string", ".spec.on", 0),
        ("Float", "string", ".spec.share", 0),
        ("Whole", "string", ".spec.list", 0),
    ]
    .iter()
    .map(of)
    .collect()
}

#[test]
fn every_object_is_printed_as_kubernetes_prints_it() {
    for Observed { now, object, cells, conditions } in fixtures().rows {
        let now = now.parse().expect("a time");
        let table = printer(&object).one(&object, Include::None, now);
        let what = format!("{} {}", object::kind(&object), object::name(&object));
        assert_eq!(table["rows"][0]["cells"], cells, "{what}");
        assert_eq!(table["rows"][0]["conditions"], conditions, "{what}");
    }
}

#[test]
fn every_kind_has_the_columns_that_kubernetes_gives_it() {
    let Fixtures { columns, rows } = fixtures();
    for Observed { object, .. } in rows {
        let kind = format!("{} {}", object::api_version(&object), object::kind(&object));
        let definitions = printer(&object).columns();
        let shown = definitions.as_array().expect("a list").iter();
        let shown: Value = shown.map(|it| json!([it["name"], it["type"], it["format"], it["priority"]])).collect();
        assert_eq!(shown, columns[&kind], "{kind}");
    }
}

#[test]
fn a_row_includes_as_much_of_its_object_as_was_asked_for() {
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let printer = Printer::of_builtin("", "ConfigMap");
    let included = |include| printer.one(&map, include, Timestamp::UNIX_EPOCH)["rows"][0]["object"].clone();
    assert_eq!(included(Include::Object), map);
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}});
    assert_eq!(included(Include::Metadata), partial);
    assert_eq!(included(Include::None), Value::Null);
}

#[test]
fn the_end_of_the_initial_events_is_told_even_without_objects() {
    let bookmark = json!({"metadata": {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}});
    let table = Printer::of_builtin("", "Pod").event(&bookmark, Include::None, Timestamp::UNIX_EPOCH, false);
    assert_eq!(table["rows"][0]["object"]["metadata"], bookmark["metadata"]);
    let cells = json!(["", "0/0", "", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>"]);
    assert_eq!(table["rows"][0]["cells"], cells);
    assert_eq!(table["columnDefinitions"], Value::Null);
}

#[test]
fn a_list_keeps_its_metadata_and_has_columns_when_it_is_empty() {
    let metadata = json!({"resourceVersion": "5", "continue": "x", "remainingItemCount": 2});
    let table = Printer::of_custom(None).list([], metadata.clone(), Include::default(), Timestamp::UNIX_EPOCH);
    assert_eq!(table["metadata"], metadata);
    assert_eq!(table["rows"], json!([]));
    assert_eq!(table["columnDefinitions"][1]["name"], "Age");
}

#[test]
fn an_unknown_inclusion_is_refused() {
    let error = Include::parse("Foo").expect_err("no such value");
    let wanted = "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": \
                  must be 'Metadata', 'Object', 'None', or empty";
    assert_eq!(error.message, wanted);
}
