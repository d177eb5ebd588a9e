//! The webhook configurations in the cluster, validating and mutating, kept as they should be.
//!
//! The leader writes the webhooks, at paths with its token; every replica writes its own CA into them. So replicas of two
//! versions, or at two addresses, do not write to and fro. A change by another user is undone at once.

use std::{fmt::Debug, pin::pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString, ClusterResourceScope,
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
};
use kube::{Api, Client, Resource, ResourceExt, api::PostParams, runtime::watcher};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::watch, time::Instant};

use super::{
    Progress,
    authority::{self, Authority, Certificates},
    bundle,
    probe::{Failures, Probe},
    since,
    token::{Token, Tokens},
};
use crate::{Classified, ErrorClass, Lease, Watches, error_class::chain, lenient::touched};

/// A call may take this long.
const DEADLINE: Duration = Duration::from_secs(10);

/// How often it is looked at in any case.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How often the leader replaces the token. A user whose request the API server could not bring to a webhook was told the
/// webhook's URL, and so the token.
const REPLACE_TOKEN_EVERY: Duration = Duration::from_secs(60);

/// How often the webhooks are tried until they answer.
const PROBE_EVERY: Duration = Duration::from_millis(200);

/// What the cluster is to ask the webhooks about, without CAs.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub validating: ValidatingWebhookConfiguration,
    pub mutating: MutatingWebhookConfiguration,
}

/// Either kind of configuration.
pub(super) trait Configuration:
    Resource<DynamicType = (), Scope = ClusterResourceScope>
    + Clone
    + Debug
    + PartialEq
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Asks what the other one asks.
    fn ask_as(&mut self, other: &Self);

    fn client_configs(&self) -> impl Iterator<Item = &WebhookClientConfig>;

    fn client_configs_mut(&mut self) -> impl Iterator<Item = &mut WebhookClientConfig>;

    /// The tokens that the API server asks with.
    fn tokens(&self) -> Vec<Token> {
        let mut tokens = vec![];
        for token in self.client_configs().filter_map(Token::of) {
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        tokens
    }

    fn with_token(mut self, token: &Token) -> Self {
        self.client_configs_mut().for_each(|config| token.put_into(config));
        self
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    fn ask_as(&mut self, other: &Self) {
        self.webhooks.clone_from(&other.webhooks);
    }

    fn client_configs(&self) -> impl Iterator<Item = &WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config)
    }

    fn client_configs_mut(&mut self) -> impl Iterator<Item = &mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config)
    }
}

impl Configuration for MutatingWebhookConfiguration {
    fn ask_as(&mut self, other: &Self) {
        self.webhooks.clone_from(&other.webhooks);
    }

    fn client_configs(&self) -> impl Iterator<Item = &WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config)
    }

    fn client_configs_mut(&mut self) -> impl Iterator<Item = &mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config)
    }
}

pub(super) struct Keeper {
    client: Client,
    wanted: Wanted,
    authority: Authority,
    certificates: watch::Sender<Certificates>,
    probe: Probe,
    progress: Arc<watch::Sender<Progress>>,
    tokens: Arc<Tokens>,
    /// How often it does so while it leads.
    pub(super) replace_token_every: Duration,
}

/// What came of a look at the configuration.
#[derive(Debug, PartialEq, Eq)]
enum Mending {
    AsItShouldBe,
    Written,
}

impl Mending {
    fn and(self, other: Self) -> Self {
        if self == Self::Written { self } else { other }
    }
}

impl Keeper {
    pub(super) fn new(
        client: Client,
        wanted: Wanted,
        authority: Authority,
        certificates: watch::Sender<Certificates>,
        probe: Probe,
        progress: Arc<watch::Sender<Progress>>,
        tokens: Arc<Tokens>,
    ) -> Self {
        let replace_token_every = REPLACE_TOKEN_EVERY;
        Self { client, wanted, authority, certificates, probe, progress, tokens, replace_token_every }
    }

