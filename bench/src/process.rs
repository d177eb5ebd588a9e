//! A program that is measured: started, watched, and ended however this one ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Lines of a log that tell why a program has ended.
const TAIL: usize = 15;

pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; what it says on stderr goes to a log in `dir`. To be called on the main thread: the kernel
    /// kills the program when the thread that started it ends.
    pub(crate) fn start(name: &str, program: &Path, arguments: &[String], dir: &Path, stdout: Stdio) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let errors = File::create(&log).with_context(|| format!("failed to make the log `{}`", log.display()))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("failed to start {name} by `setpriv` (of util-linux)"))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// What it prints, if `stdout` was a pipe. Can be taken once.
    pub(crate) fn stdout(&mut self) -> Result<ChildStdout> {
        self.child.stdout.take().context("stdout is no pipe")
    }

    /// Fails if it has ended, with the last lines of its log.
    pub(crate) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait().with_context(|| format!("failed to look at {}", self.name))? else {
            return Ok(());
        };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let end = lines[lines.len().saturating_sub(TAIL)..].join("\n    ");
        bail!("{} ended ({status}); the end of its log:\n    {end}", self.name)
    }

    /// Bytes of memory that are its own now.
    pub(crate) fn memory(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path).with_context(|| format!("failed to read `{path}`"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Ok(1024 * kib.with_context(|| format!("{} has no memory any more", self.name))?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
