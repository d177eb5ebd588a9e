//! Boathook's controller as a process of its own, so that it can be killed where it stands.

use std::{
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
};

/// Says a controller when it works.
const READY: &str = "ready: ";

/// How long it is given to let what runs end.
const GRACE: Duration = Duration::from_secs(5);

/// How many of its last lines are kept, for a failure's text.
const KEPT: usize = 10;

/// More than any line of it.
const LONGEST_LINE: usize = 10_000;

/// A running controller. Dropped, it is killed.
pub(super) struct Controller {
    child: Child,
    pid: Pid,
    words: Words,
}

impl Controller {
    /// Starts one for the cluster of this kubeconfig, whose nodes have agents. To be called on the main thread: it ends
    /// with the thread that started it.
    pub(super) fn start(kubeconfig: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("failed to find this program")?;
        let mut command = Command::new(program);
        command.arg("controller").arg("--kubeconfig").arg(kubeconfig).args(["--executor", "agent"]);
        command.arg("--child-of").arg(std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("failed to start a controller")?;
        let pid =
            child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).context("the controller has no pid")?;
        let words = Words::default();
        tokio::spawn(words.clone().keep(child.stdout.take().context("the controller has no stdout")?));
        tokio::spawn(words.clone().keep(child.stderr.take().context("the controller has no stderr")?));
        Ok(Self { child, pid, words })
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until it leads and its webhooks answer.
    pub(super) async fn ready(&mut self) -> Result<()> {
        let words = self.words.clone();
        tokio::select! {
            () = words.said(READY) => Ok(()),
            ended = self.child.wait() => bail!("the controller ended with {}: {}", ended?, self.words.last()),
        }
    }

    /// Kills it where it stands: no handler of it runs any more.
    pub(super) async fn kill(mut self) -> Result<()> {
        kill_process(self.pid, Signal::KILL).context("failed to kill the controller")?;
        self.child.wait().await.context("failed to wait for the killed controller").map(drop)
    }

    /// Asks it to end, and makes it if it does not.
    pub(super) async fn stop(mut self) {
        // It may have ended by itself: a Ctrl-C reaches all processes of a terminal.
        let _ = kill_process(self.pid, Signal::TERM);
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

/// Its last lines.
#[derive(Clone, Default)]
struct Words {
    lines: Arc<Mutex<Vec<String>>>,
    more: Arc<tokio::sync::Notify>,
}

impl Words {
    /// Until the stream's end.
    async fn keep(self, stream: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(mut line)) = lines.next_line().await {
            line.truncate(line.floor_char_boundary(LONGEST_LINE));
            let mut kept = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(line);
            let surplus = kept.len().saturating_sub(KEPT);
            kept.drain(..surplus);
            drop(kept);
            self.more.notify_one();
        }
    }

    /// Returns when a line has begun with this.
    async fn said(&self, beginning: &str) {
        while !self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|line| line.starts_with(beginning))
        {
            self.more.notified().await;
        }
    }

    fn last(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}
