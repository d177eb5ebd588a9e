//! Writes, counted by what watches tell of them. They are followed all the time: no cluster remembers for long.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, future::try_join_all};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
    core::DynamicObject,
    discovery::ApiResource,
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::{Instant, timeout},
};

/// What a watch has not told after so long is asked for again.
const LOOK: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(60);

/// One write, as a watch tells it.
pub(crate) struct Write<'a> {
    /// The object before, if there was one.
    pub(crate) before: Option<&'a DynamicObject>,
    pub(crate) now: &'a DynamicObject,
    /// It was the last one: the object is gone.
    pub(crate) is_gone: bool,
}

/// Whether a write is one of Boathook's.
pub(crate) type IsOurs = fn(&Write<'_>) -> bool;

/// The writes of Boathook to some kinds of objects of a namespace, counted from one look to the next.
pub(crate) struct Counted {
    kinds: Vec<Followed>,
    /// Those that follow. Dropped, they end.
    _following: JoinSet<()>,
}

struct Followed {
    objects: Api<DynamicObject>,
    kind: String,
    is_ours: IsOurs,
    /// What was there when the last write that was counted had been made, by UID.
    known: HashMap<String, DynamicObject>,
    told: UnboundedReceiver<Result<WatchEvent<DynamicObject>>>,
}

impl Counted {
    pub(crate) async fn begin(client: &Client, namespace: &str, kinds: Vec<(ApiResource, IsOurs)>) -> Result<Self> {
        let mut counted = Self { kinds: Vec::new(), _following: JoinSet::new() };
        for (resource, is_ours) in kinds {
            let objects = Api::namespaced_with(client.clone(), namespace, &resource);
            let (since, known) = list(&objects).await?;
            let (tell, told) = unbounded_channel();
            counted._following.spawn(follow(objects.clone(), since, tell));
            counted.kinds.push(Followed { objects, kind: resource.kind, is_ours, known, told });
        }
        Ok(counted)
    }

    /// How many writes each kind had, in the order in which the kinds were named.
    pub(crate) async fn by_kind(&mut self) -> Result<Vec<f64>> {
        try_join_all(self.kinds.iter_mut().map(Followed::since_last_time)).await
    }

    pub(crate) async fn since_last_time(&mut self) -> Result<f64> {
        Ok(self.by_kind().await?.iter().sum())
    }
}

impl Followed {
    /// Counts until what was told is what is there.
    async fn since_last_time(&mut self) -> Result<f64> {
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed() < DEADLINE {
            let (_, there) = list(&self.objects).await?;
            while let Ok(event) = self.told.try_recv() {
                count += self.counted(event?)?;
            }
            while !self.is_all(&there) {
                let Ok(event) = timeout(LOOK, self.told.recv()).await else { break };
                count += self.counted(event.context("nobody follows any more")??)?;
            }
            if self.is_all(&there) {
                return Ok(count as f64);
            }
        }
        bail!("the watch of {} did not tell everything within {DEADLINE:?}", self.kind)
    }

    /// One, if it is ours.
    fn counted(&mut self, event: WatchEvent<DynamicObject>) -> Result<usize> {
        let (now, is_gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(_) => return Ok(0),
            WatchEvent::Error(error) => bail!("the watch of {} failed: {error:?}", self.kind),
        };
        let uid = now.uid().unwrap_or_default();
        let is_ours = (self.is_ours)(&Write { before: self.known.get(&uid), now: &now, is_gone });
        if is_gone {
            self.known.remove(&uid);
        } else {
            self.known.insert(uid, now);
        }
        Ok(usize::from(is_ours))
    }

    fn is_all(&self, there: &HashMap<String, DynamicObject>) -> bool {
        let is_known = |(uid, object): (&String, &DynamicObject)| {
            self.known.get(uid).is_some_and(|known| known.resource_version() == object.resource_version())
        };
        self.known.len() == there.len() && there.iter().all(is_known)
    }
}

/// Tells every event from this version on, until nobody listens or the watch fails. One that ends by itself is gone on
/// with where it ended.
async fn follow(
    objects: Api<DynamicObject>,
    mut since: String,
    tell: UnboundedSender<Result<WatchEvent<DynamicObject>>>,
) {
    loop {
        let mut watch = match objects.watch(&WatchParams::default(), &since).await {
            Ok(watch) => watch.boxed(),
            Err(error) => return drop(tell.send(Err(error).context("failed to watch"))),
        };
        while let Some(event) = watch.next().await {
            match &event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => {
                    since = object.resource_version().unwrap_or_default();
                }
                Ok(WatchEvent::Bookmark(bookmark)) => since.clone_from(&bookmark.metadata.resource_version),
                // Whoever counts is told.
                Ok(WatchEvent::Error(_)) | Err(_) => {}
            }
            let is_over = matches!(event, Ok(WatchEvent::Error(_)) | Err(_));
            if tell.send(event.context("the watch failed")).is_err() || is_over {
                return;
            }
        }
    }
}

async fn list(objects: &Api<DynamicObject>) -> Result<(String, HashMap<String, DynamicObject>)> {
    let list = objects.list(&ListParams::default()).await.context("failed to list")?;
    let version = list.metadata.resource_version.context("a list has a version")?;
    Ok((version, list.items.into_iter().map(|object| (object.uid().unwrap_or_default(), object)).collect()))
}
