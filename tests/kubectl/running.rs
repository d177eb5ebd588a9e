//! A kubectl that runs beside the scenario: what it prints is read as it comes, and it is ended with the scenario.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use boathook_tests::DEADLINE;
use tokio::{
    io::{AsyncReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::kubectl::CAP;

pub(crate) struct Running {
    line: String,
    child: Child,
    stdout: Lines<BufReader<tokio::io::Take<ChildStdout>>>,
    seen: String,
}

impl Running {
    pub(crate) fn start(mut command: Command, line: &str) -> Result<Self> {
        use tokio::io::AsyncBufReadExt;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("failed to start `kubectl {line}`"))?;
        let stdout = child.stdout.take().context("no stdout")?;
        let stdout = BufReader::new(stdout.take(CAP)).lines();
        Ok(Self { line: line.to_owned(), child, stdout, seen: String::new() })
    }

    /// Reads on until such a line comes, and returns it.
    pub(crate) async fn line(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let reading = async {
            while let Some(line) = self.stdout.next_line().await? {
                self.seen += &line;
                self.seen.push('\n');
                if wanted(&line) {
                    return Ok(line);
                }
            }
            bail!("it ended")
        };
        let read = timeout(DEADLINE, reading).await.context("the deadline passed").flatten();
        read.with_context(|| format!("`kubectl {}` did not print {what}; it printed:\n{}", self.line, self.seen))
    }

    /// Waits until it ends by itself, with 0, and returns all that it printed.
    pub(crate) async fn end(mut self) -> Result<String> {
        let ended = self.line("nothing more", |_| false).await;
        ensure!(ended.is_err_and(|error| error.root_cause().to_string() == "it ended"), "`{}` stays", self.line);
        let status = timeout(DEADLINE, self.child.wait()).await.context("kubectl closed its output and stays")??;
        ensure!(status.success(), "`kubectl {}` ended with {status}; it printed:\n{}", self.line, self.seen);
        Ok(self.seen)
    }
}
