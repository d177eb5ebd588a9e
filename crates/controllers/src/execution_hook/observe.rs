//! What a decision needs to know: the template and the pods of a hook that nobody has accepted, the PodNotifications of
//! one that is.

use boathook_api::{
    ApplicationSnapshot, Declarations, ExecutionHook, ExecutionHookTemplate, PodNotification,
    execution_hook::ExecutionHookSpec, pod::containers,
};
use boathook_decide::{
    application_snapshot,
    execution_hook::{Pod, Selection, Surroundings, child_name, is_accepted, pinned_pods, selection},
};
use boathook_runtime::{Classified, ErrorClass, in_time, lenient::Lenient};
use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::Time};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams, runtime::reflector::ObjectRef};
use snafu::{ResultExt, Snafu};

use super::Controller;
use crate::{author_check::was_checked, owner};

/// Pods are listed in pages of this many.
const PAGE: u32 = 500;

#[derive(Debug, Snafu)]
pub enum ObserveError {
    #[snafu(display("failed to get ExecutionHookTemplate `{name}`"))]
    Template { name: String, source: kube::Error },
    #[snafu(display("failed to get pod `{name}`"))]
    Pod { name: String, source: kube::Error },
    #[snafu(display("failed to list the pods of namespace `{namespace}`"))]
    Pods { namespace: String, source: kube::Error },
    #[snafu(display("failed to get the ApplicationSnapshot of ExecutionHook `{name}`"))]
    Snapshot { name: String, source: kube::Error },
    #[snafu(display("failed to get PodNotification `{name}`"))]
    Child { name: String, source: kube::Error },
    #[snafu(display("failed to get the webhooks' configuration"))]
    Webhooks { source: kube::Error },
}

impl Classified for ObserveError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Template { source, .. }
            | Self::Pod { source, .. }
            | Self::Pods { source, .. }
            | Self::Child { source, .. }
            | Self::Snapshot { source, .. }
            | Self::Webhooks { source } => source.class(),
        }
    }
}

/// Whether it was made for a snapshot that does not freeze any more.
pub(super) async fn is_late(controller: &Controller, object: &ExecutionHook) -> Result<bool, ObserveError> {
    if is_accepted(object) {
        return Ok(false);
    }
    let late = owner::has_let_go(&controller.client, object, application_snapshot::is_freezing).await;
    late.context(SnapshotSnafu { name: object.name_any() })
}

/// Whether the ApplicationSnapshot that made a deleted hook has not recorded yet that the hook is thawed.
pub(super) async fn is_awaited(controller: &Controller, object: &ExecutionHook) -> Result<bool, ObserveError> {
    let is_held = object.metadata.deletion_timestamp.is_some() && !object.finalizers().is_empty();
    let Some(owner) = owner::of::<ApplicationSnapshot>(object).filter(|_| is_held) else { return Ok(false) };
    let awaits = |snapshot: &Lenient<ApplicationSnapshot>| {
        snapshot.0.as_ref().is_ok_and(|snapshot| application_snapshot::awaits_end_of(snapshot, object))
    };
    let namespace = object.namespace().unwrap_or_default();
    let by_watch = controller
        .snapshots
        .get(&ObjectRef::new(&owner.name).within(&namespace))
        .is_some_and(|snapshot| awaits(&snapshot));
    let thawed = object.status.as_ref().is_some_and(|status| status.post_action_succeed == Some(true));
    if !by_watch || !thawed {
        return Ok(by_watch);
    }
    // The watch may be late.
    let api: Api<Lenient<ApplicationSnapshot>> = Api::namespaced(controller.client.clone(), &namespace);
    let snapshot = in_time(api.get_opt(&owner.name)).await;
    Ok(snapshot.context(SnapshotSnafu { name: object.name_any() })?.is_some_and(|snapshot| awaits(&snapshot)))
}

pub(super) async fn observe(
    controller: &Controller,
    object: &ExecutionHook,
) -> Result<(Option<Surroundings>, Vec<PodNotification>), ObserveError> {
    match is_accepted(object) {
        false => {
            let namespace = object.namespace().unwrap_or_default();
            let mut surroundings = look_at(&controller.client, &namespace, &object.spec).await?;
            // Who wrote the actions: a template's author, or the hook's own.
            let written = surroundings.template.as_ref().map_or(object.meta(), Resource::meta);
            let checked = was_checked(&controller.client, written).await.context(WebhooksSnafu)?;
            surroundings.author_checked = checked;
            Ok((Some(surroundings), vec![]))
        }
        true => Ok((None, children(controller, object).await?)),
    }
}

