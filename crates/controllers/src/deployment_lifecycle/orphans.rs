//! Finds Deployments and ReplicaSets that carry Boathook's marks and have no DeploymentLifecycle, and releases them. See
//! `boathook_decide::deployment_lifecycle::Unclaimed` for how they come about.
//!
//! Its two run loops keep only the objects that carry a mark, and look at each when it changes, when its lifecycle is gone
//! and when this process becomes the leader. Whether the lifecycle exists is read from the API server before anything is
//! removed.

use std::{sync::Arc, time::Duration};

use boathook_api::{
    DeploymentLifecycle,
    words::{GATE, LIFECYCLE, condition},
};
use boathook_decide::deployment_lifecycle::{LiveHook, Orphan, Unclaimed, decide_orphan, waits_for_a_lifecycle};
use boathook_runtime::{Lease, Reconcile, lenient::Lenient};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{
    Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};
use snafu::ensure;
use tokio::sync::mpsc;

use super::{
    Error, LeaseLostSnafu, act,
    observe::{self, Versions},
    triggers::controller_of,
};
use crate::writes;

pub type ReplicaSetMetadata = PartialObjectMeta<ReplicaSet>;

/// The store of lifecycles is complete after this long, usually.
const UNTIL_LISTED: Duration = Duration::from_secs(1);

/// A restored backup has its Deployments earlier than its lifecycles: a Deployment that is younger than this is not released.
pub const RESTORE_TIME: SignedDuration = SignedDuration::from_mins(10);

/// No event of these loops tells that the pod of a hook has ended.
const UNTIL_HOOKS_END: Duration = Duration::from_secs(2);

/// The controller.
pub struct Orphans {
    pub client: Client,
    pub lease: Lease,
    /// The lifecycles as the watch has them: a mark whose lifecycle is here needs no request.
    pub lifecycles: Store<Lenient<DeploymentLifecycle>>,
    /// Completes when `lifecycles` has every object.
    pub listed: Shared<BoxFuture<'static, ()>>,
    /// How old a Deployment must be.
    pub least_age: SignedDuration,
}

/// Whether a Deployment carries a mark.
pub fn is_marked_deployment(deployment: &Deployment) -> bool {
    let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ours = conditions.filter(|one| one.type_ == condition::LIFECYCLE);
    deployment.annotations().contains_key(LIFECYCLE) || ours.next().is_some()
}

/// Whether a ReplicaSet carries a mark.
pub fn is_marked_replica_set(set: &ReplicaSetMetadata) -> bool {
    set.annotations().contains_key(LIFECYCLE) || set.labels().contains_key(GATE)
}

impl Reconcile<Deployment> for Orphans {
    type Error = Error;

    async fn reconcile(&self, deployment: Arc<Deployment>) -> Result<Option<Duration>, Error> {
        if waits_for_a_lifecycle(deployment.annotations().get(LIFECYCLE).map(String::as_str)) {
            return Ok(None);
        }
        self.release(&deployment.namespace().unwrap_or_default(), &deployment.name_any()).await
    }
}

impl Reconcile<ReplicaSetMetadata> for Orphans {
    type Error = Error;

    async fn reconcile(&self, set: Arc<ReplicaSetMetadata>) -> Result<Option<Duration>, Error> {
        // Without a Deployment nothing holds it.
        let Some(deployment) = controller_of(&*set, "Deployment") else { return Ok(None) };
        self.release(&set.namespace().unwrap_or_default(), &deployment).await
    }
}

