//! The life of a scenario's namespace: made with a name that tells whose it is, usable when handed out, really gone
//! at the end. One that stays says what is left in it and why.

use std::{convert::Infallible, fmt::Write as _};

use anyhow::{Context, Result, anyhow};
use k8s_openapi::{
    ClusterResourceScope,
    api::core::v1::{Namespace, PersistentVolumeClaim, ServiceAccount},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    discovery::{Discovery, Scope, verbs},
    runtime::watcher,
};
use serde_json::json;

use crate::{
    Ctx, DEADLINE,
    ctx::TEST_LABEL,
    snapshots::VolumeSnapshot,
    watch::{Watch, Watchable},
};

/// A namespace name has 63 characters; the API server appends 5 to a `generateName`.
const LONGEST_STEM: usize = 57;

/// By which the external snapshotter holds a claim while a snapshot of it is being cut.
const SOURCE_PROTECTION: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

/// Creates the namespace of the scenario of this name, and returns its name.
pub async fn create(client: &Client, scenario: &str) -> Result<String> {
    let mut namespace = Namespace::default();
    namespace.metadata.generate_name = Some(generate_name(scenario));
    let (key, value) = TEST_LABEL;
    namespace.labels_mut().insert(key.to_owned(), value.to_owned());
    let created = Api::all(client.clone()).create(&PostParams::default(), &namespace).await;
    Ok(created.context("failed to create the scenario's namespace")?.name_any())
}

/// Waits until pods may be created there: the API server refuses them while the namespace has no default service
/// account, which a controller makes a moment later.
pub(crate) async fn usable(ctx: &Ctx) -> Result<()> {
    ctx.watch_until::<ServiceAccount>(DEADLINE, "default", "exists", |_| true).await.map(drop)
}

/// Deletes the namespace and waits until it is gone.
pub async fn destroy(client: &Client, name: &str) -> Result<()> {
    let removed = tokio::select! {
        removed = remove::<Namespace>(client.clone(), name.to_owned()) => removed,
        never = free_claims(client, name) => match never {},
    };
    match removed {
        Ok(()) => Ok(()),
        Err(error) => Err(anyhow!("{error:#}\n{}", left_in(client, name).await)),
    }
}

/// Frees claims that nobody else will: of two snapshots of one claim that go at once, the external snapshotter takes each
/// for a reason to keep its hold on the claim, and then forgets it.
async fn free_claims(client: &Client, namespace: &str) -> Infallible {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let snapshots: Api<VolumeSnapshot> = Api::namespaced(client.clone(), namespace);
    let is_stuck = |claim: &PersistentVolumeClaim| {
        claim.metadata.deletion_timestamp.is_some() && claim.finalizers() == [SOURCE_PROTECTION]
    };
    let all = watcher::Config::default;
    loop {
        let (mut claims, mut cut) = (Watch::new(api.clone(), all(), ""), Watch::new(snapshots.clone(), all(), ""));
        let stuck =
            claims.until(DEADLINE, "a claim is held by its snapshots alone", |seen| seen.now.values().any(is_stuck));
        if stuck.await.is_err() || cut.until(DEADLINE, "no snapshot is left", |seen| seen.now.is_empty()).await.is_err()
        {
            return std::future::pending().await;
        }
        let Ok(claims) = api.list(&ListParams::default()).await else { return std::future::pending().await };
        for claim in claims.items.iter().filter(|claim| is_stuck(claim)) {
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            // Gone already, or told by what is left in the namespace.
            let _ = api.patch(&claim.name_any(), &PatchParams::default(), &free).await;
        }
    }
}

/// Deletes a cluster-scoped object and waits until it is gone. One that is not there is fine.
pub(crate) async fn remove<K>(client: Client, name: String) -> Result<()>
where
    K: Watchable + Resource<Scope = ClusterResourceScope>,
{
    let api = Api::<K>::all(client);
    let kind = K::kind(&());
    match api.delete(&name, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("failed to delete {kind} `{name}`")),
    }
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let what = format!("{kind} `{name}` is gone after its deletion");
    Watch::new(api, config, &name).until(DEADLINE, &what, |seen| seen.now.is_empty()).await.map(drop)
}

/// Every object that is still in the namespace, with what holds it.
async fn left_in(client: &Client, namespace: &str) -> String {
    let mut text = format!("--- left in namespace `{namespace}`\n");
    let discovery = match tokio::time::timeout(DEADLINE, Discovery::new(client.clone()).run()).await {
        Ok(Ok(discovery)) => discovery,
        Ok(Err(error)) => return text + &format!("(discovery failed: {error})\n"),
        Err(_) => return text + "(discovery did not answer)\n",
    };
    for (resource, capabilities) in discovery.groups().flat_map(|group| group.recommended_resources()) {
        // The failed wait has shown them.
        let listable = capabilities.scope == Scope::Namespaced && capabilities.supports_operation(verbs::LIST);
        if !listable || resource.kind == "Event" {
            continue;
        }
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
        match tokio::time::timeout(DEADLINE, api.list(&ListParams::default())).await {
            Ok(Ok(list)) => list.items.iter().for_each(|object| text += &left_over(&resource.kind, object)),
            Ok(Err(error)) => _ = writeln!(text, "({} cannot be listed: {error})", resource.plural),
            Err(_) => _ = writeln!(text, "({} cannot be listed: no answer)", resource.plural),
        }
    }
    text
}

fn left_over(kind: &str, object: &DynamicObject) -> String {
    let deleted = match &object.metadata.deletion_timestamp {
        Some(time) => format!("deleted at {}", time.0),
        None => "not deleted".to_owned(),
    };
    format!("{kind} `{}`: {deleted}, finalizers {:?}\n", object.name_any(), object.finalizers())
}

fn generate_name(scenario: &str) -> String {
    let stem: String = scenario.replace("::", "-").replace('_', "-").chars().take(LONGEST_STEM).collect();
    format!("{}-", stem.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_named_after_its_scenario() {
        assert_eq!(generate_name("a_pod_answers"), "a-pod-answers-");
        assert_eq!(generate_name("agent::a_pod_answers"), "agent-a-pod-answers-");
    }

    #[test]
    fn a_long_name_leaves_room_for_the_suffix_and_ends_in_one_dash() {
        let name = generate_name(&"ab_".repeat(40));
        assert!(name.len() + 5 <= 63, "{name}");
        assert!(name.ends_with("b-") || name.ends_with("a-"), "{name}");
    }

    #[test]
    fn what_is_left_is_said_with_what_holds_it() {
        let resource = kube::core::ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        let mut pod = DynamicObject::new("box", &resource);
        pod.metadata.finalizers = Some(vec!["boathook.dev/thaw".into()]);
        assert_eq!(left_over("Pod", &pod), "Pod `box`: not deleted, finalizers [\"boathook.dev/thaw\"]\n");
    }
}
