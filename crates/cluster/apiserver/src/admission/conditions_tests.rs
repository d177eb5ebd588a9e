use serde_json::json;

use super::*;

fn evaluate(expressions: &[&str], object: &Value, old: &Value, operation: &str) -> Match {
    let conditions: Value =
        expressions.iter().map(|expression| json!({"name": "c", "expression": expression})).collect();
    Conditions::parse(&conditions).evaluate(object, old, &json!({"operation": operation}))
}

#[test]
fn one_false_decides_whatever_else_fails() {
    let object = json!({"metadata": {}});
    let ask = |expressions: &[&str]| evaluate(expressions, &object, &Value::Null, "CREATE");
    assert_eq!(ask(&[]), Match::Yes);
    assert_eq!(ask(&["true", "request.operation == 'CREATE'"]), Match::Yes);
    assert_eq!(ask(&["object.metadata.foo == 'x'", "false"]), Match::No);
    assert_eq!(
        ask(&["object.metadata.foo == \"x\"", "true"]),
        Match::Failed("expression 'object.metadata.foo == \"x\"' resulted in error: no such key: foo".to_owned())
    );
    let Match::Failed(two) = ask(&["object.metadata.foo == 'x'", "oldObject.metadata.name != ''"]) else {
        panic!("both fail")
    };
    assert!(two.starts_with("[expression 'object.metadata.foo") && two.ends_with(']'), "{two}");
    assert!(matches!(ask(&["1"]), Match::Failed(_)));
}

#[test]
fn what_does_not_compile_counts_as_failed() {
    let answer = evaluate(&["authorizer.path('/x').check('get').allowed()"], &json!({}), &Value::Null, "CREATE");
    assert!(matches!(answer, Match::Failed(why) if why.contains("undeclared reference to 'authorizer'")));
    assert_eq!(expression_problem("object.x == request.name"), None);
    assert!(expression_problem("params.x == 1").is_some());
}

/// The gate of deployment hooks: a request is sent if the gate must hold it. The same five conditions are evaluated by
/// Kubernetes itself on a real cluster.
mod gate {
    use super::*;

    const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";

    fn conditions() -> Vec<String> {
        let annotation = |of: &str, key: &str| format!("{of}.metadata.?annotations[?'{key}'].orValue('')");
        let desired = |of: &str| annotation(of, DESIRED);
        let revision = annotation("object", "deployment.kubernetes.io/revision");
        let gate = "oldObject.metadata.?labels[?'boathook.dev/gate'].orValue('')";
        vec![
            "object.metadata.?annotations[?'boathook.dev/lifecycle'].hasValue() && object.metadata.?ownerReferences\
             .orValue([]).exists(o, o.kind == 'Deployment' && o.?controller.orValue(false))"
                .to_owned(),
            "request.operation == 'CREATE' ? object.spec.replicas > 0 : \
             object.spec.replicas != oldObject.spec.replicas"
                .to_owned(),
            format!(
                "request.operation == 'CREATE' || !(oldObject.spec.replicas > 0 && {0} != '' && {0} != {1})",
                desired("oldObject"),
                desired("object")
            ),
            format!(
                "request.operation == 'CREATE' || !(object.spec.replicas < oldObject.spec.replicas && \
                 string(object.spec.replicas) == {})",
                desired("object")
            ),
            format!(
                "request.operation == 'CREATE' || !(object.spec.replicas > oldObject.spec.replicas && \
                 {revision} != '' && {gate} in ['open.' + {revision}, 'done.' + {revision}])"
            ),
        ]
    }

    fn replica_set(replicas: i64, desired: &str, gate: &str) -> Value {
        let mut object = json!({
            "metadata": {
                "annotations": {"boathook.dev/lifecycle": "managed", "deployment.kubernetes.io/revision": "2"},
                "ownerReferences": [{"kind": "Node"}, {"kind": "Deployment", "controller": true}],
            },
            "spec": {"replicas": replicas},
        });
        if !desired.is_empty() {
            object["metadata"]["annotations"][DESIRED] = json!(desired);
        }
        if !gate.is_empty() {
            object["metadata"]["labels"] = json!({"boathook.dev/gate": gate});
        }
        object
    }

    fn held(new: &Value, old: &Value) -> bool {
        let conditions = conditions();
        let conditions: Vec<&str> = conditions.iter().map(String::as_str).collect();
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        match evaluate(&conditions, new, old, operation) {
            Match::Yes => true,
            Match::No => false,
            Match::Failed(why) => panic!("{why}"),
        }
    }

    #[test]
    fn a_managed_replica_set_is_held_when_it_is_made_with_pods() {
        assert!(held(&replica_set(3, "3", ""), &Value::Null));
        assert!(!held(&replica_set(0, "3", ""), &Value::Null));
    }

    #[test]
    fn what_is_not_managed_passes() {
        let mut foreign = replica_set(3, "3", "");
        foreign["metadata"].as_object_mut().unwrap().remove("annotations");
        assert!(!held(&foreign, &Value::Null));
        let mut own = replica_set(3, "3", "");
        own["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        assert!(!held(&own, &Value::Null));
        own["metadata"]["ownerReferences"] = json!([{"kind": "Deployment"}]);
        assert!(!held(&own, &Value::Null), "an owner that is no controller");
    }

    #[test]
    fn an_update_that_leaves_the_size_passes() {
        assert!(!held(&replica_set(3, "3", ""), &replica_set(3, "3", "")));
    }

    #[test]
    fn scaling_passes() {
        assert!(!held(&replica_set(5, "5", ""), &replica_set(3, "3", "")));
        assert!(held(&replica_set(5, "5", ""), &replica_set(0, "3", "")), "from nothing it is a rollout");
        assert!(held(&replica_set(5, "5", ""), &replica_set(3, "", "")));
    }

    #[test]
    fn a_correction_down_to_the_desired_size_passes() {
        assert!(!held(&replica_set(3, "3", ""), &replica_set(4, "3", "")));
        assert!(held(&replica_set(2, "3", ""), &replica_set(4, "3", "")));
    }

    #[test]
    fn growth_passes_once_its_own_revision_is_open() {
        for (gate, is_held) in
            [("", true), ("open.1", true), ("open.2", false), ("done.2", false), ("draining.2", true)]
        {
            let answer = held(&replica_set(2, "3", gate), &replica_set(1, "3", gate));
            assert_eq!(answer, is_held, "{gate}");
        }
        assert!(held(&replica_set(1, "3", "open.2"), &replica_set(2, "3", "open.2")), "a shrink is no growth");
    }
}
