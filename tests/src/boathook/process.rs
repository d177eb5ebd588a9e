//! One process of Boathook: started, waited for, stopped in order, or stopped, continued and killed without any.

use std::{
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use futures::future::select_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
};

use super::{
    log::Log,
    role::{ROLE, Role, STEP},
};
use crate::DEADLINE;

/// What to start.
pub struct Program {
    /// For people, and for the log's name.
    pub name: String,
    pub role: Role,
    pub arguments: Vec<String>,
    pub log: PathBuf,
    /// The network namespace to start it in; absent: this process' own.
    pub network: Option<PathBuf>,
}

/// A running process. Dropped, it is killed.
pub struct Process {
    name: String,
    child: Child,
    /// The kernel closes it when the tests are killed, and the process then ends itself.
    lifeline: ChildStdin,
    log: Log,
}

impl Process {
    pub fn start(program: Program) -> Result<Self> {
        let Program { name, role, arguments, log, network } = program;
        let executable = std::env::current_exe().context("failed to find this program")?;
        let mut command = match &network {
            Some(network) => entering(network, &executable),
            None => Command::new(executable),
        };
        command.args(arguments).env(ROLE, role.word()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("failed to start the {name}"))?;
        let log = Log::new(log)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        tokio::spawn(log.clone().keep(stdout.context("the process has no stdout")?));
        tokio::spawn(log.clone().keep(stderr.context("the process has no stderr")?));
        let lifeline = child.stdin.take().context("the process has no stdin")?;
        Ok(Self { name, child, lifeline, log })
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Waits until it has said a line that begins with this, and returns the rest of it.
    pub async fn says(&mut self, line: &str) -> Result<String> {
        let log = self.log.clone();
        let waited = tokio::select! {
            rest = log.says(line) => return Ok(rest),
            ended = self.child.wait() => format!("it ended with {}", ended?),
            () = tokio::time::sleep(DEADLINE) => format!("waited {DEADLINE:?} in vain"),
        };
        bail!("the {} never said `{line}`: {waited}\n{}", self.name, log.tail())
    }

    /// Waits until it has said a line that begins with one of these, or has ended.
    pub async fn says_or_ends(&mut self, lines: &[&str]) -> Result<()> {
        let log = self.log.clone();
        tokio::select! {
            _ = select_all(lines.iter().map(|line| Box::pin(log.says(line)))) => Ok(()),
            ended = self.child.wait() => Ok(ended.map(drop)?),
            () = tokio::time::sleep(DEADLINE) => {
                bail!("the {} neither ended nor said one of {lines:?} in {DEADLINE:?}\n{}", self.name, log.tail())
            }
        }
    }

    /// Asks it to end, and waits until it has: with 0.
    pub async fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let ended = self.ended().await?;
        ensure!(ended.success(), "the {} ended with {ended}\n{}", self.name, self.log.tail());
        Ok(())
    }

    /// Kills it where it stands.
    pub async fn kill(mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.ended().await.map(drop)
    }

    /// Stops it where it stands, until [`Process::resume`].
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Steps its wall clock; its other clocks go on as they were. One that has ended has no clock to step.
    pub async fn step_clock(&mut self, seconds: i64) -> Result<()> {
        let line = format!("{STEP}{seconds}\n");
        match self.lifeline.write_all(line.as_bytes()).await {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(error).with_context(|| format!("failed to step the clock of the {}", self.name))
            }
            _ => Ok(()),
        }
    }

    /// How it ended, if it has.
    pub fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("failed to ask for the end of the {}", self.name))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let gone = || anyhow!("the {} has ended by itself\n{}", self.name, self.log.tail());
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).with_context(gone)?;
        kill_process(pid, signal).with_context(|| format!("failed to signal the {}", self.name))
    }

    async fn ended(&mut self) -> Result<ExitStatus> {
        match tokio::time::timeout(DEADLINE, self.child.wait()).await {
            Ok(ended) => Ok(ended?),
            Err(_) => bail!("the {} did not end within {DEADLINE:?}\n{}", self.name, self.log.tail()),
        }
    }
}

/// `nsenter` becomes the program, so its process id is the program's.
fn entering(network: &Path, executable: &Path) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", network.display())).arg(executable);
    command
}
