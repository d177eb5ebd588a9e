//! Watches that one bad object cannot stop.
//!
//! A watcher fails a whole list when one item of it does not parse. So objects are read as [`Lenient`]: those that
//! parse, and those of which only the metadata is known and what is wrong with them.

use std::{fmt::Debug, time::Duration};

use futures::{Stream, StreamExt, future};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;

use crate::error_class::ErrorClass;

/// An object, or what is wrong with it.
pub use kube::core::DeserializeGuard as Lenient;

/// What happens to the objects of one kind. It never ends and never fails: errors are told to the log, and the watch
/// begins anew with a back-off. What is told twice as often as objects change, and read by nobody, is left out.
pub fn watched<K>(
    api: Api<Lenient<K>>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<Lenient<K>>>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    kube::runtime::watcher(api, config)
        // Absent, not empty: an object that is written back with an empty list would lose its owners.
        .modify(|object| object.meta_mut().managed_fields = None)
        .backoff(Doubling(0))
        .filter(|event| {
            if let Err(error) = event {
                tracing::warn!(kind = %K::kind(&()), %error, "the watch failed, it begins anew");
            }
            future::ready(event.is_ok())
        })
}

/// Every object of one kind that comes, changes or goes, as it was last seen. Those that cannot be read are left out.
pub fn touched<K>(api: Api<Lenient<K>>, config: watcher::Config) -> impl Stream<Item = K> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watched(api, config)
        .touched_objects()
        .filter_map(|object| future::ready(object.ok().and_then(|object| object.0.ok())))
}

/// As for any other call that fails for a while: 100 ms, doubling to 10 s.
struct Doubling(u32);

impl Iterator for Doubling {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0 = self.0.saturating_add(1);
        Some(ErrorClass::Transient.delay(self.0))
    }
}

impl Backoff for Doubling {
    fn reset(&mut self) {
        self.0 = 0;
    }
}
