//! What a decision needs to know: the object, its pod as it is now, what runs here.

use std::collections::BTreeMap;

use boathook_api::{
    ApplicationSnapshot, Declarations, ExecutionHook, PodNotification,
    outcome::Failure,
    pod::containers,
    pod_notification::{ErrorType, Executor},
};
use boathook_decide::{
    application_snapshot::{is_undecided, may_freeze},
    execution_hook,
    pod_notification::{self as decide, Me, Progress, SeenPod, Sessions, needs_pod},
};
use boathook_runtime::{Classified, ErrorClass, execution::Room, in_time, lenient::Lenient};
use futures::future::try_join;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Resource, ResourceExt, api::ListParams, runtime::reflector::ObjectRef};
use snafu::{ResultExt, Snafu};

use super::Controller;
use crate::{author_check::was_checked, owner};

/// Snapshots that freeze, by their phase: the others, which may be many, are not sent.
const UNDER_WAY: &str = "status.phase!=Pending,status.phase!=Thawing,status.phase!=Complete,status.phase!=Failed";

#[derive(Debug, Snafu)]
pub enum ObserveError {
    #[snafu(display("failed to get pod `{name}`"))]
    Pod { name: String, source: kube::Error },
    #[snafu(display("failed to get the ExecutionHook of PodNotification `{name}`"))]
    Hook { name: String, source: kube::Error },
    #[snafu(display("failed to get node `{name}`"))]
    Node { name: String, source: kube::Error },
    #[snafu(display("failed to list the ApplicationSnapshots of namespace `{namespace}`"))]
    Snapshots { namespace: String, source: kube::Error },
    #[snafu(display("failed to get the webhooks' configuration"))]
    Webhooks { source: kube::Error },
}

impl Classified for ObserveError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Pod { source, .. }
            | Self::Hook { source, .. }
            | Self::Node { source, .. }
            | Self::Snapshots { source, .. }
            | Self::Webhooks { source } => source.class(),
        }
    }
}

/// What one look found.
pub(super) struct Seen {
    pub(super) object: PodNotification,
    pub(super) pod: SeenPod,
    pub(super) run: Progress,
    pub(super) undo: Progress,
    pub(super) sessions: Sessions,
    /// Held for the handlers, in case they are started.
    pub(super) room: Option<Room>,
    pub(super) author_checked: bool,
    pub(super) undecided: Vec<ApplicationSnapshot>,
}

pub(super) async fn observe(
    controller: &Controller,
    me: Me<'_>,
    mut object: PodNotification,
) -> Result<Seen, ObserveError> {
    if !is_accepted(&object) && is_late(controller, &object).await? {
        // As if it had been revoked: whoever made it was late.
        object.spec.undo_requested = true;
    }
    let uid = object.uid().unwrap_or_default();
    let (run, undo) = controller.runs.progress(&uid);
    let sessions = controller.runs.sessions(&uid);
    let pod = async {
        match needs_pod(&object, me, &run, &undo) {
            true => look_at_pod(controller, &object).await.map(Some),
            false => Ok(None),
        }
    };
    let (pod, snapshots) = try_join(pod, snapshots_under_way(controller, &object)).await?;
    let undecided = match &pod {
        Some((_, Some(labels))) => {
            let name = &object.spec.pod_name;
            snapshots.into_iter().filter(|one| is_undecided(one) && may_freeze(one, name, Some(labels))).collect()
        }
        Some((_, None)) | None => vec![],
    };
    let pod = pod.map_or(SeenPod::Unknown, |(pod, _)| pod);
    let room = match &pod {
        SeenPod::There(decide::Pod { node: Some(node), .. }) if may_claim(controller, &object) => {
            controller.rooms.take(node, &ObjectRef::from_obj(&object))
        }
        SeenPod::There(_) | SeenPod::Gone { .. } | SeenPod::Unknown => {
            controller.rooms.leave(&ObjectRef::from_obj(&object));
            None
        }
    };
    let author_checked = author_checked(controller, &object).await?;
    Ok(Seen { object, pod, run, undo, sessions, room, author_checked, undecided })
}

/// Those of the namespace that freeze, unless it is accepted. Not from a watch: one that has just begun counts, for it did
/// not see this object.
async fn snapshots_under_way(
    controller: &Controller,
    object: &PodNotification,
) -> Result<Vec<ApplicationSnapshot>, ObserveError> {
    if is_accepted(object) {
        return Ok(vec![]);
    }
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<Lenient<ApplicationSnapshot>> = Api::namespaced(controller.client.clone(), &namespace);
    let found = in_time(api.list(&ListParams::default().fields(UNDER_WAY))).await;
    let found = found.context(SnapshotsSnafu { namespace })?;
    Ok(found.items.into_iter().filter_map(|object| object.0.ok()).collect())
}

