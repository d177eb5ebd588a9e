//! The watches of one process: how each asks, and when each was last answered.
//!
//! A connection that dies without a word (no FIN, no RST) looks like a quiet one. So a watch is short, every request has
//! a deadline, and [`Watches::ready`] tells when a watch has not been answered for longer than that can take.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use http::Request;
use kube::{Client, client::Body, runtime::watcher};
use tokio::time::Instant;
use tower::BoxError;

/// How long the parts of a watch may take.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The API server ends a watch after so many seconds. `kube` takes it for dead 5 s later.
    pub watch_seconds: u32,
    /// A list may take this long, and so may the first answer to a watch.
    pub answer: Duration,
    /// A watch that was not answered for longer is not ready.
    pub silence: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { watch_seconds: 15, answer: Duration::from_secs(8), silence: Duration::from_secs(30) }
    }
}

/// All watches of one process. Cheap to copy.
#[derive(Clone, Default)]
pub struct Watches(Arc<Inner>);

#[derive(Default)]
struct Inner {
    timing: Timing,
    all: Mutex<Vec<Weak<Watch>>>,
}

/// One of them: registered while it lives.
pub(crate) struct Watch {
    resource: String,
    timing: Timing,
    state: Mutex<State>,
}

struct State {
    answered: Instant,
    /// Every object was seen once.
    listed: bool,
    /// What went wrong last, if nothing went well since.
    trouble: Option<String>,
}

impl Watches {
    pub fn new(timing: Timing) -> Self {
        Self(Arc::new(Inner { timing, all: Mutex::default() }))
    }

    /// Whether every watch has seen all its objects and was answered lately; else what is missing.
    pub fn ready(&self) -> Result<(), String> {
        let all: Vec<_> = lock(&self.0.all).iter().filter_map(Weak::upgrade).collect();
        all.iter().try_for_each(|watch| watch.ready())
    }

    pub(crate) fn register(&self, resource: String) -> Arc<Watch> {
        let state = State { answered: Instant::now(), listed: false, trouble: None };
        let watch = Arc::new(Watch { resource, timing: self.0.timing, state: Mutex::new(state) });
        let mut all = lock(&self.0.all);
        all.retain(|watch| watch.strong_count() > 0);
        all.push(Arc::downgrade(&watch));
        watch
    }
}

impl Watch {
    pub(crate) fn resource(&self) -> &str {
        &self.resource
    }

    pub(crate) fn config(&self, config: watcher::Config) -> watcher::Config {
        config.timeout(self.timing.watch_seconds)
    }

