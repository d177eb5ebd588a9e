//! `fieldRef` and `resourceFieldRef`: what a pod may be told about itself.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
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

/// A quantity in thousandths of its unit.
pub(super) fn millis(quantity: &Quantity) -> Option<u128> {
    let text = quantity.0.as_str();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale: u128 = match unit {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole * scale;
    if !fraction.is_empty() {
        value += fraction.parse::<u128>().ok()? * scale / 10_u128.checked_pow(fraction.len().try_into().ok()?)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_their_units() {
        let of = |text: &str| millis(&Quantity(text.to_owned()));
        assert_eq!(of("250m"), Some(250));
        assert_eq!(of("1.5"), Some(1500));
        assert_eq!(of("64Mi"), Some(64 * 1024 * 1024 * 1000));
        assert_eq!(of("1x"), None);
    }

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
