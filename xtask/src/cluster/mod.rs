//! A real single-node Kubernetes on this machine: the oracle that all of Boathook is held against.
//!
//! Its programs are built from pinned Go modules, and live with their pods in one network namespace and one cgroup.
//! Nothing is downloaded but by the ordinary package clients, nothing listens but on loopback, and `down` leaves
//! nothing behind.

mod binaries;
mod certificates;
mod cgroups;
mod components;
mod door;
mod down;
mod files;
mod images;
mod layout;
mod network;
mod packages;
mod processes;
mod site;
mod status;
mod sysctls;
mod up;
mod version;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use rustix::fs::{FlockOperation, flock};

use layout::Layout;
use version::{DEFAULT_MINOR, Version};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Builds what is not built, starts what does not run, waits until pods and claims work
    Up {
        /// The minor version of Kubernetes, one of those that e2e/go/ pins (1.35 if there is no cluster yet)
        #[arg(long, value_name = "MINOR")]
        kubernetes: Option<String>,
    },
    /// Ends every process of the cluster and removes all it made
    Down,
    /// Shows the components; fails unless all of them run
    Status,
    /// Prints the `export` lines that point kubectl and the tests at the cluster
    Env,
    /// Builds Kubernetes' programs and etcd if they are not in the cache, and prints their folder
    Programs,
    /// Writes the images of the tests as archives, for `boathook image load`
    Images {
        /// The folder they are written into
        dir: PathBuf,
    },
    #[command(hide = true)]
    Door(door::Door),
}

pub(crate) fn run(command: Command) -> Result<ExitCode> {
    let layout = Layout::from_environment()?;
    match command {
        Command::Up { kubernetes } => {
            be_root()?;
            let _lock = lock(&layout)?;
            up::up(layout, kubernetes.as_deref())?;
        }
        Command::Down => {
            be_root()?;
            let _lock = lock(&layout)?;
            down::down(&layout)?;
        }
        Command::Status => return status::status(&layout),
        Command::Env => status::env(&layout)?,
        Command::Programs => {
            let _lock = lock(&layout)?;
            let version = Version::pinned(&layout.sources, DEFAULT_MINOR)?;
            println!("{}", binaries::kubernetes(&layout, &version)?.display());
        }
        Command::Images { dir } => images::save(&layout, &dir)?,
        Command::Door(door) => door.serve()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn be_root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("a kubelet and containerd need root: run this as root");
    }
    Ok(())
}

/// One at a time of those that build, start or end. Held until the file is closed.
fn lock(layout: &Layout) -> Result<File> {
    files::folder(&layout.cache)?;
    let path = layout.cache.join("cluster.lock");
    let file = File::create(&path).with_context(|| format!("failed to open `{}`", path.display()))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        eprintln!("another `cargo xtask cluster` is at work: waiting for it");
        flock(&file, FlockOperation::LockExclusive).with_context(|| format!("failed to lock `{}`", path.display()))?;
    }
    Ok(file)
}
