//! Whether hooks can be frozen in the time that a request has.

use boathook_api::{
    Declarations, ExecutionHookTemplate, action::DEFAULT_TIMEOUT_SECONDS, application_snapshot::ExecutionHookInfo,
    pod::containers, selector,
};
use boathook_runtime::in_time;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt, api::ListParams, core::SelectorExt};

use crate::application_snapshot::mounting;

/// A hook that a request asks for: where, and what.
type Wanted = (ExecutionHookInfo, ExecutionHookTemplate);

/// Says why not. How long a notifier may take stands with the pods that declare it, which are looked at if there is one.
pub async fn fits(
    client: &Client,
    namespace: &str,
    claim: &str,
    hooks: &[Wanted],
    seconds: u64,
) -> Result<Result<(), String>, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = match hooks.iter().all(|(_, template)| template.spec.pre_action.is_inline()) {
        true => vec![],
        false => in_time(pods.list(&ListParams::default())).await?.items,
    };
    Ok(check(hooks, claim, &pods, seconds))
}

/// Hooks freeze one after the other, the pods of one at once.
fn check(hooks: &[Wanted], claim: &str, pods: &[Pod], seconds: u64) -> Result<(), String> {
    let longest = |(info, template): &Wanted| {
        let action = &template.spec.pre_action;
        match &action.notifier {
            None => u64::try_from(action.action_timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS)).unwrap_or_default(),
            Some(notifier) => {
                pods.iter().filter_map(|pod| declared(info, claim, pod, notifier)).max().unwrap_or_default()
            }
        }
    };
    let needed: u64 = hooks.iter().map(longest).sum();
    if needed <= seconds {
        return Ok(());
    }
    let names: Vec<_> = hooks.iter().map(|(_, template)| format!("`{}`", template.name_any())).collect();
    Err(format!(
        "the PreActions of {} may take {needed} s, but this request allows {seconds} s: shorten their \
         actionTimeoutSeconds (for a notifier, timeoutSeconds in its declaration), or create an ApplicationSnapshot, \
         which has no such limit",
        names.join(", ")
    ))
}

/// How long the notifier may take in the containers of this pod that the hook runs in. What is wrong there, the hook says.
fn declared(info: &ExecutionHookInfo, claim: &str, pod: &Pod, notifier: &str) -> Option<u64> {
    let declared = Declarations::of_pod(pod).ok()?;
    let meant = meant(info, claim, pod);
    let of_meant = declared.of(notifier).filter(|(container, _)| meant.iter().any(|name| name == container));
    of_meant.map(|(_, notifier)| notifier.action.timeout.as_secs()).max()
}

/// The containers of this pod that the hook runs in.
fn meant(info: &ExecutionHookInfo, claim: &str, pod: &Pod) -> Vec<String> {
    match (&info.pod_container_names_list, &info.pod_selector) {
        (Some(list), _) => {
            let of_pod = list.iter().filter(|one| one.pod_name == pod.name_any());
            of_pod.flat_map(|one| one.container_names.clone()).collect()
        }
        (None, Some(labels)) => {
            let selected = selector::parse(labels).is_ok_and(|selector| selector.matches(pod.labels()));
            match &info.container_selector {
                _ if !selected => vec![],
                Some(one) => vec![one.container_name.clone()],
                None => containers(pod),
            }
        }
        (None, None) => mounting(pod, claim).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hook(name: &str, pre_action: Value) -> Wanted {
        at(name, pre_action, json!({}))
    }

    fn at(name: &str, pre_action: Value, mut place: Value) -> Wanted {
        place["executionHookTemplateName"] = json!(name);
        let template =
            ExecutionHookTemplate::new(name, serde_json::from_value(json!({"preAction": pre_action})).unwrap());
        (serde_json::from_value(place).unwrap(), template)
    }

    /// Its container `db` mounts a claim, and its notifier `freeze` may take so long; a sidecar's may take 100 s.
    fn pod(name: &str, claim: &str, seconds: u32) -> Pod {
        let notifier = |seconds: u32| {
            format!("[{{name: freeze, handler: {{exec: {{command: [sync]}}}}, timeoutSeconds: {seconds}}}]")
        };
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": name}, "annotations": {
                "notifiers.boathook.dev/db": notifier(seconds), "notifiers.boathook.dev/proxy": notifier(100)}},
            "spec": {"nodeName": "node", "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
                "containers": [{"name": "db", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}, {"name": "proxy"}]},
            "status": {"phase": "Running"},
        }))
        .unwrap()
    }

    #[test]
    fn what_may_take_longer_than_the_request_is_refused() {
        let twenty = hook("slow", json!({"exec": {"command": ["sync"]}, "actionTimeoutSeconds": 20}));
        let ten = hook("default", json!({"exec": {"command": ["sync"]}}));
        assert_eq!(check(&[ten.clone(), ten.clone()], "data", &[], 20), Ok(()));
        let refused = check(&[twenty, ten], "data", &[], 27).unwrap_err();
        for words in ["`slow`, `default`", "30 s", "27 s", "ApplicationSnapshot"] {
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn a_notifier_takes_as_long_as_it_is_declared_to_where_the_hook_runs() {
        let pods = [pod("one", "data", 9), pod("two", "data", 15), pod("other", "other", 40)];
        let notifier = json!({"notifier": "freeze"});
        for (place, seconds) in [
            (json!({}), 15),
            (json!({"podSelector": {"matchLabels": {"app": "one"}}, "containerSelector": {"containerName": "db"}}), 9),
            (json!({"podSelector": {"matchLabels": {"app": "one"}}}), 100),
            (json!({"podContainerNamesList": [{"podName": "other", "containerNames": ["db"]}]}), 40),
            (json!({"podSelector": {"matchLabels": {"app": "none"}}}), 0),
        ] {
            let hooks = [at("declared", notifier.clone(), place.clone())];
            assert_eq!(check(&hooks, "data", &pods, seconds), Ok(()), "{place}");
            let refused = seconds.checked_sub(1).map(|less| check(&hooks, "data", &pods, less).is_err());
            assert_ne!(refused, Some(false), "{place}");
        }
    }
}
