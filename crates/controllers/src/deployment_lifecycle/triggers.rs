//! When a DeploymentLifecycle is looked at again: its Deployment has changed, a ReplicaSet or pod of it, or a hook's pod.

use boathook_api::{DeploymentLifecycle, words::HOOK_OF_LABEL};
use boathook_decide::deployment_lifecycle::label_of;
use boathook_runtime::{
    Watches,
    lenient::{Lenient, touched_metadata},
};
use futures::{Stream, StreamExt, future, stream};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{
    Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};

/// The lifecycles that each change concerns. Of objects only the metadata is read, and nothing is kept.
pub fn triggers(
    client: &Client,
    lifecycles: Store<Lenient<DeploymentLifecycle>>,
    watches: &Watches,
) -> impl Stream<Item = ObjectRef<DeploymentLifecycle>> + Send + use<> {
    let deployments = touched_metadata::<Deployment>(client.clone(), watches)
        .map(|deployment| (deployment.namespace(), of_deployment(&deployment)));
    let sets =
        touched_metadata::<ReplicaSet>(client.clone(), watches).map(|set| (set.namespace(), of_replica_set(&set)));
    let pods = touched_metadata::<Pod>(client.clone(), watches).map(|pod| (pod.namespace(), of_pod(&pod)));
    let all = stream::select(deployments, stream::select(sets, pods));
    all.filter_map(move |(namespace, concerned)| {
        future::ready(concerned.and_then(|concerned| known(&lifecycles, namespace, concerned)))
    })
}

/// Whose it is.
enum Concerned {
    Named(String),
    /// By the label of a hook's pod.
    Labelled(String),
}

fn of_deployment(deployment: &PartialObjectMeta<Deployment>) -> Option<Concerned> {
    Some(Concerned::Named(deployment.name_any()))
}

fn of_replica_set(set: &PartialObjectMeta<ReplicaSet>) -> Option<Concerned> {
    controller_of(set, "Deployment").map(Concerned::Named)
}

fn of_pod(pod: &PartialObjectMeta<Pod>) -> Option<Concerned> {
    if let Some(label) = pod.labels().get(HOOK_OF_LABEL) {
        return Some(Concerned::Labelled(label.clone()));
    }
    // The Deployment controller names its ReplicaSets so.
    let set = controller_of(pod, "ReplicaSet")?;
    set.rsplit_once('-').map(|(deployment, _)| Concerned::Named(deployment.to_owned()))
}

/// The name of the object of this kind that controls it.
pub(super) fn controller_of(object: &impl ResourceExt, kind: &str) -> Option<String> {
    let owners = object.owner_references();
    let owner = owners.iter().find(|owner| owner.kind == kind && owner.controller == Some(true))?;
    Some(owner.name.clone())
}

fn known(
    lifecycles: &Store<Lenient<DeploymentLifecycle>>,
    namespace: Option<String>,
    concerned: Concerned,
) -> Option<ObjectRef<DeploymentLifecycle>> {
    let namespace = namespace.unwrap_or_default();
    match concerned {
        Concerned::Named(name) => {
            lifecycles.get(&ObjectRef::new(&name).within(&namespace))?;
            Some(ObjectRef::new(&name).within(&namespace))
        }
        Concerned::Labelled(label) => {
            let all = lifecycles.state();
            let found = all.iter().filter(|object| object.namespace().as_ref() == Some(&namespace));
            let found = found.map(|object| object.name_any()).find(|name| label_of(name) == label)?;
            Some(ObjectRef::new(&found).within(&namespace))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Debug, time::Duration};

    use k8s_openapi::NamespaceResourceScope;
    use kube::{
        Api, Resource,
        api::PostParams,
        runtime::{reflector, watcher},
    };
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;
    use crate::test_world::world;

    const DEADLINE: Duration = Duration::from_secs(600);

    async fn create<K>(client: &Client, object: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(client.clone(), "default");
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn change_of_each_kind_wakes_the_lifecycle() {
        let client = world("nothing-is-refused").await.client;
        create::<k8s_openapi::api::core::v1::ServiceAccount>(&client, json!({"metadata": {"name": "default"}})).await;
        let hook = json!({"execNewPod": {"containerName": "web", "command": ["migrate"]}});
        let mut lifecycle = DeploymentLifecycle::new("web", serde_json::from_value(json!({"pre": hook})).unwrap());
        lifecycle.metadata.namespace = Some("default".to_owned());
        let (store, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(lifecycle))));
        let mut woken = std::pin::pin!(triggers(&client, store, &Watches::default()));
        let mut wakes = async || timeout(DEADLINE, woken.next()).await.expect("it is woken");

        let labels = json!({"app": "web"});
        let pod = json!({"containers": [{"name": "web", "image": "web"}]});
        let spec = json!({"replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}});
        let owned = |name: &str, kind: &str, owner: &str| {
            let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": true});
            json!({"name": name, "labels": labels, "ownerReferences": [owner]})
        };
        let web = Some(ObjectRef::new("web").within("default"));
        // Of a Deployment without a lifecycle nothing is told.
        create::<Deployment>(&client, json!({"metadata": {"name": "other"}, "spec": spec})).await;
        create::<Deployment>(&client, json!({"metadata": {"name": "web"}, "spec": spec})).await;
        assert_eq!(wakes().await, web, "the Deployment");
        let metadata = owned("other-1", "Deployment", "other");
        create::<ReplicaSet>(&client, json!({"metadata": metadata, "spec": spec})).await;
        create::<ReplicaSet>(&client, json!({"metadata": owned("web-1", "Deployment", "web"), "spec": spec})).await;
        assert_eq!(wakes().await, web, "a ReplicaSet of it");
        create::<Pod>(&client, json!({"metadata": owned("web-1-a", "ReplicaSet", "web-1"), "spec": pod})).await;
        assert_eq!(wakes().await, web, "a pod of that");
        let hook = json!({"name": "migrate", "labels": {HOOK_OF_LABEL: label_of("web")}});
        create::<Pod>(&client, json!({"metadata": hook, "spec": pod})).await;
        assert_eq!(wakes().await, web, "the pod of a hook");
    }
}
