//! Every pod acts for a service account of its namespace, and finds that account's token at a known place.

use serde_json::{Value, json};

use crate::object;
use crate::strategy::fill::each;

/// Where clients in a pod look for it.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Begins the name of the volume.
const VOLUME: &str = "kube-api-access-";

/// Gives a new pod its account's token, unless the pod or the account wants none. `suffix` makes the volume's name.
pub(crate) fn mount_token(pod: &mut Value, account: &Value, suffix: &str) {
    let setting = |object: &Value, at: &str| object.pointer(at).and_then(Value::as_bool);
    let wanted = setting(pod, "/spec/automountServiceAccountToken")
        .or_else(|| setting(account, "/automountServiceAccountToken"))
        .unwrap_or(true);
    let Some(spec) = pod.get_mut("spec").filter(|_| wanted) else { return };
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let there = volumes.map(|volume| object::text(volume, "/name")).find(|name| name.starts_with(VOLUME));
    let is_there = there.is_some();
    let name = there.map_or_else(|| format!("{VOLUME}{suffix}"), str::to_owned);
    let mut used = false;
    for list in ["/initContainers", "/containers"] {
        for container in each(spec, list) {
            let taken = each(container, "/volumeMounts").any(|mount| object::text(mount, "/mountPath") == MOUNT_PATH);
            if !taken {
                push(container, "volumeMounts", json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
                used = true;
            }
        }
    }
    if used && !is_there {
        push(spec, "volumes", volume(&name));
    }
}

fn volume(name: &str) -> Value {
    let namespace = json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        // Kubernetes' own odd number: an hour, and seven seconds by which such tokens are known.
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}})
}

fn push(object: &mut Value, list: &str, item: Value) {
    let list = object::map_mut(object).entry(list).or_insert(json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({"spec": {"initContainers": [{"name": "first"}], "containers": [
            {"name": "plain"}, {"name": "own", "volumeMounts": [{"name": "mine", "mountPath": MOUNT_PATH}]},
        ]}})
    }

    #[test]
    fn a_container_without_a_token_of_its_own_gets_the_accounts() {
        let mut pod = pod();
        mount_token(&mut pod, &json!({}), "abcde");
        let mount = json!([{"name": "kube-api-access-abcde", "readOnly": true, "mountPath": MOUNT_PATH}]);
        assert_eq!(pod["spec"]["initContainers"][0]["volumeMounts"], mount);
        assert_eq!(pod["spec"]["containers"][0]["volumeMounts"], mount);
        assert_eq!(pod["spec"]["containers"][1]["volumeMounts"][0]["name"], "mine");
        assert_eq!(pod["spec"]["volumes"].as_array().map(Vec::len), Some(1));
        let once = pod.clone();
        mount_token(&mut pod, &json!({}), "other");
        assert_eq!(pod, once);
    }

    #[test]
    fn the_pods_word_counts_more_than_its_accounts() {
        let refusing = json!({"automountServiceAccountToken": false});
        let mut silent = pod();
        mount_token(&mut silent, &refusing, "abcde");
        assert_eq!(silent, pod());
        let mut insisting = pod();
        insisting["spec"]["automountServiceAccountToken"] = true.into();
        mount_token(&mut insisting, &refusing, "abcde");
        assert!(insisting["spec"]["volumes"].is_array());
        let mut refusing = pod();
        refusing["spec"]["automountServiceAccountToken"] = false.into();
        let before = refusing.clone();
        mount_token(&mut refusing, &json!({}), "abcde");
        assert_eq!(refusing, before);
    }
}
