//! Garbage collection: what has lost its owners goes; owners deleted in the foreground wait for what they own; owners
//! deleted with `orphan` let it go. For every kind that the API server serves.

mod graph;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, DynamicObject, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::core::ApiResource;
use kube::discovery::verbs;
use kube::runtime::watcher;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use self::graph::{FOREGROUND, Graph, Node, ORPHAN, Standing, Verdict, blocking, judge};
use crate::cache::Cache;
use crate::error::{Error, Result, gone_is_fine};
use crate::key::Key;
use crate::kinds::{self, Kind};
use crate::queue::{self, Queue};

type Objects = Cache<PartialObjectMeta<DynamicObject>>;

/// Definitions change in bursts: discovery waits for the end of one.
const BURST: Duration = Duration::from_millis(100);
/// For what no definition tells of, and after a failed discovery.
const REDISCOVERY: Duration = Duration::from_secs(30);

pub(crate) struct Controller {
    client: Client,
    definitions: Arc<Cache<CustomResourceDefinition>>,
    definitions_changed: Notify,
    graph: Mutex<Graph>,
    watched: Mutex<Vec<Watched>>,
    queue: Arc<Queue>,
}

/// One kind, and what of it there is.
#[derive(Clone)]
struct Watched {
    kind: Kind,
    objects: Arc<Objects>,
    /// Held: the cache would forget it.
    _observer: Arc<Observer>,
    watch: AbortHandle,
}

struct Observer {
    /// Weak: the controller holds its observers.
    controller: Weak<Controller>,
    resource: ApiResource,
}

impl Observer {
    fn changed(
        &self,
        before: Option<&Arc<PartialObjectMeta<DynamicObject>>>,
        after: Option<&Arc<PartialObjectMeta<DynamicObject>>>,
    ) {
        let uid = |object: &Arc<PartialObjectMeta<DynamicObject>>| object.metadata.uid.clone().unwrap_or_default();
        let Some(controller) = self.controller.upgrade() else { return };
        let (old, new) = (before.map(uid), after.map(uid));
        let mut wake = Vec::new();
        {
            let mut graph = controller.graph();
            if let Some(old) = old.filter(|old| Some(old) != new.as_ref()) {
                wake.extend(graph.remove(&old));
            }
            if let (Some(object), Some(uid)) = (after, new) {
                wake.extend(graph.put(&uid, Node::new(&self.resource, &object.metadata)));
            }
        }
        for uid in wake {
            controller.queue.add(Key::cluster(&uid));
        }
    }
}

