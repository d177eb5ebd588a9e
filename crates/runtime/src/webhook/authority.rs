//! The replica's own certificate authority: a key in memory, from which come short-lived certificates.
//!
//! A renewed CA has the same key and name. So a certificate that it issues is trusted by whoever knows any of its CA
//! certificates that has not expired, and nobody has to wait for anybody when they are renewed.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use snafu::{ResultExt, Snafu};
use tokio_rustls::rustls::{self, ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};

/// How long a certificate is good for, and [`SKEW`] on top: so long a replica that was killed is still named in the
/// configuration.
const LIFETIME: Duration = Duration::from_secs(3600);

/// When it is renewed: two more can fail.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(LIFETIME.as_secs() / 3);

/// How far clocks may differ. A certificate that is issued while the clock of this replica is wrong by no more than this is
/// valid for the API server all the same. Else the requests that the webhooks check would be refused until the next look.
const SKEW: Duration = Duration::from_secs(2 * 3600);

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(display("failed to create the webhooks' certificate for `{name}`"))]
    Make { name: String, source: rcgen::Error },
    #[snafu(display("failed to use the webhooks' certificate"))]
    Use { source: rustls::Error },
}

pub(super) struct Authority {
    ca_key: KeyPair,
    key: KeyPair,
    identity: String,
    server_name: String,
}

/// What is valid now.
pub(super) struct Certificates {
    /// The CA's, as the configuration takes it.
    pub(super) ca: String,
    pub(super) tls: Arc<ServerConfig>,
}

impl Authority {
    pub(super) fn new(identity: &str, server_name: &str) -> Result<Self, Error> {
        let generate = || KeyPair::generate().context(MakeSnafu { name: server_name });
        let (identity, server_name) = (identity.to_owned(), server_name.to_owned());
        Ok(Self { ca_key: generate()?, key: generate()?, identity, server_name })
    }

    pub(super) fn issue(&self, now: Timestamp) -> Result<Certificates, Error> {
        let make = || MakeSnafu { name: &self.server_name };
        let mut ca = self.valid_now(CertificateParams::default(), now);
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let ca_certificate = ca.self_signed(&self.ca_key).with_context(|_| make())?;

        let serving = CertificateParams::new([self.server_name.clone()]).with_context(|_| make())?;
        let mut serving = self.valid_now(serving, now);
        serving.distinguished_name = named(&self.server_name);
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        serving.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_params(&ca, &self.ca_key);
        let certificate = serving.signed_by(&self.key, &issuer).with_context(|_| make())?;

        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der()).into();
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate.into()], key))
            .context(UseSnafu)?;
        Ok(Certificates { ca: ca_certificate.pem(), tls: Arc::new(tls) })
    }

    fn valid_now(&self, mut params: CertificateParams, now: Timestamp) -> CertificateParams {
        let since_1970 = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
        let now = date_time_ymd(1970, 1, 1) + since_1970;
        (params.not_before, params.not_after) = (now - SKEW, now + LIFETIME + SKEW);
        params.distinguished_name = named(&self.identity);
        params
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::OrganizationName, "boathook webhooks");
    named.push(DnType::CommonName, name);
    named
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use tokio_rustls::{
        TlsAcceptor, TlsConnector,
        rustls::{
            ClientConfig, RootCertStore,
            pki_types::{CertificateDer, ServerName, pem::PemObject},
        },
    };

    use super::*;

    /// Whether a client whose clock is right accepts these certificates.
    async fn is_accepted(Certificates { ca, tls }: Certificates) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (client, server) = tokio::io::duplex(1 << 16);
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let (connected, _) = tokio::join!(connector.connect(name, client), TlsAcceptor::from(tls).accept(server));
        connected.is_ok()
    }

    #[tokio::test]
    async fn certificate_issued_by_a_stepped_clock_is_accepted() {
        let authority = Authority::new("one", "127.0.0.1").unwrap();
        let issued = |hours| authority.issue(Timestamp::now() + SignedDuration::from_hours(hours)).unwrap();
        for hours in [-1, 0, 1] {
            assert!(is_accepted(issued(hours)).await, "{hours}");
        }
        for hours in [-4, 4] {
            assert!(!is_accepted(issued(hours)).await, "{hours}");
        }
    }
}
