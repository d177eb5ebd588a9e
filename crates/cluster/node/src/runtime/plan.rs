//! What the node tells `container-init`, and what that answers: one JSON text each way.
//!
//! The plan travels in a memory file; answers are lines on a pipe that closes when the command runs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How far a container can be kept apart from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Own mount and pid namespaces, made as root.
    Root,
    /// The same inside a user namespace of one user.
    Rootless,
    /// Neither: a process in a directory of its own.
    Plain,
}

/// Where a container's files come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RootFiles {
    /// This machine's `/`.
    Host,
    /// The directory into which an image was unpacked.
    Directory(PathBuf),
}

/// A directory or file of this machine that a container sees at a path of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub source: PathBuf,
    pub target: PathBuf,
    pub read_only: bool,
}

/// A process to become, inside a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    pub terminal: bool,
}

/// A container to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    pub root: RootFiles,
    pub read_only_root: bool,
    pub mounts: Vec<Mount>,
    pub hostname: String,
    pub process: Process,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Plan {
    Start {
        isolation: Isolation,
        container: ContainerSpec,
        /// An existing directory to build the root on (or, plain, to run in).
        base: PathBuf,
    },
    Exec {
        isolation: Isolation,
        process: Process,
        /// Those of the container.
        root: RootFiles,
        /// The process that keeps the container: it lives in the container's user namespace.
        keeper: u32,
        /// The container's first process.
        target: u32,
        base: PathBuf,
    },
}

impl Plan {
    pub(super) fn isolation(&self) -> Isolation {
        match self {
            Plan::Start { isolation, .. } | Plan::Exec { isolation, .. } => *isolation,
        }
    }

    pub(super) fn root(&self) -> &RootFiles {
        match self {
            Plan::Start { container, .. } => &container.root,
            Plan::Exec { root, .. } => root,
        }
    }

    pub(super) fn process(&self) -> &Process {
        match self {
            Plan::Start { container, .. } => &container.process,
            Plan::Exec { process, .. } => process,
        }
    }
}

/// A line from `container-init`. The end of the stream without an `Error` means: the command runs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The first answer: the process that keeps the command.
    Keeper(u32),
    /// The command's process, as this machine numbers it.
    Pid(u32),
    /// It could not be started.
    Error(String),
}
