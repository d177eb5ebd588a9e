//! What a decision needs to know: the Deployment, its ReplicaSets and pods, and the pods of hooks. All of it is read from
//! the API server itself: what is opened or let go is never so on a cache's word.

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{StageRecord, StageState},
    words::HOOK_OF_LABEL,
};
use boathook_decide::{
    Leadership,
    deployment_lifecycle::{
        Deployment, End, HookPod, LiveHook, Observed, ReplicaSet, Starts, Strategy, is_ours, label_of, time_is_over,
    },
};
use boathook_runtime::{Classified, ErrorClass, in_time};
use jiff::Timestamp;
use k8s_openapi::{
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::{ParseExpressionError, Selector},
};
use serde::de::DeserializeOwned;
use snafu::{ResultExt, Snafu};

use super::{Controller, hook_log, hook_pods, seen};
use crate::author_check::was_checked;

/// Objects are listed in pages of this many.
const PAGE: u32 = 500;

#[derive(Debug, Snafu)]
pub enum ObserveError {
    #[snafu(display("failed to get DeploymentLifecycle `{name}`"))]
    Lifecycle { name: String, source: kube::Error },
    #[snafu(display("failed to get Deployment `{name}`"))]
    Deployment { name: String, source: kube::Error },
    #[snafu(display("failed to read Deployment `{name}`"))]
    Unreadable { name: String, source: serde_json::Error },
    #[snafu(display("failed to list the {what} of Deployment `{name}`"))]
    List { what: &'static str, name: String, source: kube::Error },
    #[snafu(display("failed to get the webhooks' configuration"))]
    Webhooks { source: kube::Error },
}

impl Classified for ObserveError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Lifecycle { source, .. }
            | Self::Deployment { source, .. }
            | Self::List { source, .. }
            | Self::Webhooks { source } => source.class(),
            Self::Unreadable { .. } => ErrorClass::Invalid,
        }
    }
}

/// The lifecycle itself, if it is still that one. By an older version of it a hook that runs would be one of a rollout
/// that is over, and be ended.
pub(super) async fn live(
    controller: &Controller,
    object: &DeploymentLifecycle,
) -> Result<Option<DeploymentLifecycle>, ObserveError> {
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    let api: Api<DeploymentLifecycle> = Api::namespaced(controller.client.clone(), &namespace);
    let found = in_time(api.get_opt(&name)).await.context(LifecycleSnafu { name: &name })?;
    Ok(found.filter(|found| found.uid() == object.uid()))
}

