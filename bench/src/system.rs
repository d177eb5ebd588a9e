//! The two systems: how each is started and seen to be ready, and what it takes.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{sleep, timeout};

use crate::client::Target;
use crate::process::Process;
use crate::programs::Programs;

/// A machine that compiles on all cores meanwhile takes its time.
const DEADLINE: Duration = Duration::from_secs(120);
/// How often one asks who does not say by itself that it is ready.
const LOOK: Duration = Duration::from_millis(5);
const TOKEN: &str = "bench";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boathook,
    Peer,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Boathook, Self::Peer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boathook => "boathook",
            Self::Peer => "etcd + kube-apiserver",
        }
    }

    /// For the names of folders.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Boathook => "boathook",
            Self::Peer => "peer",
        }
    }
}

/// One that runs. Dropped, it ends.
pub(crate) struct System {
    kind: Kind,
    target: Target,
    processes: Vec<Process>,
}

impl System {
    /// Starts a system on an empty folder, and returns when it serves, with the time that it took.
    pub(crate) async fn start(kind: Kind, programs: &Programs, dir: &Path) -> Result<(Self, Duration)> {
        std::fs::create_dir(dir).with_context(|| format!("failed to make the folder `{}`", dir.display()))?;
        match kind {
            Kind::Boathook => boathook(programs, dir).await,
            Kind::Peer => peer(programs, dir).await,
        }
        .with_context(|| format!("failed to start {}", kind.name()))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Bytes that its processes have in memory.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.processes.iter().map(Process::memory).sum()
    }
}

async fn boathook(programs: &Programs, dir: &Path) -> Result<(System, Duration)> {
    // As its peer: nothing that acts on objects of Boathook's own.
    let (process, path, time) = up(programs, dir, &["--no-controller"]).await?;
    let path = path.as_str();
    let kubeconfig = std::fs::read_to_string(path).with_context(|| format!("failed to read `{path}`"))?;
    let field = |name: &str| {
        let value = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(name));
        value.map(str::trim).with_context(|| format!("`{path}` has no `{name}`"))
    };
    let address = field("server: https://")?.parse().context("failed to read the address of the server")?;
    let ca = STANDARD.decode(field("certificate-authority-data: ")?).context("the CA's certificate is no base64")?;
    let ca = String::from_utf8(ca).context("the CA's certificate is no PEM")?;
    let target = Target::new(address, &ca, field("token: ")?)?;
    Ok((System { kind: Kind::Boathook, target, processes: vec![process] }, time))
}