impl Orphans {
    /// Releases this Deployment and its ReplicaSets if it has no lifecycle.
    async fn release(&self, namespace: &str, name: &str) -> Result<Option<Duration>, Error> {
        // Each change of the leader looks again.
        let Some(leadership) = self.lease.leadership().filter(|_| self.lease.leads()) else { return Ok(None) };
        if self.listed.clone().now_or_never().is_none() {
            return Ok(Some(UNTIL_LISTED));
        }
        if self.lifecycles.get(&ObjectRef::new(name).within(namespace)).is_some() {
            return Ok(None);
        }
        let found = observe::versions(&self.client, namespace, name).await?;
        let Some(Versions { deployment, replica_sets, created }) = found else { return Ok(None) };
        let age = created.map_or(SignedDuration::MAX, |created| Timestamp::now().duration_since(created));
        if age < self.least_age {
            return Ok(Some((self.least_age - age).unsigned_abs()));
        }
        let live_hooks = observe::live_hooks(&self.client, namespace, &deployment, &replica_sets).await?;
        // Last, as `Unclaimed` says.
        let lifecycle_exists = observe::lifecycle_exists(&self.client, namespace, name).await?;
        let orphan = decide_orphan(&Unclaimed {
            leadership,
            deployment: &deployment,
            replica_sets: &replica_sets,
            live_hooks: &live_hooks,
            lifecycle_exists,
        });
        match orphan {
            Orphan::Keep => Ok(None),
            Orphan::EndHooks(pods) => {
                for LiveHook { name, uid, .. } in pods {
                    ensure!(self.lease.leads(), LeaseLostSnafu);
                    writes::delete::<Pod>(&self.client, namespace, &name, &uid).await?;
                }
                Ok(Some(UNTIL_HOOKS_END))
            }
            Orphan::Release(releases) => {
                for release in releases {
                    ensure!(self.lease.leads(), LeaseLostSnafu);
                    act::release(&self.client, namespace, name, release).await?;
                }
                tracing::info!(namespace, deployment = name, "released: it was marked and has no DeploymentLifecycle");
                Ok(None)
            }
        }
    }
}

/// Wakes both loops for a Deployment whose lifecycle is gone.
#[derive(Clone)]
pub struct Wakes {
    pub deployments: mpsc::UnboundedSender<ObjectRef<Deployment>>,
    pub replica_sets: mpsc::UnboundedSender<ObjectRef<ReplicaSetMetadata>>,
    /// The ReplicaSets that carry a mark.
    pub marked: Store<Lenient<ReplicaSetMetadata>>,
}

