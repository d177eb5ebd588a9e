//! Deployments and ReplicaSets.

use serde_json::{Value, json};

use super::fill::{fill, fill_in};
use super::pod;
use crate::object;
use crate::status::FieldError;

pub(crate) fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    drop_zero(spec, &["paused", "minReadySeconds"]);
    fill(spec, "replicas", json!(1));
    fill(spec, "revisionHistoryLimit", json!(10));
    fill(spec, "progressDeadlineSeconds", json!(600));
    fill(spec, "strategy", json!({}));
    let strategy = &mut spec["strategy"];
    fill(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        fill(strategy, "rollingUpdate", json!({}));
        fill(&mut strategy["rollingUpdate"], "maxUnavailable", json!("25%"));
        fill(&mut strategy["rollingUpdate"], "maxSurge", json!("25%"));
    }
    default_template(spec);
}

pub(crate) fn default_replica_set(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        drop_zero(spec, &["minReadySeconds"]);
        fill(spec, "replicas", json!(1));
        default_template(spec);
    }
    fill_in(object, "status", "replicas", json!(0));
}

/// Of these, zero and false are how the native type says nothing.
fn drop_zero(spec: &mut Value, fields: &[&str]) {
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|field, value| !fields.contains(&field.as_str()) || (*value != 0 && *value != false));
    }
}

fn default_template(spec: &mut Value) {
    if let Some(template) = spec.pointer_mut("/template/spec") {
        pod::default_spec(template);
    }
}

/// What Deployments and ReplicaSets have in common.
pub(crate) fn validate_replica_set(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = object.pointer("/spec").unwrap_or(&Value::Null);
    if let Some(replicas) = spec.get("replicas").filter(|replicas| replicas.as_i64().is_some_and(|count| count < 0)) {
        errors.push(FieldError::invalid("spec.replicas", replicas, super::NOT_NEGATIVE));
    }
    validate_selector(object, spec, errors);
    let template = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    pod::validate_spec(template, "spec.template.spec", errors);
    match template.get("restartPolicy") {
        Some(policy) if policy != "Always" => {
            let field = "spec.template.spec.restartPolicy";
            errors.push(FieldError::not_supported(field, policy, &["Always"]));
        }
        _ => {}
    }
    if let Some(seconds) = spec.get("minReadySeconds").filter(|seconds| seconds.as_i64().is_some_and(|count| count < 0))
    {
        errors.push(FieldError::invalid("spec.minReadySeconds", seconds, super::NOT_NEGATIVE));
    }
}

pub(crate) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    validate_replica_set(object, errors);
    let spec = object.pointer("/spec").unwrap_or(&Value::Null);
    let strategy = spec.pointer("/strategy").unwrap_or(&Value::Null);
    if strategy["type"] == "Recreate" && !strategy["rollingUpdate"].is_null() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden("spec.strategy.rollingUpdate", detail));
    }
    let rolling = &strategy["rollingUpdate"];
    let is_zero = |value: &Value| *value == 0 || *value == "0%";
    if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(
            "spec.strategy.rollingUpdate.maxUnavailable",
            &rolling["maxUnavailable"],
            detail,
        ));
    }
    if !matches!(object::text(strategy, "/type"), "Recreate" | "RollingUpdate") {
        let mut wrong = FieldError::not_supported("spec.strategy", &Value::Null, &["Recreate", "RollingUpdate"]);
        // Quoted whole and in the order in which the native type is written.
        let quoted = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", strategy["type"]);
        wrong.detail = wrong.detail.replacen("null", &quoted, 1);
        errors.push(wrong);
    }
    let number = |field: &str| spec[field].as_i64().unwrap_or(0);
    if number("progressDeadlineSeconds") <= number("minReadySeconds") {
        let (field, value) = ("spec.progressDeadlineSeconds", &spec["progressDeadlineSeconds"]);
        errors.push(FieldError::invalid(field, value, "must be greater than minReadySeconds"));
    }
}

/// A selector must be there and pick the template's own pods.
fn validate_selector(object: &Value, spec: &Value, errors: &mut Vec<FieldError>) {
    let selector = &spec["selector"];
    let is_empty = |field: &str| match &selector[field] {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else if is_empty("matchLabels") && is_empty("matchExpressions") {
        let kind = object::kind(object).to_lowercase();
        let detail = format!("empty selector is invalid for {kind}");
        return errors.push(FieldError::invalid("spec.selector", selector, &detail));
    }
    let template = spec.pointer("/template").unwrap_or(&Value::Null);
    let labels: Vec<(&str, &str)> = object::labels(template).collect();
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let missing =
        wanted.filter(|(key, value)| !labels.iter().any(|(k, v)| k == key && Some(*v) == value.as_str())).count();
    // No selector selects nothing.
    if missing > 0 || selector.is_null() {
        let shown = template.pointer("/metadata/labels").cloned().unwrap_or(Value::Null);
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", &shown, detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(selector: Value, strategy: Value) -> Value {
        json!({"kind": "Deployment", "spec": {"selector": selector, "strategy": strategy, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "host"}]}}}})
    }

    fn mistakes(mut object: Value) -> Vec<String> {
        default(&mut object);
        let mut errors = Vec::new();
        validate(&object, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_plain_deployment_rolls_by_a_quarter() {
        let mut object = deployment(json!({"matchLabels": {"app": "web"}}), Value::Null);
        default(&mut object);
        assert_eq!(object["spec"]["strategy"]["rollingUpdate"], json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
        assert_eq!(object["spec"]["template"]["spec"]["restartPolicy"], "Always");
        assert!(mistakes(object).is_empty());
    }

    #[test]
    fn a_selector_that_misses_its_own_pods_is_refused() {
        let told = mistakes(deployment(json!({"matchLabels": {"app": "db"}}), Value::Null));
        assert_eq!(
            told,
            [
                "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`"
            ]
        );
        assert_eq!(mistakes(deployment(Value::Null, Value::Null))[0], "spec.selector: Required value");
    }

    #[test]
    fn a_rollout_that_could_never_move_is_refused() {
        let strategy = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}});
        let told = mistakes(deployment(json!({"matchLabels": {"app": "web"}}), strategy));
        assert!(told[0].ends_with("may not be 0 when `maxSurge` is 0"), "{told:?}");
    }
}
