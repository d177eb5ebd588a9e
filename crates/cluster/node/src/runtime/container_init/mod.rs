//! The hidden subcommand that makes containers, in three kinds of processes of one thread each.
//!
//! The helper is started once. It forks a keeper for each `Handover` of the node. A keeper enters the namespaces that
//! only children can be in, forks the first process, and stays outside as the parent of the container: when the node
//! shuts down its end of a socket, or is gone, the keeper ends the container. The first process builds the root and
//! then becomes the command, so that the command is pid 1.

mod command;
mod filesystem;
mod first_process;
mod keeper;
mod namespaces;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use super::handover::Handover;
use super::plan::Answer;

/// The first argument that asks for this.
pub(super) const SUBCOMMAND: &str = "container-init";

/// What a real node reports as the exit code of a container that could not be started.
const NOT_STARTED: i32 = 128;

/// If this process was started as `container-init`: does it, and does not return. To be called first in `main`,
/// before any thread is started.
pub fn run_if_asked() {
    let arguments: Vec<_> = std::env::args_os().collect();
    let [_, subcommand] = arguments.as_slice() else { return };
    if subcommand != SUBCOMMAND {
        return;
    }
    let code = serve().unwrap_or_else(|error| {
        eprintln!("container-init is started by the node, not by hand: {error}");
        125
    });
    std::process::exit(code);
}

/// Forks a keeper for each handover until the node is gone. Returns in each keeper too, when its container has ended.
fn serve() -> io::Result<i32> {
    let node = io::stdin().as_fd().try_clone_to_owned()?;
    // The socket must have one holder: the node sees the end of the helper by it.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // Ctrl-C on the node's terminal is for the node, which may need its containers to end well. A process that leads
    // its group cannot do this; the node's child does not lead one.
    rustix::process::setsid().ok();
    namespaces::ignore_children();
    while let Some(handover) = Handover::receive(&node)? {
        match namespaces::fork() {
            Ok(Some(_)) => {}
            Ok(None) => {
                drop(node);
                namespaces::wait_for_children();
                return Ok(keeper::keep(handover));
            }
            Err(error) => Answers::from(handover.answers).say(&Answer::Error(format!("failed to fork: {error}"))),
        }
    }
    Ok(0)
}

struct Answers(File);

impl From<OwnedFd> for Answers {
    fn from(pipe: OwnedFd) -> Answers {
        Answers(pipe.into())
    }
}

impl Answers {
    /// A node that is gone needs no answer.
    fn say(&mut self, answer: &Answer) {
        let mut line = serde_json::to_vec(answer).expect("an answer is plain data");
        line.push(b'\n');
        self.0.write_all(&line).ok();
    }
}
