//! `fieldRef` and `resourceFieldRef`: what a pod may be told about itself.

use std::collections::BTreeMap;

use boathook_workloads::quantity::millis;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use kube::ResourceExt;

/// A field of a pod by its path. Addresses are the caller's: they may not be in the object yet.
pub(super) fn field(pod: &Pod, path: &str) -> Result<String, String> {
    let keyed = |map: &BTreeMap<String, String>, key: &str| map.get(key).cloned().unwrap_or_default();
    if let Some((list, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        return match list {
            "metadata.labels" => Ok(keyed(pod.labels(), key)),
            "metadata.annotations" => Ok(keyed(pod.annotations(), key)),
            _ => Err(format!("unsupported fieldPath: {path}")),
        };
    }
    let spec = pod.spec.as_ref();
    match path {
        "metadata.name" => Ok(pod.name_any()),
        "metadata.namespace" => Ok(pod.namespace().unwrap_or_default()),
        "metadata.uid" => Ok(pod.uid().unwrap_or_default()),
        "metadata.labels" => Ok(quoted(pod.labels())),
        "metadata.annotations" => Ok(quoted(pod.annotations())),
        "spec.nodeName" => Ok(spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default()),
        "spec.serviceAccountName" => Ok(spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()),
        _ => Err(format!("unsupported fieldPath: {path}")),
    }
}

/// `key="value"` lines, as in a downward API volume.
fn quoted(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
}

/// A container's request or limit, in units of the divisor. Without one, what the machine has.
pub(super) fn resource_field(container: &Container, reference: &ResourceFieldSelector) -> String {
    let (kind, resource) = reference.resource.split_once('.').unwrap_or(("", ""));
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let wanted = if kind == "limits" { limits } else { requests };
    let value = wanted.and_then(|wanted| wanted.get(resource)).and_then(millis);
    let value = value.unwrap_or_else(|| if kind == "limits" { millis_of_machine(resource) } else { 0 });
    let divisor = reference.divisor.as_ref().and_then(millis).filter(|divisor| *divisor > 0).unwrap_or(1000);
    value.div_ceil(divisor).to_string()
}

fn millis_of_machine(resource: &str) -> u128 {
    match resource {
        "cpu" => 1000 * std::thread::available_parallelism().map_or(1, |count| count.get() as u128),
        "memory" => 1000 * u128::from(super::registration::memory_in_kib()) * 1024,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

    use super::*;

    #[test]
    fn labels_are_found_by_key_and_as_a_whole() {
        let mut pod = Pod::default();
        pod.metadata.labels =
            Some(BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x\"y".to_owned())]));
        assert_eq!(field(&pod, "metadata.labels['a']").unwrap(), "1");
        assert_eq!(field(&pod, "metadata.labels").unwrap(), "a=\"1\"\nb=\"x\\\"y\"");
        assert!(field(&pod, "spec.none").is_err());
    }

    #[test]
    fn a_limit_is_divided_and_rounded_up() {
        let container: Container = serde_json::from_value(serde_json::json!({
            "name": "a", "resources": {"limits": {"memory": "65Mi", "cpu": "250m"}}
        }))
        .unwrap();
        let of = |resource: &str, divisor: &str| {
            let divisor = Some(Quantity(divisor.to_owned()));
            let reference = ResourceFieldSelector { resource: resource.to_owned(), divisor, container_name: None };
            resource_field(&container, &reference)
        };
        assert_eq!(of("limits.memory", "1Mi"), "65");
        assert_eq!(of("limits.cpu", "1"), "1");
        assert_eq!(of("limits.cpu", "1m"), "250");
        assert_eq!(of("requests.cpu", "1"), "0");
    }
}
