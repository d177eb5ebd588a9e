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
    /// Shows the main job on a cluster of its own: a database, its snapshots torn and whole, and the way back
    Demo(demo::Demo),
    /// Starts a small Kubernetes inside this program, on this machine
    Up(up::Up),
    /// Runs the controllers against the cluster of a kubeconfig
    Controller(Box<controller::Controller>),
    /// Carries out one node's notifications, through its container runtime
    Agent(agent::AgentCommand),
    /// Tells pods to do what their authors declared, and says how it went
    Notify(notify::Notify),
    /// Lists what pods declare that they can be told
    Notifiers(notifiers::Notifiers),
    /// Application-consistent snapshots: freeze, cut, and always thaw
    Snapshot(snapshot::Snapshot),
    /// Execution hooks: what is frozen, and what became of it
    Hooks(hooks::Hooks),
    /// Asks hooks for their thaw now, and says how it went
    Thaw(thaw::Thaw),
    /// Says what a file would freeze, in which order, whether you may, and what is risky; nothing is done
    Plan(plan::Plan),
    /// Freezes and thaws without a cut, and says how long that takes
    Drill(Box<drill::Drill>),
    /// Draws who was frozen from when to when, and when the cut was
    Timeline(timeline::Timeline),
    /// Hooks at the stages of rollouts: followed, rehearsed, and helped along
    Rollout(rollout::Rollout),
    /// The images that pods of the embedded cluster can run
    Image(image::Image),
    /// A small database for the demo and the documentation: to be frozen, copied and thawed
    #[command(hide = true)]
    Logbook(logbook::Logbook),
}

/// What the parser cannot say by itself: how `notify` is written, by whatever name the program is called.
pub(crate) fn with_usage(parser: clap::Command, called_as: &str) -> clap::Command {
    parser.mut_subcommand("notify", |notify| notify.override_usage(notify::usage(called_as)))
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
