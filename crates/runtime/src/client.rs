//! The client of the API server, as `kube` builds it, on connections whose death is noticed.
//!
//! The kernel probes a quiet connection and gives up one whose data is not acknowledged; the pool keeps an idle
//! connection only briefly. So after a network partition a request is sent on a dead connection for 10 s at most.

use std::time::Duration;

use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{ConfigExt, retry::RetryPolicy},
};
use tower::{BoxError, ServiceBuilder, retry::RetryLayer};

/// A connection that is quiet for so long is probed.
const PROBE_AFTER: Duration = Duration::from_secs(10);

/// Between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// After so many probes without an answer the connection is dead.
const PROBES: u32 = 2;

/// Data, or a probe, that is not acknowledged for so long: the connection is dead.
const UNACKNOWLEDGED: Duration = Duration::from_secs(15);

/// For so long a connection waits for its next request.
const IDLE: Duration = Duration::from_secs(10);

/// A client of this cluster.
pub fn client(config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        // `kube` knows the kinds of proxies.
        return Client::try_from(config);
    }
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector())?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let connections = legacy::Builder::new(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(connections);
    Ok(Client::new(service, config.default_namespace))
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_keepalive(Some(PROBE_AFTER));
    connector.set_keepalive_interval(Some(PROBE_EVERY));
    connector.set_keepalive_retries(Some(PROBES));
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    connector
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt;
    use tokio::net::TcpListener;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn quiet_connection_is_probed_and_a_dead_one_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap()).parse::<http::Uri>().unwrap();
        let connection = connector().oneshot(uri).await.unwrap().into_inner();
        assert!(sockopt::socket_keepalive(&connection).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&connection).unwrap(), PROBE_AFTER);
        assert_eq!(sockopt::tcp_keepintvl(&connection).unwrap(), PROBE_EVERY);
        assert_eq!(sockopt::tcp_keepcnt(&connection).unwrap(), PROBES);
        assert_eq!(u128::from(sockopt::tcp_user_timeout(&connection).unwrap()), UNACKNOWLEDGED.as_millis());
    }
}