/// Starts `boathook up` on a folder. Returns it with its kubeconfig, and the time until it was ready.
pub(crate) async fn up(programs: &Programs, dir: &Path, flags: &[&str]) -> Result<(Process, String, Duration)> {
    let mut arguments = vec!["up".to_owned(), format!("--data-dir={}", dir.join("data").display())];
    arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let begun = Instant::now();
    let mut process = Process::start("boathook", &programs.boathook, &arguments, dir, Stdio::piped())?;
    let stdout = tokio::process::ChildStdout::from_std(process.stdout()?).context("failed to read stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(DEADLINE, lines.next_line()).await;
    let time = begun.elapsed();
    let line =
        line.with_context(|| format!("it was not ready after {DEADLINE:?}"))?.context("failed to read stdout")?;
    let Some(path) = line.as_deref().and_then(|line| line.strip_prefix("ready: export KUBECONFIG=")) else {
        // Its stdout is closed, so it is about to end, and its log says why.
        wait(&mut process, begun, async || false).await?;
        bail!("it printed {line:?} and not that it is ready");
    };
    Ok((process, path.to_owned(), time))
}

/// etcd as it comes, so with an fsync before every answer; kube-apiserver as it comes.
async fn peer(programs: &Programs, dir: &Path) -> Result<(System, Duration)> {
    let [clients, members, port] = free_ports()?;
    let ca = make_credentials(dir).context("failed to make the credentials")?;
    let target = Target::new(SocketAddr::from(([127, 0, 0, 1], port)), &ca, TOKEN)?;
    let etcd_arguments = format!(
        "--data-dir={{dir}}/etcd --log-level=warn --listen-client-urls=http://127.0.0.1:{clients} \
         --advertise-client-urls=http://127.0.0.1:{clients} --listen-peer-urls=http://127.0.0.1:{members} \
         --initial-advertise-peer-urls=http://127.0.0.1:{members} \
         --initial-cluster=default=http://127.0.0.1:{members}"
    );
    // There is nobody on loopback to tell the address to: no reconciler of endpoints.
    let api_arguments = format!(
        "--etcd-servers=http://127.0.0.1:{clients} --bind-address=127.0.0.1 --secure-port={port} \
         --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --service-cluster-ip-range=10.96.0.0/16 \
         --authorization-mode=RBAC --token-auth-file={{dir}}/tokens.csv --cert-dir={{dir}} \
         --tls-cert-file={{dir}}/server.crt --tls-private-key-file={{dir}}/server.key \
         --service-account-issuer=https://kubernetes.default.svc --service-account-key-file={{dir}}/accounts.pub \
         --service-account-signing-key-file={{dir}}/accounts.key"
    );
    // Split first: the folder's name may hold spaces.
    let filled = |arguments: &str| -> Vec<String> {
        let dir = dir.display().to_string();
        arguments.split_whitespace().map(|argument| argument.replace("{dir}", &dir)).collect()
    };

    let begun = Instant::now();
    let mut etcd = Process::start("etcd", &programs.etcd, &filled(&etcd_arguments), dir, Stdio::null())?;
    wait(&mut etcd, begun, async || TcpStream::connect(("127.0.0.1", clients)).is_ok()).await?;
    let mut api =
        Process::start("kube-apiserver", &programs.kube_apiserver, &filled(&api_arguments), dir, Stdio::null())?;
    let is_ready = async || match target.connect().await {
        Ok(mut connection) => connection.read("/readyz").await.is_ok(),
        Err(_) => false,
    };
    wait(&mut api, begun, is_ready).await?;
    let time = begun.elapsed();
    Ok((System { kind: Kind::Peer, target, processes: vec![etcd, api] }, time))
}

async fn wait(process: &mut Process, begun: Instant, is_ready: impl AsyncFn() -> bool) -> Result<()> {
    while !is_ready().await {
        process.check()?;
        if begun.elapsed() > DEADLINE {
            bail!("it was not ready after {DEADLINE:?}");
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// All bound at once, so that they differ.
fn free_ports() -> Result<[u16; 3]> {
    let bind = || TcpListener::bind(("127.0.0.1", 0));
    let ports = || -> std::io::Result<Vec<u16>> {
        let bound = [bind()?, bind()?, bind()?];
        bound.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
    };
    let ports = ports().context("failed to find free ports")?;
    ports.try_into().ok().context("three ports were bound")
}

/// Certificates, the key of service accounts and the token of an administrator. Returns the CA's certificate.
fn make_credentials(dir: &Path) -> Result<String> {
    let write = |name: &str, text: String| {
        std::fs::write(dir.join(name), text).with_context(|| format!("failed to write `{name}`"))
    };
    let mut authority = CertificateParams::new([])?;
    authority.distinguished_name.push(DnType::CommonName, "bench");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let ca = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate()?;
    let server = CertificateParams::new(["127.0.0.1".to_owned()])?;
    write("server.crt", server.signed_by(&key, &issuer)?.pem())?;
    write("server.key", key.serialize_pem())?;
    let accounts = KeyPair::generate()?;
    write("accounts.pub", accounts.public_key_pem())?;
    write("accounts.key", accounts.serialize_pem())?;
    write("tokens.csv", format!("{TOKEN},admin,admin,system:masters\n"))?;
    Ok(ca)
}
