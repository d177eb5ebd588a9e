//! How the API server reaches the webhooks: by URL, or through a Service.

use std::{net::SocketAddr, str::FromStr};

use hyper::Uri;
use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
use snafu::{OptionExt, Snafu, ensure};

/// The port of a Service that names none.
const HTTPS: i32 = 443;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `https://HOST[:PORT]`, without a path.
    Url {
        url: String,
        host: String,
    },
    Service {
        namespace: String,
        name: String,
        port: i32,
    },
}

#[derive(Debug, PartialEq, Eq, Snafu)]
pub enum Error {
    #[snafu(display("`{given}` is not a valid webhook URL: write https://HOST or https://HOST:PORT"))]
    NoUrl { given: String },
    #[snafu(display("`{given}` is not a valid Service: write NAMESPACE/NAME or NAMESPACE/NAME:PORT"))]
    NoService { given: String },
    #[snafu(display(
        "the webhooks listen on `{address}`, which is every address of this host: set --webhook-url or \
         --webhook-service to the address at which the API server reaches them"
    ))]
    Everywhere { address: SocketAddr },
}

impl Reach {
    pub fn url(given: &str) -> Result<Self, Error> {
        let uri = Uri::from_str(given).ok().context(NoUrlSnafu { given })?;
        let host = uri.host().context(NoUrlSnafu { given })?.trim_matches(['[', ']']).to_owned();
        let plain = uri.path().trim_matches('/').is_empty() && uri.query().is_none() && !given.contains(['@', '#']);
        ensure!(uri.scheme_str() == Some("https") && plain && !host.is_empty(), NoUrlSnafu { given });
        Ok(Self::Url { url: given.trim_end_matches('/').to_owned(), host })
    }

    pub fn service(given: &str) -> Result<Self, Error> {
        let error = || NoServiceSnafu { given }.build();
        let (namespace, rest) = given.split_once('/').ok_or_else(error)?;
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, port.parse::<u16>().map_err(|_| error())?.into()),
            None => (rest, HTTPS),
        };
        let is_name = |text: &str| {
            !text.is_empty() && text.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-')
        };
        ensure!(is_name(namespace) && is_name(name) && port > 0, NoServiceSnafu { given });
        Ok(Self::Service { namespace: namespace.to_owned(), name: name.to_owned(), port })
    }

    /// By the address that is listened on, for an API server on the same host.
    pub fn address(address: SocketAddr) -> Result<Self, Error> {
        ensure!(!address.ip().is_unspecified(), EverywhereSnafu { address });
        Ok(Self::Url { url: format!("https://{address}"), host: address.ip().to_string() })
    }

    /// The name that the serving certificate is for.
    pub(super) fn server_name(&self) -> String {
        match self {
            Self::Url { host, .. } => host.clone(),
            Self::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
        }
    }

    /// For a webhook at this path, without a CA.
    pub fn client_config(&self, path: &str) -> WebhookClientConfig {
        match self {
            Self::Url { url, .. } => {
                WebhookClientConfig { url: Some(format!("{url}{path}")), ..WebhookClientConfig::default() }
            }
            Self::Service { namespace, name, port } => WebhookClientConfig {
                service: Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(path.to_owned()),
                    port: Some(*port),
                }),
                ..WebhookClientConfig::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_no_path() {
        let reach = Reach::url("https://127.0.0.1:9443/").unwrap();
        assert_eq!(reach.server_name(), "127.0.0.1");
        assert_eq!(reach.client_config("/a").url.unwrap(), "https://127.0.0.1:9443/a");
        assert_eq!(Reach::url("https://[::1]:9443").unwrap().server_name(), "::1");
        for wrong in ["http://a", "a", "https://", "https://a/b", "https://a?b", "https://u@a", ""] {
            assert!(Reach::url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_service_has_a_namespace_a_name_and_maybe_a_port() {
        let reach = Reach::service("boathook-system/boathook").unwrap();
        assert_eq!(reach.server_name(), "boathook.boathook-system.svc");
        let service = reach.client_config("/a").service.unwrap();
        assert_eq!((service.port, service.path.as_deref()), (Some(443), Some("/a")));
        assert_eq!(Reach::service("a/b:8443").unwrap().client_config("/a").service.unwrap().port, Some(8443));
        for wrong in ["a", "a/", "/b", "a/b:", "a/b:0", "a/b:x", "a/b/c", "A/b"] {
            assert!(Reach::service(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_that_is_every_address_is_not_enough() {
        assert!(Reach::address("0.0.0.0:1".parse().unwrap()).is_err());
        assert_eq!(Reach::address("127.0.0.1:9".parse().unwrap()), Reach::url("https://127.0.0.1:9"));
    }
}
