//! Garbage collection: what has lost its owners goes; owners deleted in the foreground wait for what they own; owners
//! deleted with `orphan` let it go. For every kind that the API server serves.

mod graph;

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use futures::{FutureExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, DynamicObject, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use self::graph::{FOREGROUND, Graph, Node, ORPHAN, Standing, Verdict, blocking, judge};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kinds::{self, Kind};
use crate::queue;
use crate::write::gone_is_fine;

/// Definitions change in bursts: discovery waits for the end of one.
const BURST: Duration = Duration::from_millis(100);
/// For what no definition tells of, and after a failed discovery.
const REDISCOVERY: Duration = Duration::from_secs(30);

pub(crate) struct Controller {
    cluster: Arc<Cluster>,
    graph: Mutex<Graph>,
    watched: Mutex<Vec<Watched>>,
    /// Takes the uids that need a look, as names.
    wake: mpsc::UnboundedSender<Key>,
}

/// A kind of which all objects are in the graph, once its first list is complete.
#[derive(Clone)]
struct Watched {
    kind: Kind,
    listed: watch::Receiver<bool>,
    watch: AbortHandle,
}

impl Controller {
    pub(crate) async fn run(cluster: Arc<Cluster>) {
        let (wake, wakes) = mpsc::unbounded();
        let controller = Arc::new(Self { cluster, graph: Mutex::default(), watched: Mutex::default(), wake });
        let mut definitions = controller.cluster.definitions.wakes(|change| vec![change.key()]);
        let mut watches = JoinSet::new();
        controller.follow_kinds(&mut watches).await;
        let collect = queue::work("garbage collector", u32::MAX, wakes, |uid| controller.look(uid.name));
        let rediscover = async {
            loop {
                let _ = tokio::time::timeout(REDISCOVERY, definitions.next()).await;
                tokio::time::sleep(BURST).await;
                while definitions.next().now_or_never().is_some() {}
                controller.follow_kinds(&mut watches).await;
            }
        };
        tokio::join!(collect, rediscover);
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, uids: Vec<String>) {
        for uid in uids {
            // Nobody reads any more only while everything ends.
            let _ = self.wake.unbounded_send(Key::cluster(uid));
        }
    }

    /// Watches the kinds that are there now, and no others.
    async fn follow_kinds(self: &Arc<Self>, watches: &mut JoinSet<()>) {
        let kinds = match kinds::discover(&self.cluster.client).await {
            Ok(kinds) => kinds,
            Err(error) => return tracing::info!("discovery will be tried again: {error}"),
        };
        let mut watched = self.watched();
        let known = watched.drain(..).map(|watched| (watched.kind.resource.clone(), watched));
        let mut known: HashMap<ApiResource, Watched> = known.collect();
        // Events own nothing and nobody owns them.
        for kind in kinds.into_iter().filter(|kind| kind.resource.kind != "Event") {
            watched.push(known.remove(&kind.resource).unwrap_or_else(|| {
                let (done, listed) = watch::channel(false);
                let watch = watches.spawn(self.clone().follow(kind.resource.clone(), done));
                Watched { kind, listed, watch }
            }));
        }
        known.into_values().for_each(|gone| gone.watch.abort());
    }

    async fn follow(self: Arc<Self>, resource: ApiResource, listed: watch::Sender<bool>) {
        let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(self.cluster.client.clone(), &resource);
        let mut events = pin!(watcher::watcher(api, watcher::Config::default()).default_backoff());
        let mut seen = HashSet::new();
        while let Some(event) = events.next().await {
            let uid = |object: &PartialObjectMeta<DynamicObject>| object.uid().unwrap_or_default();
            let wake = match event {
                Ok(Event::Init) => {
                    seen.clear();
                    Vec::new()
                }
                Ok(Event::InitApply(object)) => {
                    seen.insert(uid(&object));
                    self.graph().put(&uid(&object), Node::new(&resource, &object.metadata))
                }
                Ok(Event::InitDone) => {
                    listed.send_replace(true);
                    self.graph().keep(&resource, &seen)
                }
                Ok(Event::Apply(object)) => self.graph().put(&uid(&object), Node::new(&resource, &object.metadata)),
                Ok(Event::Delete(object)) => self.graph().remove(&uid(&object)),
                Err(error) => {
                    tracing::debug!("a watch will start anew: {error}");
                    Vec::new()
                }
            };
            self.wake(wake);
        }
    }

    async fn look(&self, uid: String) -> Result<Option<Duration>> {
        // Without a full view an owner could seem to have no dependents.
        let watched = self.watched().clone();
        for mut watched in watched {
            // An error: its kind is gone.
            let _ = watched.listed.wait_for(|listed| *listed).await;
        }
        let Some(node) = self.graph().get(&uid).cloned() else { return Ok(None) };
        let Some(meta) = self.live(&node, &uid).await? else { return Ok(None) };
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
            let idle = blocking.into_iter().filter(|(_, dependent)| !dependent.waits_for_dependents());
            self.wake(idle.map(|(uid, _)| uid).collect());
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
                    let unblock = |owner| OwnerReference { block_owner_deletion: Some(false), ..owner };
                    let owners: Vec<OwnerReference> = node.owners.iter().cloned().map(unblock).collect();
                    self.patch(&node, &meta, json!({"ownerReferences": owners})).await?;
                }
                self.delete(&node, &uid, DeleteParams::foreground()).await?;
            }
            Verdict::Delete => {
                let has = |finalizer: &str| meta.finalizers.iter().flatten().any(|other| other == finalizer);
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

    /// Asked of the API server: the graph may lag, and a wrong answer deletes something.
    async fn standing(&self, of: &Node, owner: &OwnerReference) -> Result<Standing> {
        let is_of_kind = |watched: &&Watched| watched.kind.is(&owner.api_version, &owner.kind);
        let kind = self.watched().iter().find(is_of_kind).map(|watched| watched.kind.clone());
        let Some(kind) = kind else {
            let (version, kind) = (&owner.api_version, &owner.kind);
            return Err(Error::Other(format!("no such kind: {kind} in {version}, an owner of {}", of.name)));
        };
        let namespace = of.namespace.clone().filter(|_| kind.is_namespaced());
        if kind.is_namespaced() && namespace.is_none() {
            // A cluster object cannot be owned by one of a namespace: nobody can say whether that one is gone.
            return Ok(Standing::Solid);
        }
        let named = ObjectMeta { namespace, name: Some(owner.name.clone()), ..ObjectMeta::default() };
        let owner = self.live(&Node::new(&kind.resource, &named), &owner.uid).await?;
        Ok(match owner {
            None => Standing::Gone,
            Some(meta) if Node::new(&kind.resource, &meta).waits_for_dependents() => Standing::WaitsForDependents,
            Some(_) => Standing::Solid,
        })
    }

    fn api(&self, node: &Node) -> Api<DynamicObject> {
        let client = self.cluster.client.clone();
        match &node.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &node.resource),
            None => Api::all_with(client, &node.resource),
        }
    }

    /// The object as it is now, if it is still the one of this uid.
    async fn live(&self, node: &Node, uid: &str) -> Result<Option<ObjectMeta>> {
        let object = self.api(node).get_metadata_opt(&node.name).await?;
        Ok(object.map(|object| object.metadata).filter(|meta| meta.uid.as_deref() == Some(uid)))
    }

    async fn let_go(&self, uid: &str, node: &Node, owners: &[String]) -> Result<()> {
        let Some(meta) = self.live(node, uid).await? else { return Ok(()) };
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
        let patch = Patch::Merge(json!({"metadata": metadata}));
        gone_is_fine(self.api(node).patch_metadata(&node.name, &PatchParams::default(), &patch).await)
    }

    async fn delete(&self, node: &Node, uid: &str, how: DeleteParams) -> Result<()> {
        let only_this = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        match self.api(node).delete(&node.name, &how.preconditions(only_this)).await.map_err(Error::from) {
            // Another of the same name: not ours.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}
