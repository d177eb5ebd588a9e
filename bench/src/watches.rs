//! Watchers: how long after a write was sent each of them has its event.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::client::Target;
use crate::objects::{CONFIG_MAPS, config_map};

const DEADLINE: Duration = Duration::from_secs(60);
/// The first writes warm connections and caches, and do not count.
const WARM: usize = 5;
/// No event is longer.
const LONGEST: usize = 64 * 1024;

/// Milliseconds, one for each watcher and write. A write waits until all have seen the one before.
pub(crate) async fn latencies(target: &Target, watchers: usize, writes: usize, round: usize) -> Result<Vec<f64>> {
    let mut writer = target.connect().await?;
    let listed: Value = serde_json::from_slice(&writer.read(&format!("{CONFIG_MAPS}?limit=1")).await?)?;
    let version = listed["metadata"]["resourceVersion"].as_str().context("a list has a version")?;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}");

    let (sender, mut seen) = mpsc::unbounded_channel();
    let open = async || {
        let mut connection = target.connect().await?;
        let events = connection.get(&path).await?.into_body();
        anyhow::Ok((connection, events))
    };
    for (connection, events) in try_join_all((0..watchers).map(|_| open())).await? {
        let sender = sender.clone();
        tokio::spawn(async move {
            // Nobody receives any more when the measuring is over.
            let _ = sender.send(follow(events, round, &sender).await);
            drop(connection);
        });
    }
    let mut latencies = Vec::with_capacity(watchers * writes);
    for number in 0..WARM + writes {
        let sent = Instant::now();
        writer.create(CONFIG_MAPS, config_map(&name(round, number))).await?;
        for _ in 0..watchers {
            let event = timeout(DEADLINE, seen.recv()).await.context("a watcher never saw a write")?;
            let (seen, at) = event.context("all watchers have ended")??;
            if seen != number {
                bail!("a watcher saw the write {seen} when {number} was written");
            }
            if number >= WARM {
                latencies.push(at.duration_since(sent).as_secs_f64() * 1000.0);
            }
        }
    }
    Ok(latencies)
}

fn name(round: usize, number: usize) -> String {
    format!("watched-{round}-{number}")
}

type Seen = Result<(usize, Instant)>;

/// Tells of every event the moment it is there. Returns only when the watch ends, which is too early.
async fn follow(mut events: Incoming, round: usize, sender: &mpsc::UnboundedSender<Seen>) -> Seen {
    let (mut line, mut number) = (Vec::new(), 0);
    while let Some(frame) = events.frame().await {
        let Ok(data) = frame.context("a watch broke off")?.into_data() else { continue };
        line.extend_from_slice(&data);
        if line.ends_with(b"\n") {
            let now = Instant::now();
            let expected = format!("\"{}\"", name(round, number));
            if !String::from_utf8_lossy(&line).contains(&expected) {
                bail!("a watcher expected {expected} and saw {}", String::from_utf8_lossy(&line));
            }
            line.clear();
            let _ = sender.send(Ok((number, now)));
            number += 1;
        } else if line.len() > LONGEST {
            bail!("an event does not end");
        }
    }
    bail!("a watch ended")
}
