//! What an object asks of its author: the rights to do oneself what the object has Boathook do.

use boathook_api::{
    ApplicationSnapshot, DeploymentLifecycle, ExecutionHook, ExecutionHookTemplate, HookAction, Notification,
    PodNotification,
};
use boathook_runtime::webhook::{Ask, refuse};
use kube::{Resource, core::admission::AdmissionResponse};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::access::{Access, Right};

/// The author has the rights, or the answer names the one that is missing.
pub(super) async fn review(access: &Access, ask: &Ask) -> AdmissionResponse {
    let rights = match rights(ask) {
        Ok(rights) => rights,
        // The API server has read it by the schema of a version that we do not know: nobody knows what it asks for.
        Err(why) => {
            let message = format!("failed to determine the rights that this object requires: {why}");
            return refuse(ask, 422, "Invalid", message);
        }
    };
    match access.check(ask, &rights).await {
        Ok(()) => AdmissionResponse::from(ask),
        Err(refusal) => *refusal,
    }
}

/// A change asks for the rights of the old object too: removing or weakening an action is changing it.
fn rights(ask: &Ask) -> Result<Vec<Right>, String> {
    let mut rights = Vec::new();
    for object in [&ask.object, &ask.old_object].into_iter().flatten() {
        let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
        for right in rights_to_write(&ask.resource.resource, object)? {
            if !rights.contains(&right) {
                rights.push(right);
            }
        }
    }
    Ok(rights)
}

/// What whoever writes this object of this resource must be allowed, besides writing it.
pub fn rights_to_write(kind: &str, object: Value) -> Result<Vec<Right>, String> {
    if kind == PodNotification::plural(&()) {
        let spec = written::<PodNotification>(object)?.spec;
        return Ok(if spec.is_inline() { vec![Right::Exec { pod: Some(spec.pod_name) }] } else { vec![] });
    }
    if kind == Notification::plural(&()) {
        written::<Notification>(object)?;
        return Ok(vec![Right::Notify]);
    }
    if kind == ExecutionHook::plural(&()) {
        let spec = written::<ExecutionHook>(object)?.spec;
        return Ok(of_actions(spec.pre_action.iter().chain(&spec.post_action)));
    }
    if kind == ExecutionHookTemplate::plural(&()) {
        let spec = written::<ExecutionHookTemplate>(object)?.spec;
        return Ok(of_actions([&spec.pre_action].into_iter().chain(&spec.post_action)));
    }
    if kind == ApplicationSnapshot::plural(&()) {
        let spec = written::<ApplicationSnapshot>(object)?.spec;
        return Ok(if spec.execution_hook_infos.is_empty() { vec![] } else { vec![Right::Hook] });
    }
    if kind == DeploymentLifecycle::plural(&()) {
        written::<DeploymentLifecycle>(object)?;
        return Ok(vec![Right::RunPods]);
    }
    Err(format!("Boathook's webhook does not handle `{kind}`"))
}

/// Where a hook runs is not in its actions, so its author may do it in any pod.
fn of_actions<'a>(actions: impl Iterator<Item = &'a HookAction> + Clone) -> Vec<Right> {
    let exec = actions.clone().any(HookAction::is_inline).then_some(Right::Exec { pod: None });
    let notify = actions.clone().any(|action| action.notifier.is_some()).then_some(Right::Notify);
    exec.into_iter().chain(notify).collect()
}

