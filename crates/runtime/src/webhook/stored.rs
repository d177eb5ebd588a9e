//! The tokens of the stored configurations, read again when a request has a token that this replica has not seen.
//!
//! After the leader has replaced the token, the API server may ask with it before this replica's watch has told of it.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Client, ResourceExt};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};

use super::{
    Wanted,
    configuration::Configuration,
    token::{Token, Tokens},
};
use crate::{error_class::chain, in_time};

/// Requests with invented tokens make a replica read this often at most; those that wait share a read.
const READ_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Stored {
    client: Client,
    validating: String,
    mutating: String,
    tokens: Arc<Tokens>,
    /// When the last read began.
    begun: Mutex<Option<Instant>>,
}

impl Stored {
    pub(super) fn new(client: Client, wanted: &Wanted, tokens: Arc<Tokens>) -> Self {
        let (validating, mutating) = (wanted.validating.name_any(), wanted.mutating.name_any());
        Self { client, validating, mutating, tokens, begun: Mutex::default() }
    }

    /// Whether the API server asks with this token.
    pub(super) async fn accept(&self, token: &Token) -> bool {
        let arrived = Instant::now();
        if self.tokens.accept(token, arrived) {
            return true;
        }
        self.read_since(arrived).await;
        self.tokens.accept(token, Instant::now())
    }

    /// Waits for a read that began after this.
    async fn read_since(&self, arrived: Instant) {
        let mut begun = self.begun.lock().await;
        if let Some(begun) = *begun {
            if begun > arrived {
                return;
            }
            sleep_until(begun + READ_EVERY).await;
        }
        *begun = Some(Instant::now());
        self.read::<ValidatingWebhookConfiguration>(&self.validating).await;
        self.read::<MutatingWebhookConfiguration>(&self.mutating).await;
    }

    async fn read<K: Configuration>(&self, name: &str) {
        match in_time(Api::<K>::all(self.client.clone()).get_opt(name)).await {
            Ok(found) => {
                let tokens = found.iter().flat_map(K::tokens).collect();
                self.tokens.seen(&K::kind(&()), tokens, Instant::now());
            }
            Err(error) => tracing::debug!(error = chain(&error), "failed to read a webhook configuration"),
        }
    }
}
