//! Reading what a command prints while it runs: never kept beyond the tail, never held up.

use std::pin::pin;

use futures::FutureExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    task::unconstrained,
};

use crate::tail::Tail;

const CHUNK: usize = 16 << 10;

/// Reads both outputs until the status is there, or it is certain that none comes.
///
/// All that was printed is in the pipes by then; but they end only after a status, and never when a stream is lost.
pub(super) async fn read_to_the_end(
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    status: impl Future<Output = Option<Status>>,
    tail: &mut Tail,
) -> Option<Status> {
    let mut status = pin!(status);
    let (mut from_stdout, mut from_stderr) = (vec![0; CHUNK], vec![0; CHUNK]);
    let (mut stdout_open, mut stderr_open) = (true, true);
    let status = loop {
        tokio::select! {
            read = stdout.read(&mut from_stdout), if stdout_open => {
                let count = read.unwrap_or(0);
                tail.push(&from_stdout[..count]);
                stdout_open = count > 0;
            }
            read = stderr.read(&mut from_stderr), if stderr_open => {
                let count = read.unwrap_or(0);
                tail.push(&from_stderr[..count]);
                stderr_open = count > 0;
            }
            status = &mut status => break status,
        }
    };
    take_what_is_there(&mut stdout, &mut from_stdout, tail);
    take_what_is_there(&mut stderr, &mut from_stderr, tail);
    status
}

fn take_what_is_there(from: &mut (impl AsyncRead + Unpin), chunk: &mut [u8], tail: &mut Tail) {
    // Unconstrained: a task that has used up its turn would be told that there is nothing.
    while let Some(Ok(count @ 1..)) = unconstrained(from.read(chunk)).now_or_never() {
        tail.push(&chunk[..count]);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, simplex};

    use super::*;

    #[tokio::test]
    async fn what_was_printed_before_the_end_is_read() {
        let ((stdout, mut to_stdout), (stderr, mut to_stderr)) = (simplex(64), simplex(64));
        to_stdout.write_all(b"out").await.unwrap();
        to_stderr.write_all(b"err").await.unwrap();
        let mut tail = Tail::default();
        let lost = read_to_the_end(stdout, stderr, async { None }, &mut tail).await;
        assert_eq!(lost, None);
        let text = tail.into_text();
        assert!(text.contains("out") && text.contains("err"), "{text}");
    }

    #[tokio::test]
    async fn a_command_that_prints_much_is_not_held_up() {
        let ((stdout, mut to_stdout), (stderr, _to_stderr)) = (simplex(64), simplex(64));
        let printing = async move {
            to_stdout.write_all(&vec![b'a'; 1 << 20]).await.unwrap();
            to_stdout.write_all(b"end").await.unwrap();
            Some(Status { status: Some("Success".to_owned()), ..Status::default() })
        };
        let mut tail = Tail::default();
        let status = read_to_the_end(stdout, stderr, printing, &mut tail).await;
        assert_eq!(status.unwrap().status.as_deref(), Some("Success"));
        assert!(tail.into_text().ends_with("aend"));
    }
}
