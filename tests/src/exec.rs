//! Running a command in a pod through the API server's exec, over kube's WebSocket.
//!
//! Every read is capped and the whole has a deadline. An [`Outcome`] without a status is kept apart from every other:
//! the stream was lost, and nothing is known about how the command ended.

use std::{fmt, pin::pin};

use anyhow::{Context, Result, ensure};
use futures::{FutureExt, future::Shared};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Status};
use kube::api::AttachParams;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Ctx, DEADLINE};

/// More than any scenario prints that does not say so with [`Exec::cap`].
const DEFAULT_CAP: usize = 1 << 20;

/// kube's own default, 1 KiB, makes many small steps of a large output.
const PIPE_SIZE: usize = 64 << 10;

/// A command to run: `exec(["cat", "/etc/hosts"]).in_pod(&ctx, "box")`.
pub fn exec<const N: usize>(command: [&str; N]) -> Exec {
    Exec { command: command.map(str::to_owned).into(), container: None, stdin: None, cap: DEFAULT_CAP }
}

pub struct Exec {
    command: Vec<String>,
    container: Option<String>,
    stdin: Option<Vec<u8>>,
    cap: usize,
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub struct Outcome {
    /// What the server said at the end. `None`: the stream ended before it said anything.
    pub status: Option<Status>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Exec {
    /// Feeds these bytes to the command, then ends its input.
    pub fn stdin(mut self, bytes: &[u8]) -> Self {
        self.stdin = Some(bytes.to_owned());
        self
    }

    /// How many bytes of stdout, and of stderr, are taken at most; more is an error.
    pub fn cap(mut self, bytes: usize) -> Self {
        self.cap = bytes;
        self
    }

    /// Runs it in the pod's only container, until it has ended or the stream is lost.
    pub async fn in_pod(self, ctx: &Ctx, pod: &str) -> Result<Outcome> {
        let words = format!("`{}` in pod `{pod}`", self.command.join(" "));
        tokio::time::timeout(DEADLINE, self.run(ctx, pod))
            .await
            .with_context(|| format!("{words} did not end within {DEADLINE:?}"))?
            .with_context(|| format!("failed to run {words}"))
    }

    /// The same in the container of this name, of several.
    pub async fn in_container(mut self, ctx: &Ctx, pod: &str, container: &str) -> Result<Outcome> {
        self.container = Some(container.to_owned());
        self.in_pod(ctx, pod).await
    }

    async fn run(self, ctx: &Ctx, pod: &str) -> Result<Outcome> {
        let parameters = AttachParams {
            container: self.container,
            stdin: self.stdin.is_some(),
            max_stdin_buf_size: Some(PIPE_SIZE),
            max_stdout_buf_size: Some(PIPE_SIZE),
            max_stderr_buf_size: Some(PIPE_SIZE),
            ..AttachParams::default()
        };
        let mut process = ctx.api::<Pod>().exec(pod, self.command, &parameters).await?;
        let ended = process.take_status().context("kube gave no status")?.boxed().shared();
        let stdout = process.stdout().context("kube gave no stdout")?;
        let stderr = process.stderr().context("kube gave no stderr")?;
        let stdin = process.stdin();
        let (stdout, stderr, (), status) = tokio::try_join!(
            read(stdout, self.cap, ended.clone()).map(|read| read.context("failed to read its stdout")),
            read(stderr, self.cap, ended.clone()).map(|read| read.context("failed to read its stderr")),
            feed(stdin, self.stdin.as_deref().unwrap_or_default(), ended.clone())
                .map(|fed| fed.context("failed to feed its stdin")),
            ended.clone().map(Ok),
        )?;
        Ok(Outcome { status, stdout, stderr })
    }
}

/// Reads to the end. When the stream is lost, kube never ends its pipes: what is in them is taken, and that was it.
async fn read<F>(mut from: impl AsyncRead + Unpin, cap: usize, ended: Shared<F>) -> Result<Vec<u8>>
where
    F: Future<Output = Option<Status>>,
{
    let mut lost = pin!(async {
        if ended.await.is_some() {
            std::future::pending().await
        }
    });
    let mut bytes = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = from.read_buf(&mut bytes) => if count? == 0 { return Ok(bytes) },
            () = &mut lost => return Ok(bytes),
        }
        ensure!(bytes.len() <= cap, "more than {cap} bytes came");
    }
}

