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

/// How long a certificate is good for: so long a replica that was killed is still named in the configuration.
const LIFETIME: Duration = Duration::from_secs(3600);

/// When it is renewed: two more can fail.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(LIFETIME.as_secs() / 3);

/// How far clocks may differ.
const SKEW: Duration = Duration::from_secs(300);

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(display("failed to make the webhooks' certificate for `{name}`"))]
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
        (params.not_before, params.not_after) = (now - SKEW, now + LIFETIME);
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
