//! The declarations in the templates of workloads, validated when their author writes them: their pods are not refused.

use boathook_api::{Declarations, declaration::Mistake};
use boathook_runtime::webhook::{Ask, refuse};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::{api::DynamicObject, core::admission::AdmissionResponse};

use super::pod_declarations::{is_controlled, warn};

/// Where a template is: in most workloads, and in a CronJob.
const TEMPLATES: [&str; 2] = ["/spec/template", "/spec/jobTemplate/spec/template"];

/// Refuses a new mistake. A mistake that the template had before, and one in an object that a controller writes, such as
/// the ReplicaSet of a Deployment, gets a warning: refusing it would stop a workload that runs.
pub(super) fn review(ask: &Ask) -> AdmissionResponse {
    let Some(object) = &ask.object else { return AdmissionResponse::from(ask) };
    let Some(mistake) = mistake(object) else { return AdmissionResponse::from(ask) };
    let had_it = ask.old_object.as_ref().and_then(self::mistake).is_some_and(|before| before == mistake);
    match had_it || is_controlled(&object.metadata) {
        true => warn(ask, &mistake),
        false => refuse(ask, 422, "Invalid", format!("in the pod template: {mistake}")),
    }
}

fn mistake(object: &DynamicObject) -> Option<Mistake> {
    let template = TEMPLATES.iter().find_map(|place| object.data.pointer(place))?;
    // A template newer than these types: the executor reads the pod again.
    let PodTemplateSpec { metadata, spec } = serde_json::from_value(template.clone()).ok()?;
    let pod = Pod { metadata: metadata.unwrap_or_default(), spec, status: None };
    Declarations::of_pod(&pod).err()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::test_asks::ask;

    const GOOD: &str = "[{name: reload, handler: {signal: HUP}}]";
    const BROKEN: &str = "[{name: reload, handler: {signal: 1}}]";

    fn template(text: &str, image: &str) -> Value {
        json!({"metadata": {"annotations": {"notifiers.boathook.dev/main": text}},
            "spec": {"containers": [{"name": "main", "image": image}]}})
    }

    fn workload(template: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "db"}, "spec": {"template": template}})
    }

    #[test]
    fn new_mistake_in_a_template_is_refused() {
        let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "db"},
            "spec": {"jobTemplate": {"spec": {"template": template(BROKEN, "a")}}}});
        let good = workload(&template(GOOD, "a"));
        for (operation, object, before) in [
            ("CREATE", workload(&template(BROKEN, "a")), None),
            ("UPDATE", workload(&template(BROKEN, "a")), Some(good.clone())),
            ("CREATE", cron_job, None),
        ] {
            let refused = review(&ask(operation, Some(object), before));
            assert_eq!((refused.allowed, refused.result.code), (false, 422), "{refused:?}");
            assert!(
                refused.result.message.contains("template: annotation `notifiers.boathook.dev/main`"),
                "{refused:?}"
            );
        }
        let fine = review(&ask("CREATE", Some(good), None));
        assert!(fine.allowed && fine.warnings.is_none(), "{fine:?}");
    }

    #[test]
    fn old_mistake_in_a_template_gets_a_warning() {
        let before = workload(&template(BROKEN, "a"));
        let answer = review(&ask("UPDATE", Some(workload(&template(BROKEN, "b"))), Some(before)));
        assert!(answer.allowed && answer.warnings.is_some_and(|warnings| warnings[0].contains("handler.signal")));
    }

    #[test]
    fn broken_replica_set_of_a_deployment_gets_a_warning() {
        let mut controlled = workload(&template(BROKEN, "a"));
        controlled["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "1", "controller": true}]);
        let answer = review(&ask("CREATE", Some(controlled), None));
        assert!(answer.allowed && answer.warnings.is_some(), "{answer:?}");
    }
}
