//! The cluster's programs, built from the Go modules that `e2e/go/` pins.
//!
//! A module's programs lie in the cache in a folder named by a digest of everything that decides what they are, so a
//! second cluster, a second checkout or a second CI run finds them there. A build that fails leaves nothing behind.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ring::digest::{SHA256, digest};

use super::files;
use super::layout::Layout;
use super::version::Version;
use crate::say::Step;

/// etcd's main package: Go names a program by the last part of its path that is no version, here `server`.
const ETCD: &str = "go.etcd.io/etcd/server/v3";
const SNAPSHOTTER: &str = "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter";

/// Where the snapshot CRDs are published: a folder of this module.
const SNAPSHOT_CLIENT: &str = "github.com/kubernetes-csi/external-snapshotter/client/v8";
const SNAPSHOT_CRDS: [&str; 3] = [
    "snapshot.storage.k8s.io_volumesnapshotclasses.yaml",
    "snapshot.storage.k8s.io_volumesnapshotcontents.yaml",
    "snapshot.storage.k8s.io_volumesnapshots.yaml",
];

/// What the module proxy or the way to it says when it may go well the next time: a cold build asks for hundreds of
/// modules, and whoever asks too often is told to wait.
const PASSING: [&str; 10] = [
    "429 Too Many Requests",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504 Gateway",
    "connection reset",
    "i/o timeout",
    "TLS handshake timeout",
    "500 Internal Server Error",
    "unexpected EOF",
    "connection refused",
];
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_secs(20);

/// How often the shown time moves while the linker says nothing.
const TICK: Duration = Duration::from_secs(1);

/// One module of `e2e/go/` and the programs that are built from it.
struct Module {
    folder: String,
    packages: &'static [&'static str],
    linker_flags: String,
}

/// The folders that hold the programs of one cluster.
pub(super) struct Binaries {
    kubernetes: PathBuf,
    snapshotter: PathBuf,
    provisioner: PathBuf,
    hostpath: PathBuf,
    registrar: PathBuf,
}

impl Binaries {
    /// Builds what is not in the cache.
    pub(super) fn build(layout: &Layout, version: &Version) -> Result<Self> {
        let built = |folder: &str, packages, linker_flags: String| {
            build(layout, &Module { folder: folder.to_owned(), packages, linker_flags })
        };
        Ok(Self {
            kubernetes: kubernetes(layout, version)?,
            snapshotter: built(
                "csi-snapshotter",
                &["github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller", SNAPSHOTTER],
                String::new(),
            )?,
            provisioner: built(
                "csi-provisioner",
                &["github.com/kubernetes-csi/external-provisioner/v5/cmd/csi-provisioner"],
                String::new(),
            )?,
            hostpath: built(
                "csi-hostpath",
                &["github.com/kubernetes-csi/csi-driver-host-path/cmd/hostpathplugin"],
                // The driver refuses to answer GetPluginInfo without a version, whatever it is.
                "-X main.version=pinned".to_owned(),
            )?,
            registrar: built("csi-registrar", &["."], String::new())?,
        })
    }

    pub(super) fn kubernetes(&self, program: &str) -> PathBuf {
        self.kubernetes.join(program)
    }

    /// kubectl and its companions, for a person's PATH.
    pub(super) fn folder(&self) -> &Path {
        &self.kubernetes
    }

    pub(super) fn etcd(&self) -> PathBuf {
        self.kubernetes.join("etcd")
    }

    pub(super) fn snapshotter(&self, program: &str) -> PathBuf {
        self.snapshotter.join(program)
    }

    pub(super) fn snapshot_crds(&self) -> PathBuf {
        self.snapshotter.join("crds")
    }

    pub(super) fn provisioner(&self) -> PathBuf {
        self.provisioner.join("csi-provisioner")
    }

    pub(super) fn hostpath(&self) -> PathBuf {
        self.hostpath.join("hostpathplugin")
    }

    pub(super) fn registrar(&self) -> PathBuf {
        self.registrar.join("csi-registrar")
    }
}

/// The folder of Kubernetes' own programs and of etcd, built if it is not in the cache.
pub(super) fn kubernetes(layout: &Layout, version: &Version) -> Result<PathBuf> {
    let packages = &[
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kube-proxy",
        "k8s.io/kubernetes/cmd/kubelet",
        "k8s.io/kubernetes/cmd/kubectl",
        ETCD,
    ];
    build(layout, &Module { folder: version.module(), packages, linker_flags: version.linker_flags() })
}