/// Whether it is for this process to run, and has not ended.
fn may_claim(controller: &Controller, object: &PodNotification) -> bool {
    let status = object.status.as_ref();
    let executor = status.and_then(|status| status.executor).unwrap_or(controller.options.executor);
    executor == Executor::Api && status.is_none_or(|status| !status.state.is_terminal())
}

fn is_accepted(object: &PodNotification) -> bool {
    object.status.as_ref().is_some_and(|status| status.executor.is_some() || status.state.is_terminal())
}

/// Whether it was made for a hook that no longer freezes. With the feature gate off, an owner reference to a hook
/// that did not make it counts likewise: every user who may create a PodNotification can write one.
async fn is_late(controller: &Controller, object: &PodNotification) -> Result<bool, ObserveError> {
    let is_trusted = |hook: &ExecutionHook| controller.options.enabled || execution_hook::has_made(hook, object);
    let wants = |hook: &ExecutionHook| execution_hook::is_freezing(hook) && is_trusted(hook);
    let late = owner::has_let_go(&controller.client, object, wants).await;
    late.context(HookSnafu { name: object.name_any() })
}

async fn author_checked(controller: &Controller, object: &PodNotification) -> Result<bool, ObserveError> {
    let accepted = is_accepted(object);
    if accepted || !object.spec.is_inline() {
        return Ok(true);
    }
    was_checked(&controller.client, object.meta()).await.context(WebhooksSnafu)
}

type Labels = BTreeMap<String, String>;

/// The pod, and its labels if it is there. Live, not from a cache: what was re-created under the same name is another pod.
async fn look_at_pod(
    controller: &Controller,
    object: &PodNotification,
) -> Result<(SeenPod, Option<Labels>), ObserveError> {
    let name = &object.spec.pod_name;
    let pods: Api<Pod> = Api::namespaced(controller.client.clone(), &object.namespace().unwrap_or_default());
    let found = in_time(pods.get_opt(name)).await.context(PodSnafu { name })?;
    let pinned = object.status.as_ref().and_then(|status| status.pod_uid.clone());
    match found.filter(|pod| pinned.is_none() || pod.uid() == pinned) {
        Some(pod) => {
            let declared = declared(controller, object, &pod).await?;
            Ok((SeenPod::There(seen(&pod, declared)), Some(pod.labels().clone())))
        }
        None => Ok((SeenPod::Gone { node_ready: node_is_ready(controller, object).await? }, None)),
    }
}

async fn node_is_ready(controller: &Controller, object: &PodNotification) -> Result<bool, ObserveError> {
    // Without a node the pod never ran.
    let node = object.status.as_ref().and_then(|status| status.node_name.as_ref());
    let Some(name) = node else { return Ok(true) };
    let nodes: Api<Node> = Api::all(controller.client.clone());
    let node = in_time(nodes.get_opt(name)).await.context(NodeSnafu { name })?;
    let conditions = node.and_then(|node| node.status?.conditions).unwrap_or_default();
    Ok(conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}

/// What the pod's author declared. A user who may only patch pods could add a declaration before the webhooks refused
/// that, and nothing tells it from one that the pod was created with: a sandbox made again, at a restart of its node, has
/// the patched one too, and a runtime that lost the first sandbox counts the new one as the first. So an agent cannot tell
/// either, and this check is made for both executors.
async fn declared(
    controller: &Controller,
    object: &PodNotification,
    pod: &Pod,
) -> Result<Result<Declarations, Failure>, ObserveError> {
    let declared = match Declarations::of_pod(pod) {
        Ok(declared) => declared,
        Err(mistake) => return Ok(Err(mistake.into())),
    };
    let undecided = !is_accepted(object) || may_claim(controller, object) && !is_claimed(object);
    let may_run = object.spec.uses_declarations() && undecided;
    let checked = declared.iter().next().is_none()
        || !may_run
        || was_checked(&controller.client, &pod.metadata).await.context(WebhooksSnafu)?;
    Ok(match checked {
        true => Ok(declared),
        false => Err(Failure::new(ErrorType::Forbidden, unchecked_declaration(&object.spec.pod_name))),
    })
}

fn unchecked_declaration(pod: &str) -> String {
    format!(
        "pod `{pod}` was created before Boathook's webhooks answered, so a user without the right to run commands in \
         it may have added its notifiers: create the pod again (for a workload, with `kubectl rollout restart`)"
    )
}

fn is_claimed(object: &PodNotification) -> bool {
    object.status.as_ref().is_some_and(|status| status.claim.is_some())
}

fn seen(pod: &Pod, declared: Result<Declarations, Failure>) -> decide::Pod {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    decide::Pod {
        uid: pod.uid().unwrap_or_default(),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        over: matches!(phase, Some("Succeeded" | "Failed")),
        ending: pod.metadata.deletion_timestamp.is_some(),
        containers: containers(pod),
        declared,
    }
}
