//! What a decision needs to know, in this order: the VolumeSnapshots, then everything that tells whether it was frozen
//! when they were cut.

use std::collections::HashSet;

use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, Phase, SnapshotReference, SnapshotSource},
    selector,
};
use boathook_decide::{
    Leadership,
    application_snapshot::{AtTheCut, Claim, Observed, Present, SeenSnapshot, Surroundings, snapshot_name},
    execution_hook::pinned_pods,
};
use boathook_runtime::{Classified, ErrorClass, in_time, lenient::Lenient};
use futures::{
    TryFutureExt,
    future::{try_join, try_join_all},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt, api::ListParams, core::SelectorExt, runtime::reflector::ObjectRef};
use snafu::{ResultExt, Snafu};

use super::{
    Controller,
    claims::{ClaimsError, claims_and_pods, look_at_claims, used},
    classes::missing_class,
    snapshots,
};
use crate::author_check::was_checked;

/// So many PodNotifications at a time.
const PAGE: u32 = 500;

/// Everything stays frozen while they are read, and 20,000 are more than anybody keeps in one namespace.
const MOST_PAGES: usize = 40;

#[derive(Debug, Snafu)]
#[snafu(visibility(pub(super)))]
pub enum ObserveError {
    #[snafu(transparent)]
    Claims { source: ClaimsError },
    #[snafu(display("failed to get VolumeSnapshot `{name}`"))]
    Snapshot { name: String, source: kube::Error },
    #[snafu(display("failed to get VolumeSnapshotContent `{name}`"))]
    Content { name: String, source: kube::Error },
    #[snafu(display("failed to get ExecutionHookTemplate `{name}`"))]
    Template { name: String, source: kube::Error },
    #[snafu(display("failed to get the webhooks' configuration"))]
    Webhooks { source: kube::Error },
    #[snafu(display("failed to list the VolumeSnapshotClasses"))]
    Classes { source: kube::Error },
    #[snafu(display("failed to get ExecutionHook `{name}`"))]
    Hook { name: String, source: kube::Error },
    #[snafu(display("failed to get ApplicationSnapshot `{name}`"))]
    Sharer { name: String, source: kube::Error },
    #[snafu(display("failed to list the {kind} of namespace `{namespace}`"))]
    List { kind: &'static str, namespace: String, source: kube::Error },
}

impl Classified for ObserveError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Claims { source } => source.class(),
            Self::Snapshot { source, .. }
            | Self::Content { source, .. }
            | Self::Template { source, .. }
            | Self::Classes { source }
            | Self::Webhooks { source }
            | Self::Hook { source, .. }
            | Self::Sharer { source, .. }
            | Self::List { source, .. } => source.class(),
        }
    }
}

pub(super) async fn observe<'a>(
    controller: &'a Controller,
    leadership: Leadership,
    object: &'a ApplicationSnapshot,
) -> Result<Observed<'a>, ObserveError> {
    let status = object.status.clone().unwrap_or_default();
    let namespace = object.namespace().unwrap_or_default();
    let (mut surroundings, mut others) = (None, vec![]);
    let names: Vec<_> = match status.phase {
        Phase::Pending => {
            let found;
            (found, others) = look_around(controller, &namespace, object).await?;
            let claims = &found.claims;
            let names = claims.iter().map(|claim| snapshot_name(object, &claim.name, claims.len())).collect();
            surroundings = Some(found);
            names
        }
        _ => status.snapshots.iter().map(|record| record.volume_snapshot_name.clone()).collect(),
    };
    let snapshots = snapshots::look_at(controller, object, &names).await?;
    let all_cut = status.phase == Phase::Cutting && snapshots.len() == names.len() && snapshots.iter().all(is_cut);
    if status.phase != Phase::Pending {
        others = sharers(controller, &namespace, &status, all_cut).await?;
    }
    let (hooks, at_the_cut) = match all_cut && status.consistency.is_none() {
        true => {
            let (hooks, at_the_cut) = at_the_cut(controller, &namespace, object, &status, &others).await?;
            (hooks, Some(at_the_cut))
        }
        false => (hooks(controller, &namespace, &status, false).await?, None),
    };
    let is_first_look = status.phase == Phase::Freezing && status.shares_freeze_of.is_none() && hooks.is_empty();
    let present = match is_first_look && !status.hooks.is_empty() {
        true => {
            let client = &controller.surroundings.client;
            let (notifications, and_more) = notifications(client, &namespace, |_| true).await?;
            Some(Present { notifications, and_more })
        }
        false => None,
    };
    let refused = controller.refusals.of(object);
    let identity = &controller.surroundings.identity;
    Ok(Observed { object, identity, leadership, surroundings, snapshots, refused, hooks, others, present, at_the_cut })
}

