//! Watches that one bad object cannot stop, and that a failing API server is not flooded by.
//!
//! A watcher fails a whole list when one item of it does not parse. So objects are read as [`Lenient`]: those that
//! parse, and those of which only the metadata is known and what is wrong with them.

use std::{fmt::Debug, sync::Arc};

use boathook_api::words::GROUP;
use futures::{Stream, StreamExt, future, stream};
use kube::{
    Client, Resource,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;

use crate::{
    error_class::{ErrorClass, chain},
    watches::{Watch, Watches},
};

/// An object, or what is wrong with it.
pub use kube::core::DeserializeGuard as Lenient;

/// What happens to the objects of one kind, in all namespaces. It never ends and never fails: an error is logged when it
/// is new, and the watch begins anew with a back-off. Managed fields are dropped: nothing reads them.
pub fn watched<K>(
    client: Client,
    config: watcher::Config,
    watches: &Watches,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let watch = watches.register(format!("{}.{}", K::plural(&()), K::group(&())).trim_end_matches('.').to_owned());
    let api = kube::Api::<K>::all(watch.client(client));
    let events = kube::runtime::watcher(api, watch.config(config))
        // Absent, not empty: an object that is written back with an empty list would lose its owners.
        .modify(|object| object.meta_mut().managed_fields = None)
        .boxed();
    stream::unfold((events, watch, 0_u32), |(mut events, watch, mut failures)| async move {
        loop {
            match events.next().await? {
                // A list that fails begins so too.
                Ok(Event::Init) => return Some((Ok(Event::Init), (events, watch, failures))),
                Ok(event) => {
                    if matches!(event, Event::InitDone) {
                        watch.listed();
                    }
                    return Some((Ok(event), (events, watch, 0)));
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    failed::<K>(&watch, &error);
                    tokio::time::sleep(ErrorClass::Transient.delay(failures)).await;
                }
            }
        }
    })
}

/// Every object of one kind that comes, changes or goes, as it was last seen. Those that cannot be read are left out.
pub fn touched<K>(client: Client, config: watcher::Config, watches: &Watches) -> impl Stream<Item = K> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watched::<Lenient<K>>(client, config, watches)
        .touched_objects()
        .filter_map(|object| future::ready(object.ok().and_then(|object| object.0.ok())))
}

/// The same of the metadata alone.
pub fn touched_metadata<K>(
    client: Client,
    watches: &Watches,
) -> impl Stream<Item = PartialObjectMeta<K>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    watched::<PartialObjectMeta<K>>(client, watcher::Config::default(), watches)
        .touched_objects()
        .filter_map(|object| future::ready(object.ok()))
}

/// Logs an error, once, with what to do about it.
fn failed<K: Resource<DynamicType = ()>>(watch: &Arc<Watch>, error: &watcher::Error) {
    let is_ours = K::group(&()) == GROUP;
    if !is_ours && status_of(error) == Some(404) {
        watch.absent();
    }
    let trouble = trouble(watch.resource(), is_ours, error);
    if watch.failed(&trouble) {
        tracing::warn!("{trouble}");
    }
}

fn status_of(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// What went wrong, and what to do.
fn trouble(resource: &str, is_ours: bool, error: &watcher::Error) -> String {
    let verb = if matches!(error, watcher::Error::InitialListFailed(_)) { "list" } else { "watch" };
    let why = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => chain(error),
        watcher::Error::WatchError(status) => status.message.clone(),
        watcher::Error::NoResourceVersion => "the answer has no resourceVersion".to_owned(),
    };
    match status_of(error) {
        Some(401 | 403) => {
            format!("the right to {verb} {resource} is missing: bind the role of deploy/rbac to this account: {why}")
        }
        Some(404) if is_ours => {
            format!("the cluster does not have {resource}: run `kubectl apply --server-side -f deploy/crds`")
        }
        Some(404) => format!("the cluster does not have {resource}: objects that need them wait until it does"),
        _ => format!("failed to {verb} {resource}, retrying: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use boathook_api::PodNotification;
    use kube::{client::Body, core::Status};
    use tokio::sync::Semaphore;

    use super::*;

    /// An API server that answers every request with this, and counts them.
    fn answering(code: u16, requests: Arc<Semaphore>) -> Client {
        let service = tower::service_fn(move |_: http::Request<Body>| {
            requests.add_permits(1);
            let status = Status::failure("no", "Refused").with_code(code);
            async move { http::Response::builder().status(code).body(Body::from(serde_json::to_vec(&status).unwrap())) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn failing_list_is_retried_with_a_growing_pause() {
        for code in [403, 404, 500] {
            let requests = Arc::new(Semaphore::new(0));
            let client = answering(code, Arc::clone(&requests));
            let events = watched::<PodNotification>(client, watcher::Config::default(), &Watches::default());
            let watching = tokio::spawn(events.for_each(|_| future::ready(())));
            let begun = Instant::now();
            drop(requests.acquire_many(5).await.unwrap());
            // 100 + 200 + 400 + 800 ms.
            assert!(begun.elapsed() >= Duration::from_millis(1500), "{code}: {:?}", begun.elapsed());
            watching.abort();
        }
    }

    #[test]
    fn trouble_says_what_to_do() {
        let status = |code| kube::Error::Api(Box::new(Status::failure("no", "Refused").with_code(code)));
        let told =
            |code, is_ours| trouble("things.boathook.dev", is_ours, &watcher::Error::InitialListFailed(status(code)));
        assert_eq!(
            told(403, true),
            "the right to list things.boathook.dev is missing: bind the role of deploy/rbac to this account: no"
        );
        assert!(told(404, true).ends_with("run `kubectl apply --server-side -f deploy/crds`"));
        assert!(!told(404, false).contains("deploy/crds"));
        assert_eq!(told(500, true), "failed to list things.boathook.dev, retrying: no");
    }

    #[tokio::test]
    async fn a_right_or_kind_that_is_missing_is_logged_once() {
        let watches = Watches::default();
        let watch = watches.register("podnotifications.boathook.dev".to_owned());
        assert!(watch.failed("the right is missing"));
        assert!(!watch.failed("the right is missing"));
        assert!(watch.failed("the connection was refused"));
        let missing = watches.ready().unwrap_err();
        assert_eq!(missing, "podnotifications.boathook.dev are not listed yet: the connection was refused");
    }
}