    /// The client for its requests: each has a deadline, and its answer is noted.
    pub(crate) fn client(self: &Arc<Self>, client: Client) -> Client {
        let (namespace, watch) = (client.default_namespace().to_owned(), Arc::clone(self));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, watch) = (client.clone(), Arc::clone(&watch));
            async move {
                let answer = tokio::time::timeout(watch.timing.answer, ask(client, request));
                let answer = answer.await.map_err(|_| BoxError::from("the API server did not answer in time"))??;
                if answer.status().is_success() {
                    let mut state = watch.lock();
                    (state.answered, state.trouble) = (Instant::now(), None);
                }
                Ok::<_, BoxError>(answer)
            }
        });
        Client::new(service, namespace)
    }

    /// Every object was seen.
    pub(crate) fn listed(&self) {
        self.lock().listed = true;
    }

    /// The cluster does not serve the kind, which it need not: there is nothing to see.
    pub(crate) fn absent(&self) {
        let mut state = self.lock();
        (state.listed, state.answered) = (true, Instant::now());
    }

    /// Notes what went wrong. Returns whether that is new.
    pub(crate) fn failed(&self, trouble: &str) -> bool {
        let mut state = self.lock();
        let is_new = state.trouble.as_deref() != Some(trouble);
        state.trouble = Some(trouble.to_owned());
        is_new
    }

    fn ready(&self) -> Result<(), String> {
        let Self { resource, timing, .. } = self;
        let state = self.lock();
        let silence = state.answered.elapsed();
        let missing = match state.listed {
            false => format!("{resource} are not listed yet"),
            true if silence > timing.silence => {
                format!("the API server has not answered the watch of {resource} for {} s", silence.as_secs())
            }
            true => return Ok(()),
        };
        Err(state.trouble.iter().fold(missing, |missing, trouble| format!("{missing}: {trouble}")))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The answer: of a watch its beginning, of everything else the whole of it.
async fn ask(client: Client, request: Request<Body>) -> Result<http::Response<Body>, BoxError> {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let answer = client.send(request).await?;
    if is_watch && answer.status().is_success() {
        return Ok(answer);
    }
    let (head, body) = answer.into_parts();
    Ok(http::Response::from_parts(head, Body::from(body.collect_bytes().await?)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one assignment: a panic leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use boathook_api::PodNotification;
    use futures::StreamExt;
    use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
    use hyper::body::Bytes;
    use kube::{Api, api::PostParams, runtime::watcher::Event};

    use super::*;
    use crate::{lenient::watched, test_cluster::client_with_kinds};

    /// For so much longer than its timeout `kube` waits for the end of a watch.
    const WATCHER_MARGIN: Duration = Duration::from_secs(5);

    type Answer = http::Response<UnsyncBoxBody<Bytes, BoxError>>;

    /// A client whose connections die without a word: the first watch begins and then brings nothing, and the next
    /// `unanswered` ones are not answered at all.
    fn on_dying_connections(client: Client, unanswered: usize) -> Client {
        let count = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, count) = (client.clone(), Arc::clone(&count));
            async move {
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                let number = if is_watch { count.fetch_add(1, Ordering::SeqCst) } else { usize::MAX };
                match number {
                    0 => {
                        let silence = StreamBody::new(futures::stream::pending::<Result<_, BoxError>>());
                        Ok::<Answer, BoxError>(http::Response::new(UnsyncBoxBody::new(silence)))
                    }
                    _ if number <= unanswered => std::future::pending().await,
                    _ => Ok(client.send(request).await?.map(|body| body.map_err(BoxError::from).boxed_unsync())),
                }
            }
        });
        Client::new(service, "default")
    }

    fn one() -> PodNotification {
        let spec = serde_json::json!({"podName": "db-0", "notifier": "reload"});
        PodNotification::new("one", serde_json::from_value(spec).unwrap())
    }

    /// The parts of `Timing::default()`, made short.
    const SHORT: Timing = Timing { watch_seconds: 1, answer: Duration::from_secs(1), silence: Duration::from_secs(2) };

    #[tokio::test]
    async fn watch_on_a_dead_connection_is_answered_again() {
        let client = client_with_kinds().await;
        let line = on_dying_connections(client.clone(), 1);
        let events = watched::<PodNotification>(line, watcher::Config::default(), &Watches::new(SHORT));
        let mut events = std::pin::pin!(events);
        while !matches!(events.next().await, Some(Ok(Event::InitDone))) {}
        Api::namespaced(client, "default").create(&PostParams::default(), &one()).await.unwrap();
        let told = async { while !matches!(events.next().await, Some(Ok(Event::Apply(_)))) {} };
        tokio::time::timeout(Duration::from_secs(60), told).await.expect("the watch is blind");
    }

    #[test]
    fn blindness_is_bounded_by_the_silence_that_readiness_allows() {
        let Timing { watch_seconds, answer, silence } = Timing::default();
        let watch = Duration::from_secs(watch_seconds.into()) + WATCHER_MARGIN;
        assert!(watch + answer < silence && silence <= Duration::from_secs(30));
    }

    #[tokio::test]
    async fn watch_that_is_not_answered_is_not_ready() {
        let line = on_dying_connections(client_with_kinds().await, usize::MAX - 1);
        let watches = Watches::new(SHORT);
        let events = watched::<PodNotification>(line, watcher::Config::default(), &watches);
        assert!(watches.ready().unwrap_err().contains("are not listed yet"));

        let mut events = std::pin::pin!(events);
        while !matches!(events.next().await, Some(Ok(Event::InitDone))) {}
        assert_eq!(watches.ready(), Ok(()));
        let seen = events.by_ref().for_each(|_| std::future::ready(()));
        let missing = async {
            loop {
                match watches.ready() {
                    Ok(()) => tokio::time::sleep(Duration::from_millis(10)).await,
                    Err(missing) => return missing,
                }
            }
        };
        let missing = tokio::select! {
            () = seen => panic!("a watch has no end"),
            missing = tokio::time::timeout(Duration::from_secs(60), missing) => missing.expect("it is ready for ever"),
        };
        assert!(
            missing.contains("the API server has not answered the watch of podnotifications.boathook.dev for 2 s"),
            "{missing}"
        );
    }
}