/// Writes all of it and ends the input. A command may end without reading it.
async fn feed<F>(to: Option<impl AsyncWrite + Unpin>, bytes: &[u8], ended: Shared<F>) -> Result<()>
where
    F: Future<Output = Option<Status>>,
{
    let Some(mut to) = to else { return Ok(()) };
    tokio::select! {
        fed = async { to.write_all(bytes).await?; to.shutdown().await } => Ok(fed?),
        _ = ended => Ok(()),
    }
}

impl Outcome {
    /// The command's exit code. An error if it did not run to its end, or if that is not known.
    pub fn exit_code(&self) -> Result<i32> {
        let status = self.status.as_ref().context("the stream ended without a status")?;
        if status.status.as_deref() == Some("Success") {
            return Ok(0);
        }
        let causes = status.details.as_ref().and_then(|details| details.causes.as_deref()).unwrap_or_default();
        let exit = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
        let message = status.message.as_deref().unwrap_or("no message");
        let code = exit.and_then(|cause| cause.message.as_deref()).context(message.to_owned())?;
        code.parse().with_context(|| format!("exit code `{code}` is not a number"))
    }

    /// What a command printed that ended with 0.
    pub fn success(self) -> Result<String> {
        let code = self.exit_code()?;
        ensure!(code == 0, "it ended with {code}\n{self}");
        Ok(String::from_utf8(self.stdout)?)
    }

    /// What the server said of a command that could not be run at all.
    pub fn refusal(&self) -> Result<&str> {
        let status = self.status.as_ref().context("the stream ended without a status")?;
        ensure!(status.status.as_deref() == Some("Failure"), "the command was run: {self}");
        status.message.as_deref().context("the failure has no message")
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = serde_json::to_string(&self.status).unwrap_or_default();
        let (stdout, stderr) = (String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr));
        write!(f, "status: {status}\nstdout: {stdout}\nstderr: {stderr}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(status: serde_json::Value) -> Outcome {
        Outcome { status: serde_json::from_value(status).unwrap(), stdout: vec![], stderr: vec![] }
    }

    #[test]
    fn an_exit_code_is_read_from_the_status() {
        assert_eq!(outcome(json!({"status": "Success"})).exit_code().unwrap(), 0);
        let seven = json!({
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
        });
        assert_eq!(outcome(seven).exit_code().unwrap(), 7);
    }

    #[test]
    fn a_lost_stream_has_no_exit_code() {
        let error = outcome(json!(null)).exit_code().unwrap_err();
        assert_eq!(error.to_string(), "the stream ended without a status");
    }

    #[test]
    fn a_command_that_never_ran_has_no_exit_code_but_a_refusal() {
        let refused = outcome(json!({"status": "Failure", "reason": "InternalError", "message": "no such file"}));
        assert_eq!(refused.exit_code().unwrap_err().to_string(), "no such file");
        assert_eq!(refused.refusal().unwrap(), "no such file");
    }

    #[tokio::test]
    async fn a_pipe_that_never_ends_is_given_up_when_the_stream_is_lost() {
        let (reader, mut writer) = tokio::io::simplex(64);
        writer.write_all(b"half").await.unwrap();
        let lost = async { None::<Status> }.boxed().shared();
        assert_eq!(read(reader, 64, lost).await.unwrap(), b"half");
    }

    #[tokio::test]
    async fn a_read_past_its_cap_is_an_error() {
        let (reader, mut writer) = tokio::io::simplex(64);
        writer.write_all(b"too much").await.unwrap();
        let running = std::future::pending::<Option<Status>>().boxed().shared();
        assert_eq!(read(reader, 4, running).await.unwrap_err().to_string(), "more than 4 bytes came");
    }
}
