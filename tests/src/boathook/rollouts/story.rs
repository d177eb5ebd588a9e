//! Everything that happens to one Deployment, as it is watched: the Deployment, its ReplicaSets, its pods, the pods of its
//! hooks, its lifecycle. It is recorded beside the scenario, from before the Deployment is made.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, Result, anyhow, ensure};
use boathook_api::{DeploymentLifecycle, words::HOOK_OF_LABEL};
use futures::{StreamExt, pin_mut};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::ListParams,
    runtime::{WatchStreamExt, watcher},
};
use tokio::{sync::watch, task::JoinSet};

use super::history::History;
use crate::{Ctx, DEADLINE, poll::Look, report, watch::Watchable};

/// One of the objects that a story is about.
#[derive(Clone, Debug)]
pub enum Thing {
    Deployment(Box<Deployment>),
    ReplicaSet(Box<ReplicaSet>),
    Pod(Box<Pod>),
    Lifecycle(Box<DeploymentLifecycle>),
}

/// One change, with the object as it was after it (for a deletion: last).
#[derive(Clone, Debug)]
pub struct Moment {
    /// Its place among all changes of the cluster.
    pub version: u64,
    pub thing: Thing,
    pub gone: bool,
}

/// What is there, by name.
#[derive(Clone, Debug, Default)]
pub struct Now {
    pub deployment: Option<Deployment>,
    pub sets: BTreeMap<String, ReplicaSet>,
    /// Its own, and those of its hooks.
    pub pods: BTreeMap<String, Pod>,
    pub lifecycle: Option<DeploymentLifecycle>,
}

impl Now {
    pub(super) fn take(&mut self, Moment { thing, gone, .. }: &Moment) {
        match thing {
            Thing::Deployment(object) => self.deployment = (!gone).then(|| (**object).clone()),
            Thing::Lifecycle(object) => self.lifecycle = (!gone).then(|| (**object).clone()),
            Thing::ReplicaSet(object) => put(&mut self.sets, object, *gone),
            Thing::Pod(object) => put(&mut self.pods, object, *gone),
        }
    }

    /// Every object and its version, to compare two of these.
    pub fn versions(&self) -> BTreeMap<String, Option<String>> {
        let mut versions = BTreeMap::new();
        let mut add = |kind: &str, name: String, version| versions.insert(format!("{kind} {name}"), version);
        self.deployment.iter().for_each(|one| _ = add("Deployment", one.name_any(), one.resource_version()));
        self.lifecycle.iter().for_each(|one| _ = add("DeploymentLifecycle", one.name_any(), one.resource_version()));
        self.sets.values().for_each(|one| _ = add("ReplicaSet", one.name_any(), one.resource_version()));
        self.pods.values().for_each(|one| _ = add("Pod", one.name_any(), one.resource_version()));
        versions
    }
}

fn put<K: Resource<DynamicType = ()> + Clone>(objects: &mut BTreeMap<String, K>, object: &K, gone: bool) {
    match gone {
        true => _ = objects.remove(&object.name_any()),
        false => _ = objects.insert(object.name_any(), object.clone()),
    }
}

#[derive(Default)]
struct Kept {
    moments: Vec<Moment>,
    now: Now,
    /// A watch had to list again: some change may be missing.
    gap: bool,
}

/// Records while it lives.
pub struct Story {
    ctx: Ctx,
    name: String,
    kept: Arc<watch::Sender<Kept>>,
    _tasks: JoinSet<()>,
}

impl Story {
    /// The story of the Deployment of this name, which is not there yet.
    pub async fn of(ctx: &Ctx, name: &str) -> Result<Self> {
        let kept = Arc::new(watch::Sender::new(Kept::default()));
        let mut tasks = JoinSet::new();
        let (listed, mut lists) = watch::channel(0);
        let listed = Arc::new(listed);
        let recording = Recording { name: name.to_owned(), kept: Arc::clone(&kept), listed };
        tasks.spawn(recording.clone().run(ctx.api(), |object| Thing::Deployment(Box::new(object))));
        tasks.spawn(recording.clone().run(ctx.api(), |object| Thing::ReplicaSet(Box::new(object))));
        tasks.spawn(recording.clone().run(ctx.api(), |object| Thing::Pod(Box::new(object))));
        tasks.spawn(recording.run(ctx.api(), |object| Thing::Lifecycle(Box::new(object))));
        let all = lists.wait_for(|lists| *lists == 4);
        tokio::time::timeout(DEADLINE, all).await.context("the lists never came")?.context("a watch has ended")?;
        Ok(Self { ctx: ctx.clone(), name: name.to_owned(), kept, _tasks: tasks })
    }

    /// Waits until a look at what is there finds something. It looks after every single change from now on: what is there
    /// for a moment only is not missed.
    pub async fn until<T>(&self, what: &str, look: impl FnMut(&Now) -> Option<T>) -> Result<T> {
        match tokio::time::timeout(DEADLINE, self.find(look)).await {
            Ok(found) => found,
            Err(_) => Err(anyhow!("waited {DEADLINE:?} in vain until {what}\n{}", self.report().await)),
        }
    }

