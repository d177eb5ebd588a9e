//! Starting containers and commands in them, waiting for their end, and ending them.
//!
//! A started process is a `Running`. It ends by itself, by `kill`, or when every `Running` of it is dropped: so no
//! process outlives the node, however the node ends.

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use rustix::process::{Pid, PidfdFlags};
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::watch;

use super::launcher::{Launched, Launcher};
use super::plan::{ContainerSpec, Isolation, Plan, Process, RootFiles};
use super::streams;
pub use super::streams::{Input, Output, Streams};
pub use super::terminal::Terminal;
pub use rustix::process::Signal;

/// Why a container or a command in it did not start, in the words of a container runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError(pub String);

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

impl From<std::io::Error> for StartError {
    fn from(error: std::io::Error) -> Self {
        StartError(error.to_string())
    }
}

/// How a process ended: its exit code, or 128 and the signal's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    pub code: i32,
    pub at: Timestamp,
}

/// A process and all that it started.
pub struct Running {
    pub pid: u32,
    pub started: Timestamp,
    keeper: u32,
    pidfd: OwnedFd,
    /// Dropping it ends the process, and so does the death of the node.
    life: Mutex<Option<OwnedWriteHalf>>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Running {
    async fn start(launcher: &Launcher, plan: &Plan, stdin: bool) -> Result<(Running, Streams), StartError> {
        let (streams, stdio) = streams::open(plan, stdin)?;
        let Launched { pid, keeper, life } = launcher.launch(plan, stdio).await?;
        let (mut ending, life) = life.into_split();
        let (tell, exit) = watch::channel(None);
        tokio::spawn(async move {
            // A keeper that was killed did not send the code. The kernel then killed the command.
            let code = ending.read_i32().await.unwrap_or(KILLED);
            tell.send_replace(Some(Exit { code, at: Timestamp::now() }));
        });
        let number = Pid::from_raw(pid.cast_signed());
        let number = number.ok_or_else(|| StartError("the command has no process".to_owned()))?;
        let pidfd = match rustix::process::pidfd_open(number, PidfdFlags::empty()) {
            // It has ended already, and was waited for: any descriptor to which no signal can be sent will do.
            Err(_) => OwnedFd::from(std::fs::File::open("/dev/null")?),
            Ok(pidfd) => pidfd,
        };
        let life = Mutex::new(Some(life));
        Ok((Running { pid, started: Timestamp::now(), keeper, pidfd, life, exit }, streams))
    }

    pub async fn wait(&self) -> Exit {
        let mut exit = self.exit.clone();
        let ended = exit.wait_for(Option::is_some).await.map(|exit| *exit);
        ended.ok().flatten().unwrap_or(Exit { code: 255, at: Timestamp::now() })
    }

    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Sends a signal to the first process. One that has ended gets none.
    pub fn signal(&self, signal: Signal) {
        rustix::process::pidfd_send_signal(&self.pidfd, signal).ok();
    }

    /// Ends every process of it. `wait` tells when that is done.
    pub fn kill(&self) {
        self.life.lock().expect("no one panics while holding it").take();
    }
}

/// The exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;

/// A running container.
pub struct Container {
    pub id: String,
    pub running: Arc<Running>,
    launcher: Arc<Launcher>,
    isolation: Isolation,
    base: PathBuf,
    root: RootFiles,
    process: Process,
}

/// What runs containers on this machine, as far apart from it as it permits.
pub struct Runtime {
    launcher: Arc<Launcher>,
    isolation: Isolation,
    dir: PathBuf,
}

impl Runtime {
    /// Finds out what is permitted here by trying. `dir` is its own.
    pub async fn open(dir: &Path) -> std::io::Result<Runtime> {
        let mut refusal = String::new();
        let root = rustix::process::geteuid().is_root();
        for isolation in [Isolation::Root, Isolation::Rootless] {
            if isolation == Isolation::Root && !root {
                continue;
            }
            let runtime = Runtime::with_isolation(dir, isolation)?;
            match runtime.try_out().await {
                Ok(()) => return Ok(runtime),
                Err(error) => refusal = error.0,
            }
        }
        tracing::warn!(
            "this machine does not permit namespaces ({refusal}): containers are plain processes, their volumes are \
             links in the directory that they start in and that BOATHOOK_ROOT names"
        );
        Runtime::with_isolation(dir, Isolation::Plain)
    }

    pub fn with_isolation(dir: &Path, isolation: Isolation) -> std::io::Result<Runtime> {
        std::fs::create_dir_all(dir.join("base"))?;
        std::fs::create_dir_all(dir.join("plain"))?;
        Ok(Runtime { launcher: Arc::default(), isolation, dir: dir.to_owned() })
    }

