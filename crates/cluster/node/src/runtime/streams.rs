//! A process's stdin, stdout and stderr: pipes, or one terminal.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;

use super::plan::{Isolation, Plan};
use super::terminal::{self, Terminal};

pub type Input = Box<dyn AsyncWrite + Send + Unpin>;
pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// The node's ends of a process's streams. With a terminal there is no stderr of its own.
pub struct Streams {
    pub stdin: Option<Input>,
    pub stdout: Output,
    pub stderr: Option<Output>,
    pub terminal: Option<Terminal>,
}

/// The node's ends, and those of the process. Its stdin is empty unless asked for.
pub(super) fn open(plan: &Plan, stdin: bool) -> io::Result<(Streams, [OwnedFd; 3])> {
    if plan.process().terminal { open_terminal(plan, stdin) } else { open_pipes(stdin) }
}

fn open_pipes(stdin: bool) -> io::Result<(Streams, [OwnedFd; 3])> {
    let (node_stdin, stdin): (Option<Input>, OwnedFd) = if stdin {
        let (stdin, node) = io::pipe()?;
        (Some(Box::new(pipe::Sender::from_owned_fd(node.into())?)), stdin.into())
    } else {
        (None, File::open("/dev/null")?.into())
    };
    let (node_stdout, stdout) = io::pipe()?;
    let (node_stderr, stderr) = io::pipe()?;
    let streams = Streams {
        stdin: node_stdin,
        stdout: Box::new(pipe::Receiver::from_owned_fd(node_stdout.into())?),
        stderr: Some(Box::new(pipe::Receiver::from_owned_fd(node_stderr.into())?)),
        terminal: None,
    };
    Ok((streams, [stdin, stdout.into(), stderr.into()]))
}

fn open_terminal(plan: &Plan, stdin: bool) -> io::Result<(Streams, [OwnedFd; 3])> {
    let within = match plan {
        Plan::Exec { isolation: Isolation::Root | Isolation::Rootless, target, .. } => Some(*target),
        Plan::Exec { .. } | Plan::Start { .. } => None,
    };
    let (terminal, screen, keyboard, process) = terminal::open(within)?;
    let streams = Streams {
        stdin: stdin.then(|| Box::new(keyboard) as Input),
        stdout: Box::new(screen),
        stderr: None,
        terminal: Some(terminal),
    };
    Ok((streams, [process.try_clone()?, process.try_clone()?, process]))
}