    pub(super) async fn run(self, lease: Lease, watches: &Watches) {
        let changes = stream::select(
            changes(&self.client, watches, &self.wanted.validating),
            changes(&self.client, watches, &self.wanted.mutating),
        );
        let mut changes = pin!(changes);
        let mut leadership = lease.changes();
        let mut issued = Timestamp::now();
        let mut token_since = Instant::now();
        let (mut troubles, mut led, mut failures) = (0, false, Failures::default());
        loop {
            // By the clock that certificates are judged by: it may have jumped, or the machine slept.
            if issued.duration_until(Timestamp::now()).unsigned_abs() >= authority::RENEW_EVERY {
                issued = Timestamp::now();
                self.renew();
            }
            let leads = lease.leads();
            // After its leadership too: a token that was written is not used again.
            if led && !leads || leads && token_since.elapsed() >= self.replace_token_every {
                token_since = Instant::now();
                self.replace_token();
            }
            led = leads;
            let pause = match self.mend(leads).await {
                Ok(Mending::AsItShouldBe) => {
                    troubles = 0;
                    self.advance(&mut failures).await
                }
                Ok(Mending::Written) => {
                    troubles += 1;
                    let pause = self.advance(&mut failures).await;
                    // Who writes again and again is fighting with someone: slower each time.
                    if troubles > 1 { Some(ErrorClass::Transient.delay(troubles)) } else { pause }
                }
                Err((class, error)) => {
                    troubles += 1;
                    tracing::warn!(error, "failed to write the webhook configuration, retrying");
                    Some(class.delay(troubles))
                }
            };
            let pause = pause.unwrap_or(LOOK_EVERY);
            if troubles > 1 {
                // Whatever changes meanwhile.
                tokio::time::sleep(pause).await;
                continue;
            }
            let pause =
                if leads { pause.min(self.replace_token_every.saturating_sub(token_since.elapsed())) } else { pause };
            tokio::select! {
                _ = changes.next() => {}
                Ok(()) = leadership.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn renew(&self) {
        match self.authority.issue(Timestamp::now()) {
            Ok(renewed) => drop(self.certificates.send_replace(renewed)),
            Err(error) => tracing::error!(error = chain(&error), "failed to renew the certificates"),
        }
        self.replace_token();
    }

    fn replace_token(&self) {
        if let Err(error) = self.tokens.replace_own(Instant::now()) {
            tracing::error!(error = chain(&error), "failed to replace the token of the webhooks");
        }
    }

    /// Tries the webhooks and marks the configuration, unless that is done. Returns when to try again.
    async fn advance(&self, failures: &mut Failures) -> Option<Duration> {
        match self.try_to_advance().await {
            Ok(checking) => {
                *failures = Failures::default();
                self.progress
                    .send_if_modified(|progress| std::mem::replace(&mut progress.checking, checking) != checking);
                (!checking).then_some(PROBE_EVERY)
            }
            Err(why) => {
                if failures.add(Instant::now()) {
                    tracing::warn!(why, "the probe of the webhooks keeps failing: the webhooks are not ready");
                } else {
                    tracing::debug!(why, "the probe of the webhooks failed, retrying");
                }
                Some(PROBE_EVERY)
            }
        }
    }

    /// Returns whether objects that are created from now on count as checked.
    async fn try_to_advance(&self) -> Result<bool, String> {
        if !self.progress.borrow().answered {
            self.probe.call().await?;
            self.progress.send_modify(|progress| progress.answered = true);
        }
        self.has_begun_checking().await
    }

    /// Writes the time from which the configuration counts into it, if it has none.
    async fn has_begun_checking(&self) -> Result<bool, String> {
        let api = Api::<ValidatingWebhookConfiguration>::all(self.client.clone());
        let name = self.wanted.validating.name_any();
        let mut stored = in_time("read", api.get(&name)).await.map_err(|(_, error)| error)?;
        if since::of(&stored).is_some() {
            return Ok(self.progress.borrow().checking || since::was_checked(&stored, self.probe.time().await?));
        }
        // The call that was answered before may have been by an earlier configuration.
        self.probe.call().await?;
        since::put_into(&mut stored, self.probe.time().await?);
        in_time("update", api.replace(&name, &PostParams::default(), &stored)).await.map_err(|(_, error)| error)?;
        Ok(false)
    }

    async fn mend(&self, leads: bool) -> Result<Mending, (ErrorClass, String)> {
        let outcome = match self.mend_one(&self.wanted.validating, leads).await {
            Ok(validating) => {
                self.mend_one(&self.wanted.mutating, leads).await.map(|mutating| validating.and(mutating))
            }
            Err(error) => Err(error),
        };
        self.progress.send_if_modified(|progress| {
            let stored = outcome.is_ok();
            std::mem::replace(&mut progress.stored, stored) != stored
        });
        outcome
    }

    async fn mend_one<K: Configuration>(&self, wanted: &K, leads: bool) -> Result<Mending, (ErrorClass, String)> {
        let (api, name) = (Api::<K>::all(self.client.clone()), wanted.name_any());
        let stored = in_time("read", api.get_opt(&name)).await?;
        // Before our CA is in it, the API server does not ask this replica: it knows the token in time.
        self.tokens.seen(&K::kind(&()), stored.iter().flat_map(K::tokens).collect(), Instant::now());
        let wanted = wanted.clone().with_token(&self.tokens.own());
        let own = self.certificates.borrow().ca.clone();
        let params = PostParams::default();
        match (mended(stored.as_ref(), &wanted, &own, leads, Timestamp::now()), stored) {
            (None, _) => return Ok(Mending::AsItShouldBe),
            (Some(mended), None) => in_time("create", api.create(&params, &mended)).await?,
            (Some(mended), Some(_)) => in_time("update", api.replace(&name, &params, &mended)).await?,
        };
        Ok(Mending::Written)
    }
}

/// Each time that our configuration of this kind has changed.
fn changes<K: Configuration>(client: &Client, watches: &Watches, wanted: &K) -> impl Stream<Item = ()> + Send + use<K> {
    let only_ours = watcher::Config::default().fields(&format!("metadata.name={}", wanted.name_any()));
    touched::<K>(client.clone(), only_ours, watches).map(drop)
}

async fn in_time<T>(action: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T, (ErrorClass, String)> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer.map_err(|error| {
            (error.class(), format!("failed to {action} the webhook configuration: {}", chain(&error)))
        }),
        Err(_) => Err((
            ErrorClass::Transient,
            format!("failed to {action} the webhook configuration: the API server did not answer in time"),
        )),
    }
}

/// What the configuration should be, if it is not. Everything is stated in `wanted`, so that nothing is left to the
/// API server's defaults and equal means equal.
fn mended<K: Configuration>(stored: Option<&K>, wanted: &K, own: &str, leads: bool, now: Timestamp) -> Option<K> {
    let mut mended = stored.unwrap_or(wanted).clone();
    if leads {
        mended.ask_as(wanted);
    }
    let known = stored.into_iter().flat_map(K::client_configs).filter_map(|config| config.ca_bundle.as_ref());
    let known: String = known.map(|bundle| String::from_utf8_lossy(&bundle.0) + "\n").collect();
    let bundle = bundle::merged(&known, own, now);
    for config in mended.client_configs_mut() {
        config.ca_bundle = Some(ByteString(bundle.clone().into_bytes()));
    }
    (stored != Some(&mended)).then_some(mended)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingWebhook;

    use super::*;

    fn configuration(name: &str) -> ValidatingWebhookConfiguration {
        let webhook = ValidatingWebhook { name: name.to_owned(), ..ValidatingWebhook::default() };
        ValidatingWebhookConfiguration { webhooks: Some(vec![webhook]), ..ValidatingWebhookConfiguration::default() }
    }

    fn names(configuration: &ValidatingWebhookConfiguration) -> Vec<&str> {
        configuration.webhooks.iter().flatten().map(|webhook| webhook.name.as_str()).collect()
    }

    #[test]
    fn the_leader_writes_what_it_says_and_others_only_their_ca() {
        let now = Timestamp::now();
        let ca = |identity| Authority::new(identity, "127.0.0.1").unwrap().issue(now).unwrap().ca;
        let (ours, theirs) = (ca("ours"), ca("theirs"));
        let (old, new) = (configuration("old"), configuration("new"));
        let first = mended(None, &old, &theirs, false, now).unwrap();
        assert_eq!(mended(Some(&first), &old, &theirs, true, now), None, "as it should be");

        let follower = mended(Some(&first), &new, &ours, false, now).unwrap();
        assert_eq!(names(&follower), ["old"]);
        let leader = mended(Some(&follower), &new, &ours, true, now).unwrap();
        assert_eq!(names(&leader), ["new"]);
        for configuration in [follower, leader] {
            let bundle = &configuration.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap().0;
            let bundle = std::str::from_utf8(bundle).unwrap();
            assert!(bundle.contains(ours.trim()) && bundle.contains(theirs.trim()), "{bundle}");
        }
    }
}
