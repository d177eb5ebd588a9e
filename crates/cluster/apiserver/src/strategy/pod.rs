//! Pods and pod templates: the defaults of `PodSpec`, and the checks that every pod passes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fill::{each, fill, fill_in};
use super::name;
use crate::object;
use crate::resource::NameRule;
use crate::status::FieldError;

pub(crate) fn default(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        default_spec(spec);
        fill(spec, "enableServiceLinks", json!(true));
        for list in ["/containers", "/initContainers"] {
            each(spec, list).for_each(request_limits);
        }
    }
    for condition in each(pod, "/status/conditions") {
        fill(condition, "lastProbeTime", Value::Null);
        fill(condition, "lastTransitionTime", Value::Null);
    }
}

/// What admission adds to pods, and to pods alone, and how a pod begins.
pub(crate) fn begin(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        fill(spec, "serviceAccountName", json!("default"));
        let account = spec["serviceAccountName"].clone();
        fill(spec, "serviceAccount", account);
        fill(spec, "priority", json!(0));
        fill(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
        let tolerated = |key: &str| {
            json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute",
                   "tolerationSeconds": 300})
        };
        fill(spec, "tolerations", json!([tolerated("not-ready"), tolerated("unreachable")]));
    }
    let class = quality(pod.pointer("/spec").unwrap_or(&Value::Null));
    fill_in(pod, "status", "phase", json!("Pending"));
    fill_in(pod, "status", "qosClass", json!(class));
}

/// The defaults of a pod's spec, in a template too.
pub(crate) fn default_spec(spec: &mut Value) {
    fill(spec, "restartPolicy", json!("Always"));
    fill(spec, "dnsPolicy", json!("ClusterFirst"));
    fill(spec, "terminationGracePeriodSeconds", json!(30));
    fill(spec, "schedulerName", json!("default-scheduler"));
    fill(spec, "securityContext", json!({}));
    for list in ["/containers", "/initContainers"] {
        for container in each(spec, list) {
            default_container(container);
        }
    }
    for volume in each(spec, "/volumes") {
        default_volume(volume);
    }
}

fn default_container(container: &mut Value) {
    fill(container, "terminationMessagePath", json!("/dev/termination-log"));
    fill(container, "terminationMessagePolicy", json!("File"));
    fill(container, "resources", json!({}));
    let policy = if is_latest(object::text(container, "/image")) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", json!(policy));
    for port in each(container, "/ports") {
        fill(port, "protocol", json!("TCP"));
    }
    for variable in each(container, "/env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            fill(field, "apiVersion", json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            default_probe(probe);
        }
    }
    for hook in ["/lifecycle/postStart/httpGet", "/lifecycle/preStop/httpGet"] {
        if let Some(get) = container.pointer_mut(hook) {
            default_http_get(get);
        }
    }
}

/// Requests default to the limits, in pods and not in templates.
fn request_limits(container: &mut Value) {
    if let Some(limits) = container.pointer("/resources/limits").cloned()
        && let Some(resources) = container.get_mut("resources")
    {
        fill(resources, "requests", json!({}));
        for (name, amount) in limits.as_object().into_iter().flatten() {
            fill(&mut resources["requests"], name, amount.clone());
        }
    }
}

fn default_probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", json!(1));
    fill(probe, "periodSeconds", json!(10));
    fill(probe, "successThreshold", json!(1));
    fill(probe, "failureThreshold", json!(3));
    if let Some(get) = probe.get_mut("httpGet") {
        default_http_get(get);
    }
}

fn default_http_get(get: &mut Value) {
    fill(get, "path", json!("/"));
    fill(get, "scheme", json!("HTTP"));
}

/// Files of these volumes are readable by all unless somebody says otherwise.
const READABLE: i32 = 0o644;

fn default_volume(volume: &mut Value) {
    let named = volume.as_object().is_some_and(|volume| volume.len() == 1);
    if named {
        fill(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            fill(source, "defaultMode", json!(READABLE));
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        fill(path, "type", json!(""));
    }
    for source in each(volume, "/projected/sources") {
        if let Some(token) = source.get_mut("serviceAccountToken") {
            fill(token, "expirationSeconds", json!(3600));
        }
        for item in each(source, "/downwardAPI/items") {
            if let Some(field) = item.get_mut("fieldRef") {
                fill(field, "apiVersion", json!("v1"));
            }
        }
    }
}

/// An image without a tag, or tagged `latest`: one that may change under its name.
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or(image);
    !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn quality(spec: &Value) -> &'static str {
    let containers: Vec<&Value> = ["/containers", "/initContainers"]
        .iter()
        .flat_map(|list| spec.pointer(list).and_then(Value::as_array).into_iter().flatten())
        .collect();
    let amount =
        |container: &Value, list: &str, name: &str| container.pointer(&format!("/resources/{list}/{name}")).cloned();
    let guaranteed = |container: &&Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(container, "limits", name);
            limit.is_some() && limit == amount(container, "requests", name)
        })
    };
    let asks = |container: &&Value| {
        ["cpu", "memory"]
            .iter()
            .any(|name| amount(container, "requests", name).is_some() || amount(container, "limits", name).is_some())
    };
    match (containers.iter().all(guaranteed), containers.iter().any(asks)) {
        (true, true) => "Guaranteed",
        (_, true) => "Burstable",
        (_, false) => "BestEffort",
    }
}