fn written<K: DeserializeOwned>(object: Value) -> Result<K, String> {
    serde_json::from_value(object).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
    use kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    };
    use serde_json::json;

    use super::*;
    use crate::webhooks::test_asks::{ask_about, client_with_kinds};

    fn asked(resource: &str, spec: Value) -> Vec<Right> {
        rights(&ask_about(resource, json!({"metadata": {"name": "a"}, "spec": spec}))).unwrap()
    }

    fn exec() -> Value {
        json!({"exec": {"command": ["sync"]}})
    }

    #[test]
    fn a_command_asks_for_exec_and_a_notifier_for_podnotifications() {
        let (anywhere, notifier) = (Right::Exec { pod: None }, json!({"notifier": "freeze"}));
        for (kind, pre, post, expected) in [
            ("executionhooks", exec(), None, vec![anywhere.clone()]),
            ("executionhooks", notifier.clone(), None, vec![Right::Notify]),
            ("executionhooks", notifier.clone(), Some(exec()), vec![anywhere.clone(), Right::Notify]),
            ("executionhooktemplates", json!({"tcpSocket": {"port": 1}}), None, vec![anywhere.clone()]),
            ("executionhooktemplates", exec(), Some(notifier), vec![anywhere, Right::Notify]),
        ] {
            let mut spec = json!({"preAction": pre});
            if let Some(post) = post {
                spec["postAction"] = post;
            }
            assert_eq!(asked(kind, spec.clone()), expected, "{kind} {spec}");
        }
        let action = json!({"podName": "db-0", "action": exec()});
        let undo = json!({"podName": "db-0", "notifier": "freeze", "undo": {"action": exec()}});
        for spec in [action, undo] {
            assert_eq!(asked("podnotifications", spec), [Right::Exec { pod: Some("db-0".to_owned()) }]);
        }
    }

    #[test]
    fn to_name_what_is_there_asks_for_no_more_than_to_run_it() {
        assert_eq!(asked("executionhooks", json!({"executionHookTemplateName": "mysql"})), []);
        assert_eq!(asked("podnotifications", json!({"podName": "db-0", "notifier": "freeze"})), []);
        assert_eq!(asked("notifications", json!({"selector": {}, "notifier": "reload"})), [Right::Notify]);
        let source = json!({"persistentVolumeClaimName": "data"});
        assert_eq!(asked("applicationsnapshots", json!({"source": source})), []);
        let infos = json!([{"executionHookTemplateName": "mysql"}]);
        let snapshot = json!({"source": source, "executionHookInfos": infos});
        assert_eq!(asked("applicationsnapshots", snapshot), [Right::Hook]);
    }

    #[test]
    fn change_asks_for_rights_of_old_and_new() {
        let template = |pre: Value, post: Value| json!({"metadata": {"name": "a"}, "spec": {"preAction": pre, "postAction": post}});
        let (notifier, anywhere) = (json!({"notifier": "freeze"}), Right::Exec { pod: None });
        let (commands, notifiers) = (template(exec(), exec()), template(notifier.clone(), notifier));
        for (new, old, expected) in [
            (&notifiers, &commands, vec![Right::Notify, anywhere.clone()]),
            (&commands, &notifiers, vec![anywhere.clone(), Right::Notify]),
            (&commands, &commands, vec![anywhere]),
        ] {
            let mut ask = ask_about("executionhooktemplates", new.clone());
            ask.old_object = Some(serde_json::from_value(old.clone()).unwrap());
            assert_eq!(rights(&ask).unwrap(), expected, "{old} -> {new}");
        }
    }

    #[tokio::test]
    async fn every_change_of_a_template_is_checked() {
        let client = client_with_kinds().await;
        let templates: Api<ExecutionHookTemplate> = Api::namespaced(client.clone(), "default");
        let spec = json!({"preAction": exec(), "postAction": exec(), "expirationSeconds": 30});
        let template = ExecutionHookTemplate::new("mysql", serde_json::from_value(spec).unwrap());
        templates.create(&PostParams::default(), &template).await.unwrap();
        let configuration = boathook_install::webhooks::validating("boathook", unanswered);
        Api::all(client).create(&PostParams::default(), &configuration).await.unwrap();
        for change in [
            json!({"spec": {"postAction": null}}),
            json!({"spec": {"expirationSeconds": null}}),
            json!({"spec": {"expirationSeconds": 86400}}),
            json!({"spec": {"policy": "ExecuteOnce"}}),
            json!({"spec": {"postAction": {"actionTimeoutSeconds": 1}}}),
        ] {
            let refused = templates.patch("mysql", &PatchParams::default(), &Patch::Merge(&change)).await;
            let error = refused.expect_err(&format!("{change} was not checked"));
            assert!(error.to_string().contains("template-actions.boathook.dev"), "{error}");
        }
        let label = Patch::Merge(json!({"metadata": {"labels": {"team": "db"}}}));
        templates.patch("mysql", &PatchParams::default(), &label).await.unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_not_waved_through() {
        let later = json!({"metadata": {"name": "a"}, "spec": {"preAction": ["exec"]}});
        assert!(rights(&ask_about("executionhooks", later.clone())).is_err());
        assert!(rights(&ask_about("pods", later)).unwrap_err().contains("`pods`"));
    }

    /// No server listens there.
    fn unanswered(path: &str) -> WebhookClientConfig {
        WebhookClientConfig { url: Some(format!("https://127.0.0.1:1{path}")), ..WebhookClientConfig::default() }
    }
}