    /// Lets other users pass through directories, without listing them, if containers need that: without mounts, a
    /// container of another user reaches its volumes by their own paths.
    pub fn open_passages(&self, passages: &[PathBuf]) -> std::io::Result<()> {
        if self.isolation != Isolation::Plain || !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        for passage in passages {
            std::fs::create_dir_all(passage)?;
            std::fs::set_permissions(passage, std::fs::Permissions::from_mode(0o711))?;
        }
        Ok(())
    }

    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether containers can be started: gets as far as looking for a command that cannot be there.
    pub async fn try_out(&self) -> Result<(), StartError> {
        let process = Process { argv: vec!["/.none".to_owned()], cwd: "/".into(), ..Process::default() };
        let (mounts, hostname) = (Vec::new(), "probe".to_owned());
        let spec = ContainerSpec { root: RootFiles::Host, read_only_root: false, mounts, hostname, process };
        match self.start(new_id(), spec, false).await {
            Err(error) if error.0.starts_with("exec: ") => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    /// Starts a container. Its stdin is empty unless asked for.
    pub async fn start(
        &self,
        id: String,
        mut spec: ContainerSpec,
        stdin: bool,
    ) -> Result<(Container, Streams), StartError> {
        let base = match self.isolation {
            // Seen by no one else: one directory serves all.
            Isolation::Root | Isolation::Rootless => self.dir.join("base"),
            Isolation::Plain => {
                let base = self.dir.join("plain").join(&id);
                std::fs::create_dir_all(&base)?;
                spec.process.env.push(("BOATHOOK_ROOT".to_owned(), base.display().to_string()));
                base
            }
        };
        let (root, process) = (spec.root.clone(), spec.process.clone());
        let plan = Plan::Start { isolation: self.isolation, container: spec, base: base.clone() };
        let (running, streams) = Running::start(&self.launcher, &plan, stdin).await?;
        let (running, launcher) = (Arc::new(running), self.launcher.clone());
        let container = Container { id, running, launcher, isolation: self.isolation, base, root, process };
        Ok((container, streams))
    }
}

impl Container {
    /// Starts a further command in the container, with its environment, directory and user.
    pub async fn exec(
        &self,
        argv: Vec<String>,
        stdin: bool,
        terminal: bool,
    ) -> Result<(Arc<Running>, Streams), StartError> {
        let mut process = Process { argv, terminal, ..self.process.clone() };
        if terminal && !process.env.iter().any(|(name, _)| name == "TERM") {
            process.env.push(("TERM".to_owned(), "xterm".to_owned()));
        }
        let (isolation, base, root) = (self.isolation, self.base.clone(), self.root.clone());
        let (target, keeper) = (self.running.pid, self.running.keeper);
        let plan = Plan::Exec { isolation, process, root, keeper, target, base };
        let (running, streams) = Running::start(&self.launcher, &plan, stdin).await?;
        let running = Arc::new(running);
        // A command lives on when its caller has gone, as on any node.
        let held = running.clone();
        tokio::spawn(async move { held.wait().await });
        Ok((running, streams))
    }

    /// Starts a further command, and reads what it prints: at most `cap` bytes of each output are kept, the rest is read
    /// and dropped, so that no command waits for a reader.
    pub async fn run(
        &self,
        argv: Vec<String>,
        cap: usize,
    ) -> Result<(Arc<Running>, impl Future<Output = (Vec<u8>, Vec<u8>)> + use<>), StartError> {
        let (running, Streams { stdout, stderr, .. }) = self.exec(argv, false, false).await?;
        let stderr = stderr.unwrap_or_else(|| Box::new(tokio::io::empty()));
        let reading = tokio::spawn(async move { tokio::join!(read(stdout, cap), read(stderr, cap)) });
        Ok((running, async move { reading.await.unwrap_or_default() }))
    }

    /// Removes what the container had outside its volumes. To be called when it has ended.
    pub fn remove(&self) {
        if self.isolation == Isolation::Plain {
            // Links are removed, not followed.
            std::fs::remove_dir_all(&self.base).ok();
        }
    }
}

async fn read(mut from: Output, cap: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    // What breaks off ends there.
    (&mut from).take(cap as u64).read_to_end(&mut kept).await.ok();
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await.ok();
    kept
}

/// 64 hexadecimal digits that no other container has.
pub fn new_id() -> String {
    use ring::rand::SecureRandom;
    let mut bytes = [0_u8; 32];
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