pub(super) async fn observe<'a>(
    controller: &Controller,
    object: &'a DeploymentLifecycle,
    leadership: Leadership,
    now: Timestamp,
) -> Result<Observed<'a>, ObserveError> {
    let (client, name) = (&controller.client, object.name_any());
    let namespace = object.namespace().unwrap_or_default();
    let author_checked = was_checked(client, object.meta()).await.context(WebhooksSnafu)?;
    let gates: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let gate = in_time(gates.get_metadata_opt(boathook_install::webhooks::NAME)).await.context(WebhooksSnafu)?;
    let mut observed = Observed {
        object,
        leadership,
        author_checked,
        gate_is_there: gate.is_some(),
        deployment: None,
        replica_sets: vec![],
        live_pods: vec![],
        hook_pods: vec![],
        refused: controller.refusals.take(object),
        starts: Starts::new(),
    };
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let of_hooks = all(&pods, labelled(&name)).await.context(ListSnafu { what: "hook pods", name: &name })?;
    // After its hooks: a version whose hook has passed is not let in when another one was wanted before that.
    let deployments: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &seen::deployments());
    let found = in_time(deployments.get_opt(&name)).await.context(DeploymentSnafu { name: &name })?;
    let sets: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &seen::replica_sets());
    let Some(found) = found else {
        if object.metadata.deletion_timestamp.is_some() {
            let all =
                all(&sets, ListParams::default()).await.context(ListSnafu { what: "ReplicaSets", name: &name })?;
            observed.replica_sets = all.iter().filter(|set| is_orphan(set, &name)).map(seen::replica_set).collect();
        }
        let gone = object.status.as_ref().and_then(|status| status.deployment_uid.clone());
        observed.hook_pods = ours(&observed, &pods, &of_hooks, gone, |_| false).await;
        return Ok(observed);
    };
    let deployment = seen::deployment(&found).context(UnreadableSnafu { name: &name })?;
    let Some(selected) = selected(&found)? else { return Ok(observed) };
    let sets = all(&sets, selected.clone()).await.context(ListSnafu { what: "ReplicaSets", name: &name })?;
    let owned = |set: &&DynamicObject| is_owned(set, &deployment);
    observed.replica_sets = sets.iter().filter(owned).map(seen::replica_set).collect();
    observed.starts = controller.starts(object, &deployment, now);
    let is_over = |record: &StageRecord| time_is_over(record, &deployment, &observed.starts, now);
    observed.hook_pods = ours(&observed, &pods, &of_hooks, Some(deployment.uid.clone()), is_over).await;
    if deployment.strategy == Strategy::Recreate {
        let pods = all(&pods, selected).await.context(ListSnafu { what: "pods", name: &name })?;
        // Another Deployment may select them too.
        let others: Vec<_> = sets.iter().filter(|set| !owned(set)).filter_map(ResourceExt::uid).collect();
        let live = pods.iter().filter(|pod| is_replica(pod, &others) && hook_pods::is_live(pod));
        observed.live_pods = live.map(ResourceExt::name_any).collect();
    }
    observed.deployment = Some(deployment);
    Ok(observed)
}

/// A Deployment, the ReplicaSets that it owns, and when it was created.
pub(super) struct Versions {
    pub(super) deployment: Deployment,
    pub(super) replica_sets: Vec<ReplicaSet>,
    pub(super) created: Option<Timestamp>,
}

pub(super) async fn versions(client: &Client, namespace: &str, name: &str) -> Result<Option<Versions>, ObserveError> {
    let deployments: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &seen::deployments());
    let found = in_time(deployments.get_opt(name)).await.context(DeploymentSnafu { name })?;
    let Some(found) = found else { return Ok(None) };
    let deployment = seen::deployment(&found).context(UnreadableSnafu { name })?;
    let Some(selected) = selected(&found)? else { return Ok(None) };
    let sets: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &seen::replica_sets());
    let sets = all(&sets, selected).await.context(ListSnafu { what: "ReplicaSets", name })?;
    let replica_sets = sets.iter().filter(|set| is_owned(set, &deployment)).map(seen::replica_set).collect();
    let created = found.metadata.creation_timestamp.map(|created| created.0);
    Ok(Some(Versions { deployment, replica_sets, created }))
}

/// The pods of hooks of this Deployment that have not ended.
pub(super) async fn live_hooks(
    client: &Client,
    namespace: &str,
    deployment: &Deployment,
    replica_sets: &[ReplicaSet],
) -> Result<Vec<LiveHook>, ObserveError> {
    let (pods, name) = (Api::<Pod>::namespaced(client.clone(), namespace), &deployment.name);
    let labelled = all(&pods, labelled(name)).await.context(ListSnafu { what: "hook pods", name })?;
    let owners: Vec<_> = replica_sets.iter().map(|set| &set.uid).chain([&deployment.uid]).cloned().collect();
    let live = labelled.iter().filter(|pod| is_ours(pod, name, &owners) && hook_pods::is_live(pod));
    let seen = |pod: &Pod| LiveHook {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        deleted: pod.metadata.deletion_timestamp.is_some(),
    };
    Ok(live.map(seen).collect())
}

fn labelled(deployment: &str) -> ListParams {
    ListParams::default().labels(&format!("{HOOK_OF_LABEL}={}", label_of(deployment)))
}

/// Whether a DeploymentLifecycle of this name exists.
pub(super) async fn lifecycle_exists(client: &Client, namespace: &str, name: &str) -> Result<bool, ObserveError> {
    let api: Api<DeploymentLifecycle> = Api::namespaced(client.clone(), namespace);
    let found = in_time(api.get_metadata_opt(name)).await.context(LifecycleSnafu { name })?;
    Ok(found.is_some())
}

