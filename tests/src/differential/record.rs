//! A collection watched in the background: every state of every object, in order.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use futures::{Stream, TryStreamExt};
use http_body_util::BodyExt;
use hyper::Request;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::play::lines;
use crate::DEADLINE;

const INTERVAL: Duration = Duration::from_millis(100);

/// Records while it lives.
pub(super) struct Recording {
    path: String,
    seen: Arc<Mutex<Seen>>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    /// Names in the order of their appearance.
    order: Vec<String>,
    states: BTreeMap<String, Vec<Value>>,
}

impl Recording {
    pub(super) async fn start(client: Client, path: String) -> Result<Self> {
        let request = Request::get(format!("{path}?watch=true")).body(Body::empty())?;
        let response = client.send(request).await.with_context(|| format!("failed to watch {path}"))?;
        if !response.status().is_success() {
            bail!("failed to watch {path}: {}", response.status());
        }
        let seen = Arc::<Mutex<Seen>>::default();
        let mut task = JoinSet::new();
        task.spawn(record(lines(response), Arc::clone(&seen)));
        Ok(Self { path, seen, _task: task })
    }

    /// The states of each object, after everything that is there now has been seen.
    pub(super) async fn caught_up(&self, client: Client) -> Result<Vec<Vec<Value>>> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let response = client.send(Request::get(&self.path).body(Body::empty())?).await?;
            let body = response.into_body().collect().await?.to_bytes();
            let list: Value = serde_json::from_slice(&body).context("the list is not JSON")?;
            {
                let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                if seen.is_as(&list) {
                    return Ok(seen.order.iter().map(|name| seen.states[name].clone()).collect());
                }
            }
            if Instant::now() > deadline {
                bail!("the watch of {} never showed what the list shows: {list}", self.path);
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

async fn record(mut lines: impl Stream<Item = std::io::Result<String>> + Unpin, seen: Arc<Mutex<Seen>>) {
    // A watch that ends or shows what is no event never catches up, and that is reported.
    while let Ok(Some(line)) = lines.try_next().await {
        let Ok(event) = serde_json::from_str::<Value>(&line) else { return };
        let name = event.pointer("/object/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let state = match event["type"].as_str() {
            Some("DELETED") => json!({"deleted": true}),
            _ => event["object"].clone(),
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.states.contains_key(&name) {
            seen.order.push(name.clone());
        }
        seen.states.entry(name).or_default().push(state);
    }
}

impl Seen {
    /// The last state of every object is the listed one, and what is not listed is deleted.
    fn is_as(&self, list: &Value) -> bool {
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let listed: BTreeMap<_, _> =
            items.iter().filter_map(|item| Some((item.pointer("/metadata/name")?.as_str()?, version(item)))).collect();
        let last = |name: &str| self.states.get(name).and_then(|states| states.last());
        let all_seen = listed.iter().all(|(name, wanted)| last(name).is_some_and(|state| version(state) == *wanted));
        let rest_gone = self.order.iter().all(|name| {
            listed.contains_key(name.as_str()) || last(name).is_some_and(|state| state.get("deleted").is_some())
        });
        all_seen && rest_gone
    }
}
