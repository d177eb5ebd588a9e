//! The streams of a command whose session is held, from either place.

use std::{any::Any, pin::Pin};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::AttachedProcess;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    task::unconstrained,
};

use super::cri::Running;
use crate::{Failure, Outcome, exec::Verdict, outcome::Attempt};

/// A held command says little.
const CHUNK: usize = 4 << 10;

const INPUT_CLOSED: &str = "ProcessMayRemain: Boathook closed its input, and a held command must then end; with the \
                            node agent, Boathook can end it";

/// What came.
#[derive(Debug)]
pub(crate) enum Event {
    Stdout(Bytes),
    Stderr(Bytes),
    Ended(Verdict),
    /// The stream ended without a status.
    Lost,
}

/// The streams of one held command.
pub(crate) enum Streams {
    Api(ApiStreams),
    Cri(Running),
}

impl Streams {
    /// What comes next. It can be dropped and asked for again without losing anything.
    pub(crate) async fn next(&mut self) -> Event {
        match self {
            Self::Api(streams) => streams.next().await,
            Self::Cri(running) => running.next().await,
        }
    }

    /// Writes a line after which nothing is written, and ends the command's input if the protocol can.
    pub(crate) async fn write_last(&mut self, line: &str) {
        match self {
            Self::Api(streams) => streams.write_last(line).await,
            Self::Cri(running) => running.write(line).await,
        }
    }

    /// It has ended by itself: how.
    pub(crate) fn ended(self, verdict: Verdict, command: &[String]) -> Attempt {
        match self {
            Self::Api(_) => verdict.into_attempt(command),
            Self::Cri(running) => running.ended(verdict, command),
        }
    }

    /// Ends it as far as that can be done; the attempt then says whether it may go on.
    pub(crate) async fn end(self, attempt: Attempt) -> Attempt {
        match self {
            // Its input ends with the connection.
            Self::Api(_) => input_closed(attempt),
            Self::Cri(running) => running.end(attempt).await,
        }
    }
}

fn input_closed(attempt: Attempt) -> Attempt {
    let with = |failure: Failure| Failure { message: format!("{}; {INPUT_CLOSED}", failure.message), ..failure };
    let outcome = match attempt.outcome {
        Outcome::Succeeded => Outcome::Succeeded,
        Outcome::Failed(failure) => Outcome::Failed(with(failure)),
        Outcome::Unknown(failure) => Outcome::Unknown(with(failure)),
    };
    Attempt { outcome, process_may_remain: true, ..attempt }
}

/// Through the API server.
pub(crate) struct ApiStreams {
    stdin: Pin<Box<dyn AsyncWrite + Send>>,
    stdout: Output,
    stderr: Output,
    status: BoxFuture<'static, Option<Status>>,
    /// What the status said, while outputs that came before it are still to be read.
    ended: Option<Option<Status>>,
    /// Dropping it closes the connection.
    _connection: Box<dyn Any + Send>,
}

struct Output {
    from: Pin<Box<dyn AsyncRead + Send>>,
    buffer: Vec<u8>,
    open: bool,
}

impl Output {
    fn of(from: impl AsyncRead + Send + 'static) -> Self {
        Self { from: Box::pin(from), buffer: vec![0; CHUNK], open: true }
    }

    /// The next piece; for ever if there is no more.
    async fn next(&mut self) -> Bytes {
        while self.open {
            match self.from.read(&mut self.buffer).await {
                Ok(count @ 1..) => return Bytes::copy_from_slice(&self.buffer[..count]),
                Ok(0) | Err(_) => self.open = false,
            }
        }
        std::future::pending().await
    }

    fn what_is_there(&mut self) -> Option<Bytes> {
        // Unconstrained: a task that has used up its turn would be told that there is nothing.
        unconstrained(self.next()).now_or_never()
    }
}