impl Wakes {
    pub(super) fn lifecycle_is_gone(&self, lifecycle: &ObjectRef<DeploymentLifecycle>) {
        let namespace = lifecycle.namespace.as_deref().unwrap_or_default();
        // Both loops end before the process does.
        let _ = self.deployments.send(ObjectRef::new(&lifecycle.name).within(namespace));
        for set in self.marked.state() {
            let Ok(set) = &set.0 else { continue };
            let owner = controller_of(set, "Deployment");
            if set.namespace().as_deref() == Some(namespace) && owner.as_ref() == Some(&lifecycle.name) {
                let _ = self.replica_sets.send(ObjectRef::new(&set.name_any()).within(namespace));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future;
    use kube::{
        Api, Resource,
        api::{DeleteParams, Patch, PatchParams},
        runtime::{reflector, watcher},
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::deployment_lifecycle::tests::{Held, held};

    /// With a lifecycle that is marked, and a controller whose store has no lifecycle.
    async fn marked() -> (Held, Orphans) {
        let held = held("nothing").await;
        let controller = &held.controller;
        let orphans = Orphans {
            client: controller.client.clone(),
            lease: controller.lease.clone(),
            lifecycles: reflector::store().0,
            listed: future::ready(()).boxed().shared(),
            least_age: SignedDuration::ZERO,
        };
        (held, orphans)
    }

    async fn delete_lifecycle(held: &Held) {
        held.lifecycles.delete("web", &DeleteParams::default()).await.unwrap();
    }

    /// The annotation of the Deployment, and that of its ReplicaSet with the label of the gate.
    async fn marks(client: &Client) -> [Option<String>; 3] {
        let deployment = Api::<Deployment>::namespaced(client.clone(), "default").get("web").await.unwrap();
        let set = Api::<ReplicaSet>::namespaced(client.clone(), "default").get("web-2").await.unwrap();
        [
            deployment.annotations().get(LIFECYCLE).cloned(),
            set.annotations().get(LIFECYCLE).cloned(),
            set.labels().get(GATE).cloned(),
        ]
    }

    async fn patch<K>(client: &Client, name: &str, metadata: Value)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(client.clone(), "default");
        let patch = Patch::Merge(json!({"metadata": metadata}));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn look_at_deployment(orphans: &Orphans) -> Option<Duration> {
        let api: Api<Deployment> = Api::namespaced(orphans.client.clone(), "default");
        orphans.reconcile(Arc::new(api.get("web").await.unwrap())).await.unwrap()
    }

    async fn look_at_replica_set(orphans: &Orphans) {
        let api: Api<ReplicaSet> = Api::namespaced(orphans.client.clone(), "default");
        let set = api.get_metadata("web-2").await.unwrap();
        orphans.reconcile(Arc::new(set)).await.unwrap();
    }

    fn managed() -> Option<String> {
        Some("managed".to_owned())
    }

    #[tokio::test]
    async fn marks_are_removed_once_the_lifecycle_is_gone() {
        let (held, orphans) = marked().await;
        patch::<ReplicaSet>(&orphans.client, "web-2", json!({"labels": {GATE: "done.2"}})).await;
        let stays = [managed(), managed(), Some("done.2".to_owned())];
        look_at_deployment(&orphans).await;
        assert_eq!(marks(&orphans.client).await, stays, "the store is late: the lifecycle exists");
        delete_lifecycle(&held).await;
        look_at_deployment(&orphans).await;
        assert_eq!(marks(&orphans.client).await, [None, None, None]);
    }

    /// As a backup is restored: the lifecycle comes after its Deployment.
    #[tokio::test]
    async fn young_deployment_waits_for_its_lifecycle() {
        let (held, mut orphans) = marked().await;
        delete_lifecycle(&held).await;
        orphans.least_age = RESTORE_TIME;
        let again = look_at_deployment(&orphans).await.expect("it looks again");
        assert!(again > RESTORE_TIME.unsigned_abs() / 2 && again <= RESTORE_TIME.unsigned_abs(), "{again:?}");
        assert_eq!(marks(&orphans.client).await, [managed(), managed(), None]);
    }

    #[tokio::test]
    async fn mark_of_a_replica_set_alone_is_removed() {
        let (held, orphans) = marked().await;
        delete_lifecycle(&held).await;
        patch::<Deployment>(&orphans.client, "web", json!({"annotations": {LIFECYCLE: null}})).await;
        look_at_replica_set(&orphans).await;
        assert_eq!(marks(&orphans.client).await, [None, None, None]);
    }

    #[tokio::test]
    async fn required_deployment_stays_held_without_a_lifecycle() {
        let (held, orphans) = marked().await;
        delete_lifecycle(&held).await;
        patch::<Deployment>(&orphans.client, "web", json!({"annotations": {LIFECYCLE: "required"}})).await;
        look_at_deployment(&orphans).await;
        look_at_replica_set(&orphans).await;
        assert_eq!(marks(&orphans.client).await, [Some("required".to_owned()), managed(), None]);
    }

    #[tokio::test]
    async fn nothing_is_removed_before_the_lifecycles_are_listed() {
        let (held, mut orphans) = marked().await;
        delete_lifecycle(&held).await;
        orphans.listed = future::pending().boxed().shared();
        assert_eq!(look_at_deployment(&orphans).await, Some(UNTIL_LISTED));
        assert_eq!(marks(&orphans.client).await, [managed(), managed(), None]);
    }

    #[tokio::test]
    async fn deleted_lifecycle_wakes_its_deployment_and_marked_replica_sets() {
        let (_held, orphans) = marked().await;
        let (deployments, mut woken) = mpsc::unbounded_channel();
        let (replica_sets, mut woken_sets) = mpsc::unbounded_channel();
        let (marked, mut writer) = reflector::store();
        let api: Api<ReplicaSet> = Api::namespaced(orphans.client.clone(), "default");
        let set = api.get_metadata("web-2").await.unwrap();
        writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(set))));
        let wakes = Wakes { deployments, replica_sets, marked };
        wakes.lifecycle_is_gone(&ObjectRef::new("other").within("default"));
        wakes.lifecycle_is_gone(&ObjectRef::new("web").within("default"));
        assert_eq!(woken.try_recv().unwrap().name, "other");
        assert_eq!(woken.try_recv().unwrap().name, "web");
        assert_eq!(woken_sets.try_recv().unwrap().name, "web-2");
        assert!(woken_sets.try_recv().is_err(), "of the other Deployment there is none");
    }
}