    /// The same without a deadline: whoever asks has one.
    pub async fn find<T>(&self, mut look: impl FnMut(&Now) -> Option<T>) -> Result<T> {
        let mut kept = self.kept.subscribe();
        let (mut now, mut seen) = {
            let kept = kept.borrow_and_update();
            (kept.now.clone(), kept.moments.len())
        };
        if let Some(found) = look(&now) {
            return Ok(found);
        }
        loop {
            kept.changed().await.context("nobody records any more")?;
            let kept = kept.borrow_and_update();
            for moment in &kept.moments[seen..] {
                now.take(moment);
                if let Some(found) = look(&now) {
                    return Ok(found);
                }
            }
            seen = kept.moments.len();
        }
    }

    /// What is there, as far as it was seen.
    pub fn now(&self) -> Now {
        self.kept.borrow().now.clone()
    }

    /// Everything that has happened so far, all of it seen.
    pub async fn history(&self) -> Result<History> {
        self.ctx
            .poll_until(DEADLINE, "everything that has happened is seen", async || {
                let there = self.there().await?.versions();
                let seen = self.now().versions();
                Ok(if seen == there { Look::Done(()) } else { Look::NotYet(format!("{seen:?}, not {there:?}")) })
            })
            .await?;
        let kept = self.kept.borrow();
        ensure!(!kept.gap, "a watch fell behind and listed again: the history has a gap");
        Ok(History::of(kept.moments.clone()))
    }

    /// What is there, as the API server has it.
    async fn there(&self) -> Result<Now> {
        let deployment = self.ctx.api().get_opt(&self.name).await?;
        let lifecycle = self.ctx.api().get_opt(&self.name).await?;
        let mut now = Now { deployment, lifecycle, ..Now::default() };
        for set in self.ctx.api::<ReplicaSet>().list(&ListParams::default()).await?.items {
            if concerns(&set, &self.name) {
                now.sets.insert(set.name_any(), set);
            }
        }
        for pod in self.ctx.api::<Pod>().list(&ListParams::default()).await?.items {
            if concerns(&pod, &self.name) {
                now.pods.insert(pod.name_any(), pod);
            }
        }
        Ok(now)
    }

    /// For whoever waited in vain.
    async fn report(&self) -> String {
        let Now { deployment, sets, pods, lifecycle } = self.now();
        let mut titled = Vec::new();
        titled.extend(lifecycle.iter().map(|one| ("DeploymentLifecycle".to_owned(), report::object(one))));
        titled.extend(deployment.iter().map(|one| ("Deployment".to_owned(), report::object(one))));
        titled.extend(sets.values().map(|one| (format!("ReplicaSet `{}`", one.name_any()), report::object(one))));
        titled.extend(pods.values().map(|one| (format!("Pod `{}`", one.name_any()), report::object(one))));
        report::objects(&titled) + &report::events_in(&self.ctx.client(), self.ctx.namespace()).await
    }
}

#[derive(Clone)]
struct Recording {
    name: String,
    kept: Arc<watch::Sender<Kept>>,
    listed: Arc<watch::Sender<usize>>,
}

impl Recording {
    async fn run<K>(self, api: Api<K>, thing: fn(K) -> Thing)
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        let events = watcher(api, watcher::Config::default()).default_backoff();
        pin_mut!(events);
        let mut is_listed = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => self.kept.send_modify(|kept| kept.gap |= is_listed),
                Ok(watcher::Event::InitDone) if !is_listed => {
                    is_listed = true;
                    self.listed.send_modify(|listed| *listed += 1);
                }
                Ok(watcher::Event::InitDone) => {}
                Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => self.add(object, false, thing),
                Ok(watcher::Event::Delete(object)) => self.add(object, true, thing),
                // The watcher goes on by itself, after a pause.
                Err(_) => {}
            }
        }
    }

    fn add<K: Watchable>(&self, object: K, gone: bool, thing: fn(K) -> Thing) {
        if !concerns(&object, &self.name) {
            return;
        }
        let version = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0);
        let moment = Moment { version, thing: thing(object), gone };
        self.kept.send_modify(|kept| {
            kept.now.take(&moment);
            kept.moments.push(moment);
        });
    }
}

/// The Deployment of this name or its lifecycle; or a ReplicaSet, pod or hook pod of it.
fn concerns<K: Watchable>(object: &K, name: &str) -> bool {
    let (labels, owners) = (object.labels(), object.owner_references());
    let controller = owners.iter().find(|owner| owner.controller == Some(true));
    let by_controller = controller.is_some_and(|owner| match owner.kind.as_str() {
        "Deployment" => owner.name == name,
        "ReplicaSet" => labels.get("app").is_some_and(|app| app == name),
        _ => false,
    });
    object.name_any() == name || labels.get(HOOK_OF_LABEL).is_some_and(|of| of == name) || by_controller
}