impl ApiStreams {
    pub(super) fn of(mut process: AttachedProcess) -> Self {
        Self {
            stdin: Box::pin(process.stdin().expect("it was asked for")),
            stdout: Output::of(process.stdout().expect("it was asked for")),
            stderr: Output::of(process.stderr().expect("it was asked for")),
            status: process.take_status().expect("it is taken once").boxed(),
            ended: None,
            _connection: Box::new(process),
        }
    }

    async fn next(&mut self) -> Event {
        let Self { stdout, stderr, status, ended, .. } = self;
        if ended.is_none() {
            tokio::select! {
                biased;
                bytes = stdout.next() => return Event::Stdout(bytes),
                bytes = stderr.next() => return Event::Stderr(bytes),
                status = status => *ended = Some(status),
            }
        }
        // All that was printed is in the pipes by now.
        if let Some(bytes) = stdout.what_is_there() {
            return Event::Stdout(bytes);
        }
        if let Some(bytes) = stderr.what_is_there() {
            return Event::Stderr(bytes);
        }
        match ended.as_ref().and_then(Option::as_ref) {
            Some(status) => Event::Ended(Verdict::of(status)),
            None => Event::Lost,
        }
    }

    /// If it fails, the stream ends without a status.
    async fn write_last(&mut self, line: &str) {
        if self.stdin.write_all(line.as_bytes()).await.is_ok() {
            self.stdin.shutdown().await.ok();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio::{
        io::{DuplexStream, ReadHalf, SimplexStream, WriteHalf, duplex, simplex},
        sync::oneshot,
    };

    use super::*;

    /// The other end of a held command's streams: what the command does.
    pub(crate) struct Command {
        pub(crate) stdin: ReadHalf<SimplexStream>,
        pub(crate) stdout: WriteHalf<SimplexStream>,
        pub(crate) stderr: WriteHalf<SimplexStream>,
        status: oneshot::Sender<Status>,
        /// Ends with the connection.
        connection: DuplexStream,
    }

    impl Command {
        pub(crate) fn new() -> (Self, Streams) {
            let ((stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr)) =
                (simplex(1 << 10), simplex(1 << 10), simplex(1 << 10));
            let ((status, told), (connection, held)) = (oneshot::channel(), duplex(1));
            let streams = ApiStreams {
                stdin: Box::pin(to_stdin),
                stdout: Output::of(from_stdout),
                stderr: Output::of(from_stderr),
                status: told.map(Result::ok).boxed(),
                ended: None,
                _connection: Box::new(held),
            };
            (Self { stdin, stdout, stderr, status, connection }, Streams::Api(streams))
        }

        pub(crate) fn exits(self, code: i32) {
            let failure = serde_json::json!({"status": "Failure", "details": {
                "causes": [{"reason": "ExitCode", "message": code.to_string()}],
            }});
            let status = if code == 0 { serde_json::json!({"status": "Success"}) } else { failure };
            self.status.send(serde_json::from_value(status).unwrap()).unwrap();
        }

        /// Waits until nobody listens any more.
        pub(crate) async fn left(mut self) {
            let mut nothing = [0];
            assert_eq!(self.connection.read(&mut nothing).await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn what_was_printed_before_the_end_comes_before_it() {
        let (mut command, mut streams) = Command::new();
        command.stdout.write_all(b"out").await.unwrap();
        command.stderr.write_all(b"err").await.unwrap();
        command.exits(3);
        assert!(matches!(streams.next().await, Event::Stdout(bytes) if bytes == "out"));
        assert!(matches!(streams.next().await, Event::Stderr(bytes) if bytes == "err"));
        assert!(matches!(streams.next().await, Event::Ended(Verdict::Exit(3))));
    }

    #[test]
    fn a_command_whose_input_was_closed_may_go_on_and_that_is_said() {
        let ended = input_closed(Attempt::unknown("it was lost"));
        assert!(ended.process_may_remain);
        assert!(matches!(ended.outcome, Outcome::Unknown(failure) if failure.message.contains("ProcessMayRemain")));
    }
}