fn is_cut(snapshot: &SeenSnapshot) -> bool {
    snapshot.cut && snapshot.ours
}

async fn look_around(
    controller: &Controller,
    namespace: &str,
    object: &ApplicationSnapshot,
) -> Result<(Surroundings, Vec<ApplicationSnapshot>), ObserveError> {
    let client = &controller.surroundings.client;
    if object.spec.validate().is_err() {
        // It is refused for that, and there is nothing of an invalid name.
        let nothing = Surroundings {
            claims: vec![],
            missing_templates: vec![],
            missing_class: None,
            before: None,
            author_checked: true,
        };
        return Ok((nothing, vec![]));
    }
    let (claims, _) = look_at_claims(client, namespace, &object.spec.source).await?;
    let templates: Api<ExecutionHookTemplate> = Api::namespaced(client.clone(), namespace);
    let mut missing_templates = Vec::new();
    for info in &object.spec.execution_hook_infos {
        let name = &info.execution_hook_template_name;
        if in_time(templates.get_opt(name)).await.context(TemplateSnafu { name })?.is_none() {
            missing_templates.push(name.clone());
        }
    }
    let class = object.spec.volume_snapshot_class_name.as_deref();
    let missing_class = missing_class(client, class).await.context(ClassesSnafu)?;
    let before = before(client, namespace, object, &claims).await?;
    let names = before.first().map(ResourceExt::name_any);
    let author_checked = author_checked(client, object).await.context(WebhooksSnafu)?;
    Ok((Surroundings { claims, missing_templates, missing_class, before: names, author_checked }, before))
}

/// An author whose snapshot has hooks needs the right to create hooks. One that the webhook makes for a VolumeSnapshot is
/// not told apart: nothing on it proves that.
async fn author_checked(client: &Client, object: &ApplicationSnapshot) -> Result<bool, kube::Error> {
    Ok(object.spec.execution_hook_infos.is_empty() || was_checked(client, &object.metadata).await?)
}

/// Other snapshots that share a claim and are under way, or came first. Not from the watch: what has just begun counts.
pub async fn before(
    client: &Client,
    namespace: &str,
    object: &ApplicationSnapshot,
    claims: &[Claim],
) -> Result<Vec<ApplicationSnapshot>, ObserveError> {
    let api: Api<Lenient<ApplicationSnapshot>> = Api::namespaced(client.clone(), namespace);
    let kind = "ApplicationSnapshots";
    let all = in_time(api.list(&ListParams::default())).await.context(ListSnafu { kind, namespace })?;
    let others = all.items.into_iter().filter_map(|object| object.0.ok());
    let others = others.filter(|other| other.uid() != object.uid() && shares(other, claims));
    let order = |one: &ApplicationSnapshot| (one.creation_timestamp(), one.name_any());
    let before = others.filter(|other| match other.status.as_ref().map(|status| status.phase).unwrap_or_default() {
        Phase::Pending => other.metadata.deletion_timestamp.is_none() && order(other) < order(object),
        Phase::Freezing | Phase::Cutting | Phase::Thawing => true,
        Phase::ThawFailed | Phase::Complete | Phase::Failed => false,
    });
    Ok(before.collect())
}

