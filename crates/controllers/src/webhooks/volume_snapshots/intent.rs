//! The intent: the ApplicationSnapshot that freezes, waits for the cut and thaws. While a request waits for it, it lives
//! as long as somebody waits.

use std::pin::pin;

use boathook_api::ApplicationSnapshot;
use boathook_runtime::{Classified, ErrorClass, error_class::chain, in_time};
use futures::{StreamExt, TryFutureExt};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
    runtime::{WatchStreamExt, watcher::watch_object},
};
use tokio::{sync::oneshot, time::Instant};

use super::standing::{self, Standing};

/// How often a deletion is tried, with back-off. Then the cut timeout of the snapshot, and its hooks' expiry, thaw.
const MOST_TRIES: u32 = 12;

/// An intent that is written down. Dropped before it was kept, it is deleted.
pub(super) struct Intent {
    api: Api<ApplicationSnapshot>,
    name: String,
    keep: oneshot::Sender<()>,
}

impl Intent {
    /// Writes it. Also when this future is dropped midway, nothing is left of it.
    pub(super) async fn write(client: Client, intended: ApplicationSnapshot) -> Result<Self, String> {
        let (name, namespace) = (intended.name_any(), intended.namespace().unwrap_or_default());
        let api: Api<ApplicationSnapshot> = Api::namespaced(client, &namespace);
        let (keep, kept) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let watching = api.clone();
        // A task of its own, so that the create is not broken off and a deletion never overtakes it.
        tokio::spawn(async move {
            let written = write(&watching, &intended).await;
            // Nobody waits for the word: nor will anybody keep it.
            let _ = tell.send(written);
            if kept.await.is_err() {
                delete(&watching, &intended.name_any()).await;
            }
        });
        told.await
            .map_err(|_| "failed to create the ApplicationSnapshot: the task of the webhook has ended".to_owned())??;
        Ok(Self { api, name, keep })
    }

    /// Waits until everything is frozen; else it says why not. What fails by itself is kept, for a person to read.
    pub(super) async fn frozen(self, by_when: Instant) -> Result<(), String> {
        let name = &self.name;
        let see = format!("see `kubectl describe applicationsnapshot {name}`");
        match tokio::time::timeout_at(by_when, self.settled()).await {
            Ok(Standing::Frozen) => {
                self.keep();
                Ok(())
            }
            Ok(Standing::Over(why)) => {
                self.keep();
                Err(format!("Boathook could not freeze the application for this snapshot: {why} ({see})"))
            }
            Ok(Standing::UnderWay) | Err(_) => {
                let message = "the hooks did not freeze the application within the time limit of this request, so \
                               Boathook thaws it: retry, or create an ApplicationSnapshot, which has no such limit";
                Err(message.to_owned())
            }
        }
    }

    fn keep(self) {
        // The task waits for this word, and ends.
        let _ = self.keep.send(());
    }

    /// Watches the one object, whichever process works on it.
    async fn settled(&self) -> Standing {
        let mut changes = pin!(watch_object(self.api.clone(), &self.name).default_backoff());
        while let Some(change) = changes.next().await {
            match change {
                Ok(Some(snapshot)) => match standing::of(&snapshot) {
                    Standing::UnderWay => {}
                    settled @ (Standing::Frozen | Standing::Over(_)) => return settled,
                },
                Ok(None) => {
                    return Standing::Over("the ApplicationSnapshot of this VolumeSnapshot was deleted".to_owned());
                }
                Err(error) => tracing::debug!(%error, name = self.name, "the watch failed, retrying"),
            }
        }
        Standing::UnderWay
    }
}

/// One that is there already, for the same VolumeSnapshot, is as good: the API server may ask twice.
async fn write(api: &Api<ApplicationSnapshot>, intended: &ApplicationSnapshot) -> Result<(), String> {
    let Err(error) = in_time(api.create(&PostParams::default(), intended)).await else { return Ok(()) };
    let failed = || format!("failed to create ApplicationSnapshot `{}`: {}", intended.name_any(), chain(&error));
    if error.class() != ErrorClass::AlreadyExists {
        return Err(failed());
    }
    let there = in_time(api.get(&intended.name_any())).map_err(|_| failed()).await?;
    if there.spec.source == intended.spec.source { Ok(()) } else { Err(failed()) }
}

/// Deletes it, which thaws what was frozen.
async fn delete(api: &Api<ApplicationSnapshot>, name: &str) {
    for tries in 1..=MOST_TRIES {
        let Err(error) = in_time(api.delete(name, &DeleteParams::default())).await else { return };
        let class = error.class();
        if class == ErrorClass::NotFound {
            return;
        }
        tracing::warn!(
            error = chain(&error),
            name,
            "failed to delete an ApplicationSnapshot whose request has ended, retrying"
        );
        tokio::time::sleep(class.delay(tries)).await;
    }
}
