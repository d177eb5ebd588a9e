//! Starting containers and commands in them, waiting for their end, and ending them.
//!
//! A started process is a `Running`. It ends by itself, by `kill`, or when every `Running` of it is dropped: so no
//! process outlives the node, however the node ends.

use std::fmt;
use std::io::{PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader};
use tokio::sync::watch;

use super::container_init::{self, namespaces};
use super::plan::{Answer, ContainerSpec, Isolation, Plan, Process, RootFiles};
use super::terminal;
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

pub type Input = Box<dyn AsyncWrite + Send + Unpin>;
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// The node's ends of a process's streams. With a terminal there is no stderr of its own.
pub struct Streams {
    pub stdin: Option<Input>,
    pub stdout: Output,
    pub stderr: Option<Output>,
    pub terminal: Option<Terminal>,
}

/// A process and all that it started.
pub struct Running {
    pub pid: u32,
    pub started: Timestamp,
    keeper: u32,
    pidfd: OwnedFd,
    /// Closing it is what ends the process, by us or by our death.
    life: Mutex<Option<PipeWriter>>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Running {
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

/// A running container.
pub struct Container {
    pub id: String,
    pub running: Arc<Running>,
    isolation: Isolation,
    base: PathBuf,
    root: RootFiles,
    process: Process,
}

/// What runs containers on this machine, as far apart from it as it permits.
pub struct Runtime {
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
        Ok(Runtime { isolation, dir: dir.to_owned() })
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
        let (running, streams) = launch(&plan, stdin).await?;
        let container = Container { id, running: Arc::new(running), isolation: self.isolation, base, root, process };
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
        let (running, streams) = launch(&Plan::Exec { isolation, process, root, keeper, target, base }, stdin).await?;
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

async fn launch(plan: &Plan, stdin: bool) -> Result<(Running, Streams), StartError> {
    let mut plan_file =
        std::fs::File::from(rustix::fs::memfd_create("plan", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?);
    plan_file.write_all(&serde_json::to_vec(plan).map_err(std::io::Error::from)?)?;
    let (answers, to_answer) = std::io::pipe()?;
    let (node_lives, life) = std::io::pipe()?;

    let mut command = std::process::Command::new("/proc/self/exe");
    let inherited: Vec<OwnedFd> = vec![plan_file.into(), to_answer.into(), node_lives.into()];
    command.args([container_init::SUBCOMMAND, "keep"]);
    command.args(inherited.iter().map(|fd| fd.as_raw_fd().to_string()));
    let terminal = if plan.process().terminal {
        let within = match plan {
            Plan::Exec { isolation: Isolation::Root | Isolation::Rootless, target, .. } => Some(*target),
            Plan::Exec { .. } | Plan::Start { .. } => None,
        };
        let (terminal, screen, keyboard, end) = terminal::open(within)?;
        command.stdin(end.try_clone()?).stdout(end.try_clone()?).stderr(end);
        Some((terminal, screen, keyboard))
    } else {
        command.stdin(if stdin { Stdio::piped() } else { Stdio::null() }).stdout(Stdio::piped()).stderr(Stdio::piped());
        None
    };
    namespaces::inherit(&mut command, inherited);
    let mut command = tokio::process::Command::from(command);
    let mut child = command.spawn()?;
    drop(command);
    let keeper = child.id().unwrap_or_default();
    let streams = match terminal {
        Some((terminal, screen, keyboard)) => Streams {
            stdin: stdin.then(|| Box::new(keyboard) as Input),
            stdout: Box::new(screen),
            stderr: None,
            terminal: Some(terminal),
        },
        None => Streams {
            stdin: child.stdin.take().map(|stdin| Box::new(stdin) as Input),
            stdout: Box::new(child.stdout.take().expect("it was piped")),
            stderr: child.stderr.take().map(|stderr| Box::new(stderr) as Output),
            terminal: None,
        },
    };
    let (tell, exit) = watch::channel(None);
    tokio::spawn(async move {
        let status = child.wait().await;
        let code = status.ok().and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)));
        tell.send_replace(Some(Exit { code: code.unwrap_or(255), at: Timestamp::now() }));
    });
    let pid = started(answers.into()).await?;
    let number = Pid::from_raw(pid.cast_signed()).ok_or_else(|| StartError("the command has no process".to_owned()))?;
    let pidfd = rustix::process::pidfd_open(number, PidfdFlags::empty()).map_err(std::io::Error::from);
    let pidfd = match pidfd {
        // It has ended already, and was waited for: any descriptor to which no signal can be sent will do.
        Err(_) => OwnedFd::from(std::fs::File::open("/dev/null")?),
        Ok(pidfd) => pidfd,
    };
    let life = Mutex::new(Some(life));
    Ok((Running { pid, started: Timestamp::now(), keeper, pidfd, life, exit }, streams))
}

/// Reads answers to their end: the command's process, or why there is none.
async fn started(answers: OwnedFd) -> Result<u32, StartError> {
    let answers = tokio::net::unix::pipe::Receiver::from_owned_fd(answers)?;
    let mut lines = BufReader::new(answers).lines();
    let (mut started, mut failed) = (None, None);
    // Two processes answer: in any order.
    while let Some(line) = lines.next_line().await? {
        match serde_json::from_str(&line).map_err(std::io::Error::from)? {
            Answer::Pid(pid) => started = Some(pid),
            Answer::Error(error) => failed = Some(StartError(error)),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => started.ok_or_else(|| StartError("container-init ended without an answer".to_owned())),
    }
}