impl Controller {
    pub(crate) fn new(client: Client, definitions: Arc<Cache<CustomResourceDefinition>>) -> Arc<Self> {
        let controller = Arc::new(Self {
            client,
            definitions,
            definitions_changed: Notify::new(),
            graph: Mutex::default(),
            watched: Mutex::default(),
            queue: Arc::default(),
        });
        controller.definitions.observe(&controller, |controller, _, _| controller.definitions_changed.notify_one());
        controller
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> Vec<Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn run(self: Arc<Self>) {
        self.definitions.synced().await;
        let mut watches = JoinSet::new();
        self.follow_kinds(&mut watches).await;
        let collect = queue::work("garbage collector", self.queue.clone(), None, |uid| self.look(uid));
        let rediscover = async {
            loop {
                let _ = tokio::time::timeout(REDISCOVERY, self.definitions_changed.notified()).await;
                tokio::time::sleep(BURST).await;
                self.follow_kinds(&mut watches).await;
            }
        };
        tokio::join!(collect, rediscover);
    }

    /// Watches the kinds that are there now, and no others.
    async fn follow_kinds(self: &Arc<Self>, watches: &mut JoinSet<()>) {
        let kinds = match kinds::discover(&self.client).await {
            Ok(kinds) => kinds,
            Err(error) => return tracing::info!("discovery will be tried again: {error}"),
        };
        let mut known: HashMap<ApiResource, Watched> =
            self.watched().into_iter().map(|watched| (watched.kind.resource.clone(), watched)).collect();
        let mut watched = Vec::new();
        for kind in kinds.into_iter().filter(is_collected) {
            let known = known.remove(&kind.resource);
            watched.push(known.unwrap_or_else(|| self.start(kind, watches)));
        }
        for gone in known.into_values() {
            gone.watch.abort();
        }
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = watched;
    }

    fn start(self: &Arc<Self>, kind: Kind, watches: &mut JoinSet<()>) -> Watched {
        let objects = Arc::new(Objects::default());
        let observer = Arc::new(Observer { controller: Arc::downgrade(self), resource: kind.resource.clone() });
        objects.observe(&observer, Observer::changed);
        let api = Api::all_with(self.client.clone(), &kind.resource);
        let watch = watches.spawn(objects.clone().follow(api, watcher::Config::default()));
        Watched { kind, objects, _observer: observer, watch }
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        // Without a full view an owner could seem to have no dependents.
        for watched in self.watched() {
            watched.objects.synced().await;
        }
        let uid = key.name;
        let Some(node) = self.graph().get(&uid).cloned() else { return Ok(None) };
        let Some(meta) = self.live(&node).await?.filter(|meta| meta.uid.as_ref() == Some(&uid)) else {
            return Ok(None);
        };
        let node = Node::new(&node.resource, &meta);
        let dependents = self.graph().dependents(&uid);
        if node.orphans_dependents() {
            for (dependent_uid, dependent) in dependents {
                self.let_go(&dependent_uid, &dependent, std::slice::from_ref(&uid)).await?;
            }
            self.drop_finalizer(&node, &meta, ORPHAN).await?;
            return Ok(None);
        }
        if node.waits_for_dependents() {
            let blocking = blocking(&uid, dependents);
            if blocking.is_empty() {
                self.drop_finalizer(&node, &meta, FOREGROUND).await?;
            }
            for (dependent, _) in blocking.iter().filter(|(_, dependent)| !dependent.waits_for_dependents()) {
                self.queue.add(Key::cluster(dependent));
            }
            return Ok(None);
        }
        if meta.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let mut owners = Vec::new();
        for owner in &node.owners {
            owners.push((owner.uid.clone(), self.standing(&node, owner).await?));
        }
        match judge(&owners, &dependents) {
            Verdict::Keep => {}
            Verdict::LetGo(owners) => self.let_go(&uid, &node, &owners).await?,
            Verdict::DeleteInForeground { unblock } => {
                if unblock {
                    let unblocked = node
                        .owners
                        .iter()
                        .map(|owner| OwnerReference { block_owner_deletion: Some(false), ..owner.clone() });
                    self.patch(&node, &meta, json!({"ownerReferences": unblocked.collect::<Vec<_>>()})).await?;
                }
                self.delete(&node, &uid, DeleteParams::foreground()).await?;
            }
            Verdict::Delete => {
                let finalizers = meta.finalizers.unwrap_or_default();
                let has = |finalizer: &str| finalizers.iter().any(|other| other == finalizer);
                let how = match (has(ORPHAN), has(FOREGROUND)) {
                    (true, _) => DeleteParams::orphan(),
                    (false, true) => DeleteParams::foreground(),
                    (false, false) => DeleteParams::background(),
                };
                self.delete(&node, &uid, how).await?;
            }
        }
        Ok(None)
    }

    /// Known, or asked of the API server: the caches may lag, and a wrong answer deletes something.
    async fn standing(&self, of: &Node, owner: &OwnerReference) -> Result<Standing> {
        let kind = self.watched().into_iter().find(|watched| watched.kind.is(&owner.api_version, &owner.kind));
        let Some(kind) = kind.map(|watched| watched.kind) else {
            let (version, kind) = (&owner.api_version, &owner.kind);
            return Err(Error::Other(format!("no such kind: {kind} in {version}, an owner of {}", of.name)));
        };
        let namespace = of.namespace.as_deref().filter(|_| kind.is_namespaced());
        if kind.is_namespaced() && namespace.is_none() {
            // A cluster object cannot be owned by one of a namespace: nobody can say whether that one is gone.
            return Ok(Standing::Solid);
        }
        let meta = self.metadata(&kind.resource, namespace, &owner.name).await?;
        Ok(match meta.filter(|meta| meta.uid.as_ref() == Some(&owner.uid)) {
            None => Standing::Gone,
            Some(meta) if Node::new(&kind.resource, &meta).waits_for_dependents() => Standing::WaitsForDependents,
            Some(_) => Standing::Solid,
        })
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    async fn metadata(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<ObjectMeta>> {
        Ok(self.api(resource, namespace).get_metadata_opt(name).await?.map(|object| object.metadata))
    }

    async fn live(&self, node: &Node) -> Result<Option<ObjectMeta>> {
        self.metadata(&node.resource, node.namespace.as_deref(), &node.name).await
    }

    async fn let_go(&self, uid: &str, node: &Node, owners: &[String]) -> Result<()> {
        let Some(meta) = self.live(node).await?.filter(|meta| meta.uid.as_deref() == Some(uid)) else { return Ok(()) };
        let mut left = meta.owner_references.clone().unwrap_or_default();
        left.retain(|owner| !owners.contains(&owner.uid));
        self.patch(node, &meta, json!({"ownerReferences": left})).await
    }

    async fn drop_finalizer(&self, node: &Node, meta: &ObjectMeta, finalizer: &str) -> Result<()> {
        let mut left = meta.finalizers.clone().unwrap_or_default();
        left.retain(|other| other != finalizer);
        self.patch(node, meta, json!({"finalizers": left})).await
    }

    /// A merge patch of metadata, held to the object and version that was seen.
    async fn patch(&self, node: &Node, seen: &ObjectMeta, mut metadata: Value) -> Result<()> {
        metadata["uid"] = json!(seen.uid);
        metadata["resourceVersion"] = json!(seen.resource_version);
        let api = self.api(&node.resource, node.namespace.as_deref());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        gone_is_fine(api.patch_metadata(&node.name, &PatchParams::default(), &patch).await)
    }

    async fn delete(&self, node: &Node, uid: &str, how: DeleteParams) -> Result<()> {
        let only_this = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let api = self.api(&node.resource, node.namespace.as_deref());
        match api.delete(&node.name, &how.preconditions(only_this)).await.map_err(Error::from) {
            // Another of the same name: not ours.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}

/// Events own nothing and nobody owns them; what cannot be watched cannot be followed.
fn is_collected(kind: &Kind) -> bool {
    kind.resource.kind != "Event" && [verbs::LIST, verbs::WATCH].iter().all(|verb| kind.can(verb))
}