pub(crate) fn validate(pod: &Value, errors: &mut Vec<FieldError>) {
    validate_spec(pod.pointer("/spec").unwrap_or(&Value::Null), "spec", errors);
}

/// What of a pod may still change once it is made: its images, its deadline, and tolerations are added.
pub(crate) fn changes(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    const FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
        `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
        tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    let list = |pod: &Value, name: &str| pod["spec"][name].as_array().cloned().unwrap_or_default();
    for kind in ["containers", "initContainers"] {
        if list(new, kind).len() != list(old, kind).len() {
            errors.push(FieldError::forbidden(format!("spec.{kind}"), "pod updates may not add or remove containers"));
            return;
        }
    }
    let mut changed = new["spec"].clone();
    for kind in ["containers", "initContainers"] {
        for (container, old) in each(&mut changed, &format!("/{kind}")).zip(list(old, kind)) {
            container["image"] = old["image"].clone();
        }
    }
    let (kept, tolerations) = (list(old, "tolerations"), list(new, "tolerations"));
    if kept.iter().all(|toleration| tolerations.contains(toleration)) {
        restore(&mut changed, &old["spec"], "tolerations");
    }
    restore(&mut changed, &old["spec"], "activeDeadlineSeconds");
    if changed != old["spec"] {
        errors.push(FieldError::forbidden("spec", FORBIDDEN));
    }
}

fn restore(spec: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => spec[field] = value.clone(),
        None => drop(object::map_mut(spec).remove(field)),
    }
}

/// The checks of a pod's spec, in a template too; `at` is where it stands.
pub(crate) fn validate_spec(spec: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let list = |name: &str| spec.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if list("containers").is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    if !list("ephemeralContainers").is_empty() {
        // They come through a subresource, which is not served here.
        let why =
            if at == "spec" { "cannot be set on create" } else { "ephemeral containers not allowed in pod template" };
        errors.push(FieldError::forbidden(format!("{at}.ephemeralContainers"), why));
    }
    let mut volumes = BTreeSet::new();
    for (index, volume) in list("volumes").iter().enumerate() {
        let name = object::text(volume, "/name");
        if !volumes.insert(name) {
            errors.push(FieldError::duplicate(format!("{at}.volumes[{index}].name"), &json!(name)));
        }
    }
    let mut names = BTreeSet::new();
    for kind in ["initContainers", "containers"] {
        for (index, container) in list(kind).iter().enumerate() {
            let here = format!("{at}.{kind}[{index}]");
            match object::text(container, "/name") {
                "" => errors.push(FieldError::required(format!("{here}.name"), "")),
                name if !names.insert(name) => errors.push(FieldError::duplicate(format!("{here}.name"), &json!(name))),
                name => name::check(&format!("{here}.name"), name, NameRule::Label, errors),
            }
            if object::text(container, "/image").is_empty() {
                errors.push(FieldError::required(format!("{here}.image"), ""));
            }
            for (index, port) in object::list(container, "/ports").iter().enumerate() {
                let (field, port) = (format!("{here}.ports[{index}].containerPort"), &port["containerPort"]);
                match port.as_i64() {
                    None | Some(0) => errors.push(FieldError::required(field, "")),
                    Some(1..=65535) => {}
                    Some(_) => errors.push(FieldError::invalid(field, port, "must be between 1 and 65535, inclusive")),
                }
            }
            for (index, variable) in object::list(container, "/env").iter().enumerate() {
                if object::text(variable, "/name").is_empty() {
                    errors.push(FieldError::required(format!("{here}.env[{index}].name"), ""));
                }
            }
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                if let Some(probed) = container.get(probe) {
                    validate_probe(probed, &format!("{here}.{probe}"), errors);
                }
            }
            for (index, mount) in object::list(container, "/volumeMounts").iter().enumerate() {
                let name = object::text(mount, "/name");
                if !volumes.contains(name) {
                    errors.push(FieldError::not_found(format!("{here}.volumeMounts[{index}].name"), &json!(name)));
                }
            }
        }
    }
    let policy = spec.get("restartPolicy").unwrap_or(&Value::Null);
    if !matches!(policy.as_str(), Some("Always" | "OnFailure" | "Never")) {
        let field = format!("{at}.restartPolicy");
        errors.push(FieldError::not_supported(field, policy, &["Always", "OnFailure", "Never"]));
    }
}

fn validate_probe(probe: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if ["exec", "httpGet", "tcpSocket", "grpc"].iter().all(|handler| probe.get(handler).is_none()) {
        errors.push(FieldError::required(at, "must specify a handler type"));
    }
    let numbers = "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold";
    for number in numbers.split(' ').filter(|number| probe[*number].as_i64().is_some_and(|value| value < 0)) {
        errors.push(FieldError::invalid(format!("{at}.{number}"), &probe[number], super::NOT_NEGATIVE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, latest) in [("busybox", true), ("host/busybox:latest", true), ("host:5000/busybox", true)] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
        for image in ["busybox:1", "host:5000/busybox:1", "busybox@sha256:00"] {
            assert!(!is_latest(image), "{image}");
        }
    }

    #[test]
    fn a_pod_is_filled_once_and_a_second_time_changes_nothing() {
        let mut pod = json!({"spec": {"containers": [{"name": "a", "image": "host", "livenessProbe": {"httpGet": {"port": 1}}}],
                                      "volumes": [{"name": "v"}]}});
        let fill = |pod: &mut Value| {
            default(pod);
            begin(pod);
        };
        fill(&mut pod);
        assert_eq!(
            pod["spec"]["containers"][0]["livenessProbe"]["httpGet"],
            json!({"port": 1, "path": "/", "scheme": "HTTP"})
        );
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
        let once = pod.clone();
        fill(&mut pod);
        assert_eq!(pod, once);
    }

    #[test]
    fn every_mistake_of_a_pod_is_told_with_its_place() {
        let pod = json!({"spec": {"restartPolicy": "Sometimes", "ephemeralContainers": [{}], "containers": [
            {"name": "a", "image": "host"},
            {"name": "a", "volumeMounts": [{"name": "none"}]},
        ]}});
        let mut errors = Vec::new();
        validate(&pod, &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let wanted = [
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
            "spec.containers[1].name: Duplicate value: \"a\"",
            "spec.containers[1].image: Required value",
            "spec.containers[1].volumeMounts[0].name: Not found: \"none\"",
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn of_a_running_pod_only_the_image_and_the_like_may_change() {
        let old = json!({"spec": {"nodeName": "n", "containers": [{"name": "a", "image": "host", "command": ["x"]}],
                                  "tolerations": [{"key": "k"}]}});
        let refused = |change: fn(&mut Value)| {
            let (mut new, mut errors) = (old.clone(), Vec::new());
            change(&mut new["spec"]);
            changes(&new, &old, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
        };
        for change in [
            |spec: &mut Value| spec["containers"][0]["image"] = json!("other"),
            |spec: &mut Value| spec["activeDeadlineSeconds"] = json!(5),
            |spec: &mut Value| spec["tolerations"] = json!([{"key": "k"}, {"key": "l"}]),
        ] {
            assert_eq!(refused(change), "");
        }
        for change in [
            |spec: &mut Value| spec["containers"][0]["command"] = json!(["y"]),
            |spec: &mut Value| spec["nodeName"] = json!("m"),
            |spec: &mut Value| spec["tolerations"] = json!([]),
        ] {
            assert!(refused(change).starts_with("spec: Forbidden: pod updates may not change fields other than"));
        }
        let added = refused(|spec| spec["containers"] = json!([{"name": "a"}, {"name": "b"}]));
        assert_eq!(added, "spec.containers: Forbidden: pod updates may not add or remove containers");
    }

    #[test]
    fn limits_are_requested_in_pods_and_not_in_templates() {
        let limited = json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]});
        let (mut pod, mut template) = (json!({"spec": limited}), limited.clone());
        default(&mut pod);
        default_spec(&mut template);
        assert_eq!(pod.pointer("/spec/containers/0/resources/requests"), Some(&json!({"cpu": "1"})));
        assert_eq!(template.pointer("/containers/0/resources/requests"), None);
    }

    #[test]
    fn the_quality_class_follows_requests_and_limits() {
        let pod = |resources: Value| json!({"containers": [{"resources": resources}]});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(quality(&pod(json!({"limits": both, "requests": both}))), "Guaranteed");
        assert_eq!(quality(&pod(json!({"requests": {"cpu": "1"}}))), "Burstable");
        assert_eq!(quality(&pod(json!({}))), "BestEffort");
    }
}