/// The one whose freeze it shares; or, when it matters, those that share its own. Not from the watch: whether the first
/// one has begun to thaw is known at once.
async fn sharers(
    controller: &Controller,
    namespace: &str,
    status: &ApplicationSnapshotStatus,
    all_cut: bool,
) -> Result<Vec<ApplicationSnapshot>, ObserveError> {
    let api: Api<Lenient<ApplicationSnapshot>> = Api::namespaced(controller.surroundings.client.clone(), namespace);
    let needs_followers = all_cut || status.phase >= Phase::Thawing;
    let followers = status.followers.iter().filter(|_| needs_followers);
    // A thaw that failed may succeed after all, and the record of the first one says so when its hook is gone.
    let needs_first = !status.phase.is_terminal() || status.phase == Phase::ThawFailed;
    let first = status.shares_freeze_of.iter().filter(|_| needs_first);
    let mut sharers = Vec::new();
    for SnapshotReference { name, .. } in followers.chain(first) {
        let sharer = in_time(api.get_opt(name)).await.context(SharerSnafu { name })?;
        sharers.extend(sharer.and_then(|sharer| sharer.0.ok()));
    }
    Ok(sharers)
}

fn shares(other: &ApplicationSnapshot, claims: &[Claim]) -> bool {
    let SnapshotSource { persistent_volume_claim_name, .. } = &other.spec.source;
    let pinned = other.status.iter().flat_map(|status| &status.snapshots);
    let mut theirs = pinned.map(|record| &record.persistent_volume_claim_name).chain(persistent_volume_claim_name);
    match (&other.spec.source.selector, other.status.as_ref().is_some_and(|status| !status.snapshots.is_empty())) {
        // What it selects when it is its turn is not pinned yet: if it were now, it would be these.
        (Some(labels), false) => {
            // One that does not parse selects nothing, and is refused for that.
            selector::parse(labels).is_ok_and(|selector| claims.iter().any(|claim| selector.matches(&claim.labels)))
        }
        _ => theirs.any(|theirs| claims.iter().any(|claim| claim.name == *theirs)),
    }
}

/// As the watch has them; what it does not have is looked up. For the verdict all are.
async fn hooks(
    controller: &Controller,
    namespace: &str,
    status: &ApplicationSnapshotStatus,
    live: bool,
) -> Result<Vec<ExecutionHook>, ObserveError> {
    let api: Api<ExecutionHook> = Api::namespaced(controller.surroundings.client.clone(), namespace);
    let hook = async |name: &String| {
        let known = controller.surroundings.hooks.get(&ObjectRef::new(name).within(namespace)).filter(|_| !live);
        match known.and_then(|hook| hook.0.as_ref().ok().cloned()) {
            Some(hook) => Ok(Some(hook)),
            None if status.phase.is_terminal() => Ok(None),
            None => in_time(api.get_opt(name)).await.context(HookSnafu { name }),
        }
    };
    let found = try_join_all(status.execution_hook_names.iter().map(hook)).await?;
    Ok(found.into_iter().flatten().collect())
}

/// Everything stays frozen meanwhile: what does not depend on something else is looked at at once.
async fn at_the_cut(
    controller: &Controller,
    namespace: &str,
    object: &ApplicationSnapshot,
    status: &ApplicationSnapshotStatus,
    sharers: &[ApplicationSnapshot],
) -> Result<(Vec<ExecutionHook>, AtTheCut), ObserveError> {
    let client = &controller.surroundings.client;
    let frozen = async {
        let hooks = hooks(controller, namespace, status, true).await?;
        let (notifications, and_more) = match hooks.is_empty() {
            true => (vec![], false),
            false => notifications(client, namespace, of_the_freeze(&hooks, status, sharers)).await?,
        };
        Ok::<_, ObserveError>((hooks, notifications, and_more))
    };
    let has_hooks = !status.hooks.is_empty();
    let used = at_the_cut_of(client, namespace, &object.spec.source, has_hooks).err_into();
    let ((hooks, notifications, and_more), (claims, pods)) = try_join(frozen, used).await?;
    let containers = pods.iter().flat_map(running).collect();
    Ok((hooks, AtTheCut { notifications, and_more, containers, claims }))
}

