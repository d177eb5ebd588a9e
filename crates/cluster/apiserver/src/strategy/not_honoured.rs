//! Fields of pods that the node of this cluster does not act upon. They are accepted, so that manifests made for other
//! clusters can be tried here, and whoever sets them is told.

use serde_json::Value;

/// Below a pod's spec, then below each of its containers, ports, mounts and volumes. (Volumes that cannot be mounted at
/// all are told by events, as by any node.)
const OF_SPEC: &[&str] = &[
    "affinity",
    "dnsConfig",
    "hostAliases",
    "hostIPC",
    "hostPID",
    "resourceClaims",
    "runtimeClassName",
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "securityContext.seccompProfile",
    "securityContext.sysctls",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
];
const OF_CONTAINER: &[&str] = &[
    "lifecycle.stopSignal",
    "livenessProbe.grpc",
    "readinessProbe.grpc",
    "resources.limits",
    "securityContext.appArmorProfile",
    "securityContext.capabilities",
    "securityContext.privileged",
    "securityContext.procMount",
    "securityContext.seLinuxOptions",
    "securityContext.seccompProfile",
    "startupProbe.grpc",
    "volumeDevices",
];
const OF_PORT: &[&str] = &["hostPort"];
const OF_MOUNT: &[&str] = &["mountPropagation"];
const OF_VOLUME: &[&str] = &["emptyDir.medium"];

pub(crate) fn of_pod(pod: &Value) -> Vec<String> {
    of_spec(&pod["spec"], "spec")
}

pub(crate) fn of_template(object: &Value) -> Vec<String> {
    of_spec(&object["spec"]["template"]["spec"], "spec.template.spec")
}

fn of_spec(spec: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(OF_SPEC, spec, at, &mut found);
    for list in ["initContainers", "containers"] {
        for (container, at) in items(spec, list, at) {
            collect(OF_CONTAINER, container, &at, &mut found);
            items(container, "ports", &at).for_each(|(port, at)| collect(OF_PORT, port, &at, &mut found));
            items(container, "volumeMounts", &at).for_each(|(mount, at)| collect(OF_MOUNT, mount, &at, &mut found));
        }
    }
    items(spec, "volumes", at).for_each(|(volume, at)| collect(OF_VOLUME, volume, &at, &mut found));
    found
}

fn items<'a>(object: &'a Value, list: &'static str, at: &str) -> impl Iterator<Item = (&'a Value, String)> + use<'a> {
    let at = at.to_owned();
    let items = object[list].as_array().into_iter().flatten().enumerate();
    items.map(move |(index, item)| (item, format!("{at}.{list}[{index}]")))
}

/// Those that ask for something: an empty value is the same as none.
fn collect(fields: &[&str], object: &Value, at: &str, found: &mut Vec<String>) {
    let asks = |field: &&&str| match field.split('.').fold(object, |object, name| &object[name]) {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Bool(true) => true,
    };
    found.extend(fields.iter().filter(asks).map(|field| format!("{at}.{field}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_nothing_is_named_by_its_place_and_what_asks_for_nothing_is_not() {
        let pod = json!({"spec": {
            "hostPID": true, "hostIPC": false, "hostAliases": [], "securityContext": {"seccompProfile": {"type": "x"}},
            "containers": [{"resources": {"limits": {"cpu": "1"}}, "ports": [{"hostPort": 80}, {"hostPort": 0}]}, {}],
            "volumes": [{"emptyDir": {}}, {"emptyDir": {"medium": "Memory"}}],
        }});
        let wanted = [
            "spec.hostPID",
            "spec.securityContext.seccompProfile",
            "spec.containers[0].resources.limits",
            "spec.containers[0].ports[0].hostPort",
            "spec.volumes[1].emptyDir.medium",
        ];
        assert_eq!(of_pod(&pod), wanted);
        let template = json!({"spec": {"template": {"spec": {"hostPID": true}}}});
        assert_eq!(of_template(&template), ["spec.template.spec.hostPID"]);
    }
}
