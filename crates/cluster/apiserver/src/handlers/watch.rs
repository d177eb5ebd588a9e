//! `watch`: every change after a version, in order, as one JSON document a line, until the client goes or time is up.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Call;
use super::list::Selector;
use crate::accept::Form;
use crate::answer::{self, Body};
use crate::metadata_only;
use crate::object;
use crate::status::{Result, Status};
use crate::store::{Event, EventKind, WatchError, Watcher};

/// How long a watch lives when the client does not say: Kubernetes takes 30 to 60 minutes.
const DEFAULT_LIFE: Duration = Duration::from_secs(30 * 60);
/// How often a client that asked for it is told the version that it has reached.
const BOOKMARK: Duration = Duration::from_secs(60);
/// And once more before a watch ends, so that the next one begins where this one was.
const BEFORE_THE_END: Duration = Duration::from_secs(2);

/// A watch under way.
struct Watching {
    call: Call,
    watcher: Watcher,
    selector: Selector,
    /// The version that the client has seen.
    after: u64,
    /// What is to be sent before anything new.
    first: VecDeque<Bytes>,
    end: Instant,
    bookmarks: bool,
    next_bookmark: Instant,
    over: bool,
    /// Nothing was sent yet: the first table has the columns.
    fresh: bool,
}

impl Call {
    pub(super) async fn watch(self) -> Result<Response<Body>> {
        let selector = self.selector()?;
        let initial = self.query.is_set("sendInitialEvents");
        // Kubernetes takes this for its own mistake, and says no reason.
        let wrong = |message| Status { code: 500, reason: "".into(), message, details: Value::Null };
        let from = self.query.version().map_err(wrong)?;
        let from = from.unwrap_or(0);
        let bookmarks = self.query.is_set("allowWatchBookmarks");
        let life = self.query.number::<i64>("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let life = life.map_or(DEFAULT_LIFE, Duration::from_secs);
        // Without a version a watch begins with what there is.
        let listed = initial || from == 0;
        let view = self.api.store.view();
        let after = if listed { view.revision() } else { from };
        let mut first = VecDeque::new();
        let watcher = match self.api.store.watch(self.prefix(), Some(after)) {
            Ok(watcher) => watcher,
            Err(WatchError::TooOld(_)) => return Ok(self.too_old(after)),
            // A version that is yet to come: what comes until then is not for this watch.
            Err(WatchError::Ahead { .. }) => self.api.store.watch(self.prefix(), None).map_err(Status::internal)?,
        };
        if listed {
            for (_, stored) in view.list(&self.prefix(), None, None) {
                if selector.matches(&stored.object) {
                    first.push_back(self.event("ADDED", &stored.object, first.is_empty()));
                }
            }
        }
        if initial && bookmarks {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            first.push_back(self.bookmark(view.revision(), Some(annotations)));
        }
        let fresh = first.is_empty();
        let now = Instant::now();
        let watching = Watching {
            call: self,
            watcher,
            selector,
            after,
            first,
            end: now + life,
            bookmarks,
            next_bookmark: (now + BOOKMARK).min((now + life).checked_sub(BEFORE_THE_END).unwrap_or(now).max(now)),
            over: false,
            fresh,
        };
        let chunks = futures::stream::unfold(watching, |mut watching| async move {
            let chunk = watching.next().await?;
            Some((chunk, watching))
        });
        Ok(answer::stream("application/json", Box::pin(chunks)))
    }

    /// A watch from a version that is gone answers at once, as an event, and ends.
    fn too_old(&self, version: u64) -> Response<Body> {
        let status = Status::expired(format!("too old resource version: {version}"));
        answer::bytes(http::StatusCode::OK, "application/json", line("ERROR", &status.body()))
    }

    fn event(&self, kind: &str, object: &Value, is_first: bool) -> Bytes {
        let object = self.resource.shown(object);
        match self.form {
            Form::Plain | Form::AggregatedDiscovery(_) => line(kind, &object),
            Form::PartialObjectMetadata => line(kind, &metadata_only::partial(&object)),
            Form::Table => line(kind, &self.resource.printer.event(&object, self.include, self.api.now(), is_first)),
        }
    }

    fn bookmark(&self, revision: u64, annotations: Option<Value>) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let object =
            json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
        line("BOOKMARK", &object)
    }
}

impl Watching {
    /// The next line; none when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(line) = self.first.pop_front() {
            return Some(line);
        }
        while !self.over {
            let pause = self.end.min(if self.bookmarks { self.next_bookmark } else { self.end });
            match tokio::time::timeout_at(pause, self.watcher.next()).await {
                Ok(Ok(event)) => {
                    if let Some(line) = self.told(&event) {
                        return Some(line);
                    }
                }
                Ok(Err(_)) => {
                    self.over = true;
                    let status = Status::expired("too old resource version: the watch fell behind");
                    return Some(line("ERROR", &status.body()));
                }
                Err(_) if Instant::now() >= self.end => self.over = true,
                Err(_) => {
                    let now = Instant::now();
                    let last = self.end.checked_sub(BEFORE_THE_END).filter(|last| *last > now).unwrap_or(self.end);
                    self.next_bookmark = (now + BOOKMARK).min(last);
                    return Some(self.call.bookmark(self.watcher.position(), None));
                }
            }
        }
        None
    }

    /// The event as this watcher sees it: an object that begins to match is new to it, one that ceases is gone.
    fn told(&mut self, event: &Event) -> Option<Bytes> {
        if event.revision <= self.after {
            return None;
        }
        let before = event.previous.as_ref().is_some_and(|object| self.selector.matches(object));
        let now = event.kind != EventKind::Deleted && self.selector.matches(&event.object);
        let kind = match (before, now) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return None,
        };
        let is_first = std::mem::take(&mut self.fresh);
        // What ceases to match is shown as it was when it still did.
        match event.previous.as_ref().filter(|_| kind == "DELETED" && event.kind != EventKind::Deleted) {
            Some(previous) => {
                let mut last = Value::clone(previous);
                let version = object::resource_version(&event.object).to_owned();
                object::metadata_mut(&mut last).insert("resourceVersion".to_owned(), version.into());
                Some(self.call.event(kind, &last, is_first))
            }
            None => Some(self.call.event(kind, &event.object, is_first)),
        }
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    // The object is written out as it stands: a hundred watchers make no hundred copies of it.
    Bytes::from(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
}
