//! What an embedded cluster keeps beside its objects: where it is kept, who may read it, what it says.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use boathook_process::private;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::{
    Options,
    scratch::{self, Scratch},
};

/// What a data directory holds.
const CHILDREN: [&str; 4] = ["agent", "node", "store", "volumes"];
const FILES: [&str; 4] = [CONTROLLER, "credentials.json", "kubeconfig", scratch::LOCK];

/// The identity of the controller that runs beside the cluster, or ran there last.
pub(super) const CONTROLLER: &str = "controller-identity";

/// The folder of a cluster, made if it is not there; the second is set if it goes with the cluster.
pub(super) fn data_dir(options: &Options) -> Result<(PathBuf, Option<Scratch>)> {
    if options.ephemeral {
        let base = std::env::temp_dir();
        scratch::remove_orphans(&base);
        let scratch = Scratch::make(&base, &format!("{}-{}", std::process::id(), hex(&random::<4>())))?;
        let dir = scratch.dir().to_owned();
        make(&dir)?;
        return Ok((dir, Some(scratch)));
    }
    let dir = chosen_dir(options.data_dir.clone())?;
    make(&dir)?;
    Ok((dir, None))
}

/// The same for a command that adds to a cluster that may be running: the modes of an existing one stay as they are.
pub(super) fn dir_to_add_to(data_dir: Option<PathBuf>) -> Result<PathBuf> {
    let dir = chosen_dir(data_dir)?;
    if !dir.join("node").exists() {
        make(&dir)?;
    }
    Ok(dir)
}

fn chosen_dir(data_dir: Option<PathBuf>) -> Result<PathBuf> {
    data_dir.map_or_else(default_dir, Ok)
}

fn default_dir() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
    Ok(base.context("HOME is not set: name the data directory with --data-dir, or use --ephemeral")?.join("boathook"))
}

fn make(dir: &Path) -> Result<()> {
    let failed = || format!("failed to make the data directory `{}`", dir.display());
    if is_ours(dir).with_context(failed)? {
        private::directory(dir).with_context(failed)?;
    }
    for child in CHILDREN {
        private::directory(&dir.join(child)).with_context(failed)?;
    }
    Ok(())
}

/// Whether a data directory is missing or holds nothing but a cluster. Other directories, such as `/var/lib`, keep their
/// mode: the cluster's own ones in them are private all the same.
fn is_ours(dir: &Path) -> std::io::Result<bool> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        let ours = CHILDREN.iter().chain(&FILES).any(|ours| name == *ours);
        if !ours {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The directories on the way to what pods use.
pub(super) fn passages(dir: &Path) -> Vec<PathBuf> {
    let ours = is_ours(dir).unwrap_or(false).then(|| dir.to_owned());
    let below =
        ["node", "node/images", "node/pods", "node/runtime", "node/runtime/plain", "volumes", "volumes/volumes"];
    ours.into_iter().chain(below.map(|below| dir.join(below))).collect()
}

/// Writes a file that only its owner may read. What was there is replaced as a whole or not at all.
pub(super) fn write_private(path: &Path, contents: &str) -> Result<()> {
    let failed = || format!("failed to write `{}`", path.display());
    let unfinished = path.with_extension(format!("unfinished-{}", std::process::id()));
    private::write(&unfinished, contents.as_bytes()).with_context(failed)?;
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
                read.with_context(|| format!("`{}` was not written by boathook; nothing was changed", path.display()))
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn other_users_cannot_read_a_data_directory() {
        let base = std::env::temp_dir().join(format!("boathook-data-dir-{}", std::process::id()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let widen = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let start = |dir: &Path| {
            data_dir(&Options { data_dir: Some(dir.to_owned()), ..Options::default() }).unwrap();
        };
        let (own, shared) = (base.join("own"), base.join("shared"));
        fs::create_dir_all(&shared).unwrap();
        fs::write(shared.join("letters"), "").unwrap();
        widen(&shared);
        start(&own);
        start(&shared);
        assert_eq!((mode(&own), mode(&shared)), (0o700, 0o755), "a directory with other files keeps its mode");
        Credentials::in_dir(&own).unwrap();
        for dir in [&own, &own.join("store"), &own.join("volumes"), &shared.join("node"), &own.join("credentials.json")]
        {
            widen(dir);
        }
        start(&own);
        start(&shared);
        for dir in [own.clone(), own.join("store"), own.join("volumes"), shared.join("node")] {
            assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        }
        assert_eq!(mode(&own.join("credentials.json")), 0o600);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn credentials_are_read_as_they_were_written_and_others_are_refused() {
        let made = Credentials::make().unwrap();
        let read = Credentials::parse(&made.print()).unwrap();
        assert_eq!((read.admin_token, read.signing_key, read.ca), (made.admin_token, made.signing_key, made.ca));
        assert!(Credentials::parse("{}").is_err());
        assert!(Credentials::parse("not ours").is_err());
    }
}
