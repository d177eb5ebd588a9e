//! What an embedded cluster keeps beside its objects: where it is kept, who may read it, what it says.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Options;

/// The folder of a cluster, made if it is not there; the second is set if it goes with the cluster.
pub(super) fn data_dir(options: &Options) -> Result<(PathBuf, Option<PathBuf>)> {
    if options.ephemeral {
        let dir = std::env::temp_dir().join(format!("boathook-{}-{}", std::process::id(), hex(&random::<4>())));
        make(&dir)?;
        return Ok((dir.clone(), Some(dir)));
    }
    let dir = match &options.data_dir {
        Some(dir) => dir.clone(),
        None => default_dir()?,
    };
    make(&dir)?;
    Ok((dir, None))
}

fn default_dir() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
    Ok(base
        .context("HOME is not set: say with --data-dir where the cluster is kept, or use --ephemeral")?
        .join("boathook"))
}

fn make(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("failed to make the data directory `{}`", dir.display()))
}

/// Writes a file that only its owner may read. What was there is replaced as a whole or not at all.
pub(super) fn write_private(path: &Path, contents: &str) -> Result<()> {
    let failed = || format!("failed to write `{}`", path.display());
    let unfinished = path.with_extension(format!("unfinished-{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .with_context(failed)?;
    file.write_all(contents.as_bytes()).with_context(failed)?;
    fs::rename(&unfinished, path).with_context(failed)
}

/// Keys and certificates, the same for the whole life of a data directory: a client that was given them keeps working.
pub(super) struct Credentials {
    pub(super) admin_token: String,
    pub(super) signing_key: [u8; 32],
    /// The authority's certificate (PEM).
    pub(super) ca: String,
    certificate: String,
    key: String,
}

impl Credentials {
    /// Those in the directory, made where there are none.
    pub(super) fn in_dir(dir: &Path) -> Result<Self> {
        let path = dir.join("credentials.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let read = Self::parse(&text);
                read.with_context(|| {
                    format!("`{}` is not what this program wrote; nothing was changed", path.display())
                })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let made = Self::make().context("failed to make the certificates")?;
                write_private(&path, &made.print())?;
                Ok(made)
            }
            Err(error) => Err(error).with_context(|| format!("failed to read `{}`", path.display())),
        }
    }

    fn make() -> Result<Self> {
        let mut authority = CertificateParams::new([])?;
        authority.distinguished_name.push(DnType::CommonName, "boathook");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_key = KeyPair::generate()?;
        let ca = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let mut server = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "boathook-apiserver");
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &issuer)?.pem();
        let (admin_token, signing_key) = (token(), random::<32>());
        Ok(Self { admin_token, signing_key, ca, certificate, key: key.serialize_pem() })
    }

    fn print(&self) -> String {
        serde_json::json!({
            "adminToken": self.admin_token,
            "signingKey": STANDARD.encode(self.signing_key),
            "ca": self.ca,
            "certificate": self.certificate,
            "key": self.key,
        })
        .to_string()
    }

    fn parse(text: &str) -> Result<Self> {
        let read: serde_json::Value = serde_json::from_str(text)?;
        let field = |name: &str| {
            let value = read.get(name).and_then(serde_json::Value::as_str);
            value.map(str::to_owned).with_context(|| format!("`{name}` is missing"))
        };
        let key = STANDARD.decode(field("signingKey")?).context("`signingKey` is not base64")?;
        let signing_key = key.try_into().ok().context("`signingKey` is not 32 bytes")?;
        Ok(Self {
            admin_token: field("adminToken")?,
            signing_key,
            ca: field("ca")?,
            certificate: field("certificate")?,
            key: field("key")?,
        })
    }

    /// What the server shows to its clients.
    pub(super) fn tls(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        Ok((vec![certificate.context("failed to read the certificate")?], key.context("failed to read the key")?))
    }

    /// A kubeconfig that needs no other file.
    pub(super) fn kubeconfig(&self, address: SocketAddr) -> String {
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: boathook
  cluster:
    server: https://{address}
    certificate-authority-data: {}
users:
- name: boathook
  user:
    token: {}
contexts:
- name: boathook
  context:
    cluster: boathook
    user: boathook
current-context: boathook
",
            STANDARD.encode(&self.ca),
            self.admin_token
        )
    }
}

/// One that nobody guesses.
pub(super) fn token() -> String {
    hex(&random::<32>())
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .expect("the kernel always has random bytes");
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_they_were_written_and_others_are_refused() {
        let made = Credentials::make().unwrap();
        let read = Credentials::parse(&made.print()).unwrap();
        assert_eq!((read.admin_token, read.signing_key, read.ca), (made.admin_token, made.signing_key, made.ca));
        assert!(Credentials::parse("{}").is_err());
        assert!(Credentials::parse("not ours").is_err());
    }
}