/// The claims, and the pods of the namespace. With hooks only the pods are asked about: to which nodes volumes are attached
/// tells whether anything uses them, and the list of that is the whole cluster's.
async fn at_the_cut_of(
    client: &Client,
    namespace: &str,
    source: &SnapshotSource,
    has_hooks: bool,
) -> Result<(Vec<Claim>, Vec<Pod>), ClaimsError> {
    if !has_hooks {
        return look_at_claims(client, namespace, source).await;
    }
    let (claims, pods) = claims_and_pods(client, namespace, source).await?;
    Ok((used(&claims, &pods, &[]), pods))
}

/// The PodNotifications of the hooks, every other one in the pods that they freeze, and those that were recorded.
fn of_the_freeze(
    hooks: &[ExecutionHook],
    status: &ApplicationSnapshotStatus,
    sharers: &[ApplicationSnapshot],
) -> impl Fn(&PodNotification) -> bool + use<> {
    let pods = hooks.iter().filter_map(|hook| hook.status.as_ref()).flat_map(pinned_pods);
    let pods: HashSet<_> = pods.map(|pod| pod.pod_uid).collect();
    let hooks: HashSet<_> = hooks.iter().filter_map(ResourceExt::uid).collect();
    let theirs = sharers.iter().filter_map(|sharer| sharer.status.as_ref());
    let recorded = theirs.chain([status]).flat_map(|status| &status.other_notifications);
    let recorded: HashSet<_> = recorded.map(|other| other.uid.clone()).collect();
    move |one| {
        let status = one.status.as_ref();
        let uid = status.and_then(|status| status.pod_uid.as_ref()).or(one.spec.pod_uid.as_ref());
        let by_hook = one.owner_references().iter().any(|owner| hooks.contains(&owner.uid));
        let is_recorded = one.metadata.uid.as_ref().is_some_and(|uid| recorded.contains(uid));
        by_hook || is_recorded || uid.is_some_and(|uid| pods.contains(uid))
    }
}

/// Those of the namespace that matter; and whether there are more. Not from the watch: what undoes one may be an agent,
/// which knows of it before this process does.
async fn notifications(
    client: &Client,
    namespace: &str,
    matters: impl Fn(&PodNotification) -> bool,
) -> Result<(Vec<PodNotification>, bool), ObserveError> {
    let api: Api<Lenient<PodNotification>> = Api::namespaced(client.clone(), namespace);
    let (mut asked, mut found) = (ListParams::default().limit(PAGE), Vec::new());
    for _ in 0..MOST_PAGES {
        let kind = "PodNotifications";
        let page = in_time(api.list(&asked)).await.context(ListSnafu { kind, namespace })?;
        found.extend(page.items.into_iter().filter_map(|object| object.0.ok()).filter(&matters));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => asked = asked.continue_token(&token),
            None => return Ok((found, false)),
        }
    }
    Ok((found, true))
}

