//! The commands: a file each, which parses and calls.

mod agent;
mod connection;
mod controller;
mod demo;
mod drill;
mod gates;
mod hooks;
mod image;
mod logbook;
mod notifiers;
mod notify;
mod pages;
mod plan;
mod preflight;
mod rollout;
mod scope;
mod selector;
pub(crate) mod signals;
mod snapshot;
mod target;
mod thaw;
mod timeline;
mod up;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show everything on a temporary cluster: torn and whole snapshots, a vetoed rollout, a thaw after a crash
    Demo(demo::Demo),
    /// Start a small Kubernetes on this machine, with Boathook in it
    Up(up::Up),
    /// Run Boathook's controllers against a cluster
    Controller(Box<controller::Controller>),
    /// Run the notifications of one node through its container runtime
    Agent(agent::AgentCommand),
    /// Run a declared notifier in pods, and report each result
    Notify(notify::Notify),
    /// List the notifiers that pods declare
    Notifiers(notifiers::Notifiers),
    /// Create and list application-consistent snapshots
    Snapshot(snapshot::Snapshot),
    /// List and describe execution hooks: frozen, thawed, failed
    Hooks(hooks::Hooks),
    /// Thaw a hook or all hooks of a snapshot now, and report the result
    Thaw(thaw::Thaw),
    /// Show what a manifest would freeze and snapshot, your rights, and the risks; changes nothing
    Plan(plan::Plan),
    /// Freeze and thaw without taking a snapshot, and measure how long it takes
    Drill(Box<drill::Drill>),
    /// Draw when each container was frozen, and when the storage took the snapshot
    Timeline(timeline::Timeline),
    /// Follow, rehearse, retry and skip the hooks of a Deployment's rollouts
    Rollout(rollout::Rollout),
    /// Load container images into the embedded cluster of `boathook up`
    Image(image::Image),
    /// Run the demo database: a small program to freeze, copy and thaw in the demo and the documentation
    #[command(hide = true)]
    Logbook(logbook::Logbook),
}

/// The usage lines that the parser cannot derive, with the name by which the program was called.
pub(crate) fn with_usage(parser: clap::Command, called_as: &str) -> clap::Command {
    parser
        .mut_subcommand("notify", |notify| notify.override_usage(notify::usage(called_as)))
        .mut_subcommand("plan", |plan| plan.override_usage(plan::usage(called_as)))
}

pub(crate) fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Demo(demo) => demo.run(),
        Command::Up(up) => up.run(),
        Command::Controller(controller) => controller.run(),
        Command::Agent(agent) => agent.run(),
        Command::Notify(notify) => notify.run(),
        Command::Notifiers(notifiers) => notifiers.run(),
        Command::Snapshot(snapshot) => snapshot.run(),
        Command::Hooks(hooks) => hooks.run(),
        Command::Thaw(thaw) => thaw.run(),
        Command::Plan(plan) => plan.run(),
        Command::Drill(drill) => drill.run(),
        Command::Timeline(timeline) => timeline.run(),
        Command::Rollout(rollout) => rollout.run(),
        Command::Image(image) => image.run(),
        Command::Logbook(logbook) => Ok(logbook.run()),
    }
}

/// Runs what a command does to its end. It mostly waits: one thread is enough.
fn block_on(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("failed to start")?.block_on(work)
}

/// What the parser cannot say by itself, in its manner and with its exit code.
fn usage_error(message: &str) -> ! {
    clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, format!("{message}\n")).exit()
}