/// What a Deployment selects; nothing if its selector does not parse, which the API server does not let through.
fn selected(deployment: &DynamicObject) -> Result<Option<ListParams>, ObserveError> {
    let selector = serde_json::from_value(deployment.data["spec"]["selector"].clone());
    let selector: LabelSelector = selector.context(UnreadableSnafu { name: deployment.name_any() })?;
    let selector: Result<Selector, ParseExpressionError> = selector.try_into();
    Ok(selector.ok().map(|selector| ListParams::default().labels_from(&selector)))
}

fn is_owned(set: &DynamicObject, deployment: &Deployment) -> bool {
    set.owner_references().iter().any(|owner| owner.uid == deployment.uid && owner.controller == Some(true))
}

/// Left behind by a Deployment of this name that was deleted without what it owned.
fn is_orphan(set: &DynamicObject, deployment: &str) -> bool {
    let named = set.name_any().rsplit_once('-').is_some_and(|(name, _)| name == deployment);
    named && set.owner_references().iter().all(|owner| owner.controller != Some(true))
}

/// Of whichever ReplicaSet but these: one that is gone may have left pods that still end. Hooks' pods are controlled by
/// nobody.
fn is_replica(pod: &Pod, but: &[String]) -> bool {
    let mut owners = pod.owner_references().iter();
    let set = owners.find(|owner| owner.kind == "ReplicaSet" && owner.controller == Some(true));
    set.is_some_and(|set| !but.contains(&set.uid))
}

/// Those of the labelled pods that were made for hooks of this Deployment.
async fn ours(
    observed: &Observed<'_>,
    pods: &Api<Pod>,
    labelled: &[Pod],
    deployment: Option<String>,
    is_over: impl Fn(&StageRecord) -> bool,
) -> Vec<HookPod> {
    let object = observed.object;
    let owners: Vec<_> = observed.replica_sets.iter().map(|set| set.uid.clone()).chain(deployment).collect();
    let stages = object.status.iter().flat_map(|status| &status.rollout).flat_map(|rollout| &rollout.stages);
    // One that was known to be ours stays so when its owner is gone: it may still run.
    let known: Vec<_> = stages.filter_map(|record| record.pod_uid.as_ref()).collect();
    let mut found = vec![];
    for pod in labelled {
        let is_known = pod.metadata.uid.as_ref().is_some_and(|uid| known.contains(&uid));
        if !is_known && !is_ours(pod, &object.name_any(), &owners) {
            continue;
        }
        let container = hook_pods::container_name(object, pod);
        let mut seen = hook_pods::seen(pod, container);
        if is_news(object, &seen, &is_over) {
            seen.log_tail = hook_log::tail(pods, pod, container).await;
        }
        found.push(seen);
    }
    found
}

/// Whether a hook has failed once more than is written down, or is about to because its time is over.
fn is_news(object: &DeploymentLifecycle, pod: &HookPod, is_over: impl Fn(&StageRecord) -> bool) -> bool {
    let stages = object.status.iter().flat_map(|status| &status.rollout).flat_map(|rollout| &rollout.stages);
    let mut running = stages.into_iter().filter(|record| record.state == StageState::Running);
    let record = running.find(|record| record.pod.as_ref() == Some(&pod.name));
    record.is_some_and(|record| match &pod.end {
        Some(End::Failed(_) | End::Exhausted) => true,
        Some(End::Succeeded | End::Lost(_)) => false,
        None => pod.failures > record.pod_failures || is_over(record),
    })
}

async fn all<K: Clone + std::fmt::Debug + DeserializeOwned>(
    api: &Api<K>,
    asked: ListParams,
) -> Result<Vec<K>, kube::Error> {
    let (mut asked, mut found) = (asked.limit(PAGE), Vec::new());
    loop {
        let page = in_time(api.list(&asked)).await?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => asked = asked.continue_token(&token),
            None => return Ok(found),
        }
    }
}