/// The containers of a pod that run.
fn running(pod: &Pod) -> Vec<(String, String, String)> {
    let uid = pod.uid().unwrap_or_default();
    let statuses = pod.status.iter().flat_map(|status| {
        status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten())
    });
    let running = statuses.filter(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()));
    running.filter_map(|status| Some((uid.clone(), status.name.clone(), status.container_id.clone()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    use kube::api::{Patch, PatchParams, PostParams};
    use serde_json::json;

    use super::*;
    use crate::{test_world::world, webhooks::test_asks::webhooks_answered};

    /// A client that knows which paths were asked for, on the way to another one.
    fn listening(real: Client) -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        let ask = move |request: http::Request<kube::client::Body>| {
            heard.lock().unwrap().push(request.uri().path().to_owned());
            let real = real.clone();
            async move { real.send(request).await }
        };
        (Client::new(tower::service_fn(ask), "default"), asked)
    }

    #[tokio::test]
    async fn while_something_is_frozen_the_attached_volumes_of_the_whole_cluster_are_not_listed() {
        let (client, asked) = listening(world("nothing-is-refused").await.client);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "default");
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let claim = json!({"metadata": {"name": "data"}, "spec": spec});
        claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
        let source = serde_json::from_value(json!({"persistentVolumeClaimName": "data"})).unwrap();
        for has_hooks in [true, false] {
            let (found, _) = at_the_cut_of(&client, "default", &source, has_hooks).await.unwrap();
            assert_eq!(found.iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>(), ["data"]);
            let listed = asked.lock().unwrap().iter().any(|path| path.ends_with("/volumeattachments"));
            assert_eq!(listed, !has_hooks);
        }
    }

    #[tokio::test]
    async fn snapshot_with_hooks_is_checked_only_once_the_webhooks_answer() {
        let client = world("nothing-is-refused").await.client;
        let api: Api<ApplicationSnapshot> = Api::namespaced(client.clone(), "default");
        let create = async |name: &str, infos: serde_json::Value| {
            let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": infos});
            let object = ApplicationSnapshot::new(name, serde_json::from_value(spec).unwrap());
            api.create(&PostParams::default(), &object).await.unwrap()
        };
        let hooked = create("hooked", json!([{"executionHookTemplateName": "app"}])).await;
        assert!(!author_checked(&client, &hooked).await.unwrap());
        assert!(author_checked(&client, &create("plain", json!([])).await).await.unwrap());
        webhooks_answered(&client).await;
        assert!(author_checked(&client, &hooked).await.unwrap());
    }

    #[tokio::test]
    async fn a_snapshot_that_waits_and_selects_its_claims_holds_up_none_but_those() {
        let client = world("nothing-is-refused").await.client;
        let api: Api<ApplicationSnapshot> = Api::namespaced(client.clone(), "default");
        let selecting = json!({"source": {"selector": {"matchLabels": {"app": "db"}}}, "executionHookInfos": []});
        let waiting = ApplicationSnapshot::new("a-waiting", serde_json::from_value(selecting).unwrap());
        api.create(&PostParams::default(), &waiting).await.unwrap();
        let named = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": []});
        let later = ApplicationSnapshot::new("later", serde_json::from_value(named).unwrap());
        let later = api.create(&PostParams::default(), &later).await.unwrap();
        for (app, expected) in [("db", &["a-waiting"][..]), ("web", &[])] {
            let labels = [("app".to_owned(), app.to_owned())].into();
            let claim = Claim { name: "data".to_owned(), labels, attached: false, pods: vec![], ended: vec![] };
            let before = before(&client, "default", &later, &[claim]).await.unwrap();
            assert_eq!(before.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), expected, "of `{app}`");
        }
    }

    #[tokio::test]
    async fn what_another_process_undid_in_a_frozen_pod_is_seen_at_the_cut_though_no_watch_has_told_of_it() {
        let client = world("nothing-is-refused").await.client;
        let api: Api<PodNotification> = Api::namespaced(client.clone(), "default");
        let action = json!({"exec": {"command": ["true"]}});
        for (name, pod, undo) in [("beside", "uid-0", true), ("elsewhere", "uid-1", true), ("plain", "uid-0", false)] {
            let mut spec = json!({"podName": "db", "podUID": pod, "action": action});
            if undo {
                spec["undo"] = json!({"action": action});
            }
            let one = PodNotification::new(name, serde_json::from_value(spec).unwrap());
            api.create(&PostParams::default(), &one).await.unwrap();
            let status = Patch::Merge(json!({"status": {"podUID": pod}}));
            api.patch_status(name, &PatchParams::default(), &status).await.unwrap();
        }
        let mut hook = ExecutionHook::new("hook", serde_json::from_value(json!({})).unwrap());
        let frozen = json!([{"podName": "db", "podUID": "uid-0", "containerName": "main"}]);
        hook.status = serde_json::from_value(json!({"containerExecutionHookStatuses": frozen})).unwrap();
        let matters = of_the_freeze(&[hook], &ApplicationSnapshotStatus::default(), &[]);
        let (found, and_more) = notifications(&client, "default", matters).await.unwrap();
        let names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
        assert_eq!((names, and_more), (vec!["beside".to_owned(), "plain".to_owned()], false));
    }
}