fn build(layout: &Layout, module: &Module) -> Result<PathBuf> {
    let source = layout.sources.join("go").join(&module.folder);
    let key = key(&source, module)?;
    let finished = layout.cache.join("bin").join(format!("{}-{key}", module.folder));
    if finished.exists() {
        return Ok(finished);
    }
    let unfinished = layout.cache.join("bin").join(format!("{}-{key}.unfinished", module.folder));
    files::fresh_folder(&unfinished)?;
    let log = layout.cache.join("log").join(format!("build-{}.log", module.folder));
    files::folder(&layout.cache.join("log"))?;

    let mut step = Step::start(format!("building {}", module.folder));
    for attempt in 1.. {
        let built = compile(&source, module, &unfinished, &log, &mut step)?;
        if built {
            break;
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if attempt == TRIES || !PASSING.iter().any(|passing| said.contains(passing)) {
            let end = files::tail(&log, 30);
            bail!("failed to build {}: `go build` says, in `{}`:\n{end}", module.folder, log.display());
        }
        step.progress("the module proxy asks for a pause");
        std::thread::sleep(PAUSE);
    }
    if module.packages.contains(&ETCD) {
        let (from, to) = (unfinished.join("server"), unfinished.join("etcd"));
        std::fs::rename(from, to).context("failed to give etcd its name")?;
    }
    if module.packages.contains(&SNAPSHOTTER) {
        keep_snapshot_crds(&source, &unfinished)?;
    }
    std::fs::rename(&unfinished, &finished)
        .with_context(|| format!("failed to put the programs at `{}`", finished.display()))?;
    step.done();
    Ok(finished)
}

/// Runs `go build` and shows how many packages it has compiled. False if it failed: the log says why.
fn compile(source: &Path, module: &Module, out: &Path, log: &Path, step: &mut Step) -> Result<bool> {
    let mut child = go(source)
        .args(["build", "-v", "-mod=readonly", "-trimpath", "-ldflags"])
        .arg(format!("-s -w {}", module.linker_flags))
        .arg("-o")
        .arg(with_slash(out))
        .args(module.packages)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("failed to run `go`: the cluster is built from Go modules; install Go 1.25 or newer")?;
    let stderr = BufReader::new(child.stderr.take().context("stderr is piped")?);
    let (sender, lines) = mpsc::channel();
    // Ends with the child: its stderr closes then.
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let (mut said, mut compiled) = (String::new(), 0);
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => {
                said += &line;
                said.push('\n');
                compiled += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // What the cache has is only linked.
        step.progress(&if compiled == 0 { "linking".to_owned() } else { format!("{compiled} packages") });
    }
    std::fs::write(log, said).with_context(|| format!("failed to write `{}`", log.display()))?;
    Ok(child.wait().context("failed to wait for `go build`")?.success())
}

fn keep_snapshot_crds(source: &Path, out: &Path) -> Result<()> {
    let listed = go(source)
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", SNAPSHOT_CLIENT])
        .output()
        .context("failed to run `go list`")?;
    let folder = String::from_utf8(listed.stdout).context("`go list` prints a path")?;
    let crds = out.join("crds");
    files::folder(&crds)?;
    for name in SNAPSHOT_CRDS {
        let from = Path::new(folder.trim()).join("config/crd").join(name);
        // Not `fs::copy`: the module cache is read-only, and the copy would be too.
        let text = std::fs::read(&from).with_context(|| format!("failed to read the CRD `{}`", from.display()))?;
        files::write(&crds.join(name), text)?;
    }
    Ok(())
}

fn go(source: &Path) -> Command {
    let mut go = Command::new("go");
    // Static programs: no C compiler is needed, and they run whatever libc the machine has.
    go.current_dir(source).env("CGO_ENABLED", "0").env("GOFLAGS", "-buildvcs=false").stdin(Stdio::null());
    go
}

/// `go build -o` takes a path that ends with a slash as a folder.
fn with_slash(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(OsStr::new("/"));
    path
}

/// A digest of what decides the outcome of a build.
fn key(source: &Path, module: &Module) -> Result<String> {
    let mut all = Vec::new();
    for name in ["go.mod", "go.sum", "main.go"] {
        let path = source.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => all.extend(bytes),
            Err(error) if name == "main.go" && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("failed to read `{}`", path.display())),
        }
    }
    all.extend(module.packages.join(" ").bytes());
    all.extend(module.linker_flags.bytes());
    Ok(digest(&SHA256, &all).as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
