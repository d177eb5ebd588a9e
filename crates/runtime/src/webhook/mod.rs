//! Admission webhooks: an HTTPS server with a CA of its own, which keeps its configuration in the cluster.
//!
//! Every replica serves, leader or not, and adds its own CA to the configuration; what else is in there is the
//! leader's to write. No Secret is read or written. A request is answered only if its path has the token of the
//! configuration, which the API server knows.

mod authority;
mod bundle;
mod configuration;
mod patience;
mod probe;
mod reach;
mod server;
mod since;
mod stored;
mod token;

use std::{net::SocketAddr, sync::Arc};

use jiff::Timestamp;
use kube::Client;
use snafu::{ResultExt, Snafu};
use tokio::{net::TcpListener, sync::watch};

use crate::{Lease, Watches, metrics::Metrics};
use authority::Authority;
use configuration::Keeper;
pub use configuration::Wanted;
pub use patience::time_to_answer;
use probe::Probe;
pub use reach::{Error as ReachError, Reach};
pub use server::{Ask, Reviews, refuse};
pub use since::was_checked;
use stored::Stored;
use token::Tokens;
pub use token::without_tokens;

/// Where to listen, and how the API server comes here.
pub struct Options {
    pub listen: SocketAddr,
    /// Absent: by the address that is listened on.
    pub reach: Option<Reach>,
    /// This process.
    pub identity: String,
    /// Where a call of the webhooks is tried, in a dry run.
    pub namespace: String,
    /// The watches of the configurations are registered here.
    pub watches: Watches,
}

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(display("failed to listen for webhooks on `{address}`"))]
    Listen { address: SocketAddr, source: std::io::Error },
    #[snafu(transparent)]
    Unreachable { source: ReachError },
    #[snafu(transparent)]
    Certificate { source: authority::Error },
    #[snafu(transparent)]
    Token { source: token::Error },
}

/// Webhooks that listen and are to be run.
pub struct Webhooks {
    listener: TcpListener,
    server: server::Server,
    keeper: Keeper,
    watches: Watches,
    readiness: Readiness,
}

/// How far the webhooks have come; cheap to copy and to ask.
#[derive(Clone)]
pub struct Readiness(watch::Receiver<Progress>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// Our CA is in the configuration that the cluster has.
    stored: bool,
    /// The API server has asked a webhook of ours and got its answer.
    answered: bool,
    /// What is created from now on counts as checked.
    checking: bool,
}

impl Progress {
    fn is_complete(self) -> bool {
        let Self { stored, answered, checking } = self;
        stored && answered && checking
    }
}

impl Readiness {
    /// Whether the API server can ask, and does, and what is created counts as checked.
    pub fn is_ready(&self) -> bool {
        self.0.borrow().is_complete()
    }

    /// Waits until then.
    pub async fn ready(&self) {
        let mut progress = self.0.clone();
        if progress.wait_for(|progress| progress.is_complete()).await.is_err() {
            // The webhooks have ended: they will never be.
            futures::future::pending().await
        }
    }
}

impl Webhooks {
    /// Listens. `wanted` says what the configurations should be, without CAs, for webhooks that are reached so.
    pub async fn bind(
        client: Client,
        options: Options,
        reviews: Reviews,
        metrics: Arc<Metrics>,
        wanted: impl FnOnce(&Reach) -> Wanted,
    ) -> Result<Self, Error> {
        let Options { listen, reach, identity, namespace, watches } = options;
        let listener = TcpListener::bind(listen).await.context(ListenSnafu { address: listen })?;
        let address = listener.local_addr().context(ListenSnafu { address: listen })?;
        let reach = reach.map_or_else(|| Reach::address(address), Ok)?;
        let authority = Authority::new(&identity, &reach.server_name())?;
        let (certificates, current) = watch::channel(authority.issue(Timestamp::now())?);
        let (progress, seen) = watch::channel(Progress::default());
        let progress = Arc::new(progress);
        let (tokens, wanted) = (Arc::new(Tokens::new()?), wanted(&reach));
        let stored = Stored::new(client.clone(), &wanted, Arc::clone(&tokens));
        let server = server::Server::new(reviews, metrics, current, identity.clone(), Arc::clone(&progress), stored);
        let probe = Probe::new(client.clone(), &namespace, identity);
        let keeper = Keeper::new(client, wanted, authority, certificates, probe, progress, tokens);
        Ok(Self { listener, server, keeper, watches, readiness: Readiness(seen) })
    }

    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Serves, and keeps the configuration, until it is dropped.
    pub async fn run(self, lease: Lease) {
        let Self { listener, server, keeper, watches, readiness: _ } = self;
        tokio::join!(server.run(listener), keeper.run(lease, &watches));
    }
}

#[cfg(test)]
mod tests;