/// The template that a hook names, and the pods that it selects, as they are now. Its author is taken to be checked.
pub async fn look_at(client: &Client, namespace: &str, spec: &ExecutionHookSpec) -> Result<Surroundings, ObserveError> {
    if spec.validate().is_err() {
        // It is refused for that, and there is nothing of an invalid name.
        return Ok(Surroundings { template: None, pods: vec![], author_checked: true });
    }
    let template = match &spec.execution_hook_template_name {
        Some(name) => {
            let api: Api<ExecutionHookTemplate> = Api::namespaced(client.clone(), namespace);
            in_time(api.get_opt(name)).await.context(TemplateSnafu { name })?
        }
        None => None,
    };
    let pods = match selection(spec) {
        Ok(selection) => select(client, namespace, &selection).await?,
        // It is refused for that.
        Err(_) => vec![],
    };
    Ok(Surroundings { template, pods, author_checked: true })
}

/// The pods that are selected.
pub async fn select(client: &Client, namespace: &str, selection: &Selection<'_>) -> Result<Vec<Pod>, ObserveError> {
    let api: Api<v1::Pod> = Api::namespaced(client.clone(), namespace);
    match selection {
        Selection::Names(list) => {
            let mut found: Vec<Pod> = Vec::new();
            for named in *list {
                let name = &named.pod_name;
                let pod = in_time(api.get_opt(name)).await.context(PodSnafu { name })?;
                found.extend(pod.as_ref().map(seen));
            }
            Ok(found)
        }
        Selection::Labels(selector) => {
            let mut asked = ListParams::default().labels_from(selector).limit(PAGE);
            let mut found = Vec::new();
            loop {
                let page = in_time(api.list(&asked)).await.context(PodsSnafu { namespace })?;
                found.extend(page.items.iter().map(seen));
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => asked = asked.continue_token(&token),
                    None => return Ok(found),
                }
            }
        }
    }
}

pub(crate) fn seen(pod: &v1::Pod) -> Pod {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let ready = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    Pod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        created: pod.creation_timestamp().map(|Time(time)| time).unwrap_or_default(),
        running: status.and_then(|status| status.phase.as_deref()) == Some("Running"),
        ready: ready && pod.metadata.deletion_timestamp.is_none(),
        containers: containers(pod),
        declared: Declarations::of_pod(pod).map_err(|mistake| mistake.to_string()),
    }
}

/// Those that the watch has.
pub(super) fn known_children<'a>(
    controller: &'a Controller,
    object: &'a ExecutionHook,
) -> impl Iterator<Item = PodNotification> + 'a {
    let namespace = object.namespace().unwrap_or_default();
    let pods = object.status.iter().flat_map(pinned_pods);
    pods.filter_map(move |target| {
        let name = child_name(object, &target.pod_uid);
        let known = controller.children.get(&ObjectRef::new(&name).within(&namespace));
        known.and_then(|child| child.0.as_ref().ok().cloned())
    })
}

/// As the watch has them; what it does not have is looked up, so that what is missing here does not exist.
async fn children(controller: &Controller, object: &ExecutionHook) -> Result<Vec<PodNotification>, ObserveError> {
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<PodNotification> = Api::namespaced(controller.client.clone(), &namespace);
    let mut children = Vec::new();
    for target in object.status.iter().flat_map(pinned_pods) {
        let name = child_name(object, &target.pod_uid);
        let known = controller.children.get(&ObjectRef::new(&name).within(&namespace));
        match known.and_then(|child| child.0.as_ref().ok().cloned()) {
            Some(child) => children.push(child),
            None => children.extend(in_time(api.get_opt(&name)).await.context(ChildSnafu { name })?),
        }
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::webhooks::test_asks::client_with_kinds;

    /// As objects may be that were stored before the schema refused them: a request with such a name would fail at every
    /// try.
    #[tokio::test]
    async fn invalid_names_and_selectors_are_not_asked_for() {
        let client = client_with_kinds().await;
        let of_template = |fields: serde_json::Value| {
            let mut spec = json!({"executionHookTemplateName": "mysql"});
            for (name, value) in fields.as_object().unwrap() {
                spec[name] = value.clone();
            }
            serde_json::from_value::<ExecutionHookSpec>(spec).unwrap()
        };
        for fields in [
            json!({"podContainerNamesList": [{"podName": "db\0", "containerNames": ["main"]}]}),
            json!({"executionHookTemplateName": "My SQL", "podSelector": {}}),
            json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}),
            json!({"podSelector": {"matchLabels": {"a b": "c"}}}),
        ] {
            let found = look_at(&client, "default", &of_template(fields.clone())).await;
            let found = found.unwrap_or_else(|error| panic!("{fields}: {error}"));
            assert!(found.template.is_none() && found.pods.is_empty(), "{fields}");
        }
    }
}
