//! By PodNotifications: created, and watched until each has ended.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use boathook_api::{
    PodNotification,
    pod_notification::{PodNotificationSpec, State},
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;

use super::AT_ONCE;
use crate::pods::{NOTIFIER, Place};

const DEADLINE: Duration = Duration::from_secs(300);

pub(super) struct Told {
    pub(super) latencies: Vec<f64>,
    /// Of the object and of Events, by Boathook.
    pub(super) writes_each: f64,
}

/// One that is under way: when it was asked for, and how often it was written since.
struct Asked {
    at: Instant,
    writes: usize,
}

pub(super) async fn tell(place: &Place, count: usize, round: usize) -> Result<Told> {
    let api: Api<PodNotification> = Api::namespaced(place.client.clone(), &place.namespace);
    let events: Api<Event> = Api::namespaced(place.client.clone(), &place.namespace);
    let begun = api.list_metadata(&ListParams::default()).await.context("failed to list")?;
    let version = begun.metadata.resource_version.context("a list has a version")?;
    let watch = api.watch(&WatchParams::default().timeout(290), &version).await.context("failed to watch")?;
    let (asked, seen) = tokio::try_join!(ask(place, &api, count, round), follow(watch.boxed(), count))?;
    let mut latencies = Vec::new();
    let mut writes = 0;
    for (name, (ended, written)) in seen {
        let asked = asked.get(&name).with_context(|| format!("`{name}` is not ours"))?;
        latencies.push(ended.duration_since(asked.at).as_secs_f64() * 1000.0);
        writes += written - asked.writes;
    }
    let told = events.list(&ListParams::default()).await.context("failed to list Events")?.items;
    let ours =
        told.iter().filter(|event| event.reporting_controller.as_deref().is_some_and(|by| by.contains("boathook")));
    let ours =
        ours.filter(|event| event.regarding.as_ref().is_some_and(|of| of.kind.as_deref() == Some("PodNotification")));
    let told = ours.count();
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.context("failed to tidy up")?;
    events.delete_collection(&DeleteParams::default(), &ListParams::default()).await.context("failed to tidy up")?;
    Ok(Told { latencies, writes_each: (writes + told) as f64 / count as f64 })
}

async fn ask(place: &Place, api: &Api<PodNotification>, count: usize, round: usize) -> Result<HashMap<String, Asked>> {
    let one = |number: usize| async move {
        let spec = json!({"podName": place.pod(number), "notifier": NOTIFIER, "startDeadlineSeconds": 280});
        let spec: PodNotificationSpec = serde_json::from_value(spec)?;
        let name = format!("nudge-{round}-{number}");
        let at = Instant::now();
        let object = PodNotification::new(&name, spec);
        api.create(&PostParams::default(), &object).await.with_context(|| format!("failed to create `{name}`"))?;
        // The create itself is an event, and not Boathook's.
        anyhow::Ok((name, Asked { at, writes: 1 }))
    };
    stream::iter((0..count).map(one)).buffer_unordered(AT_ONCE).try_collect().await
}

/// When each had ended, and how many events told of it until then.
async fn follow(
    mut watch: stream::BoxStream<'_, kube::Result<WatchEvent<PodNotification>>>,
    count: usize,
) -> Result<HashMap<String, (Instant, usize)>> {
    let (mut written, mut ended) = (HashMap::<String, usize>::new(), HashMap::new());
    let all = async {
        while ended.len() < count {
            let event = watch.try_next().await.context("the watch failed")?.context("the watch ended")?;
            let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else { continue };
            let name = object.name_any();
            let writes = written.entry(name.clone()).or_default();
            *writes += 1;
            match object.status.as_ref().map(|status| (status.state, &status.error)) {
                Some((State::Succeeded, _)) => {
                    ended.insert(name, (Instant::now(), *writes));
                }
                Some((State::Failed, error)) => bail!("`{name}` failed: {error:?}"),
                Some((State::New, _)) | None => {}
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(DEADLINE, all).await.with_context(|| format!("not all had ended after {DEADLINE:?}"))??;
    Ok(ended)
}
