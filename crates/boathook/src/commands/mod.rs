//! The commands: a file each, which parses and calls.

mod agent;
mod connection;
mod controller;
mod demo;
mod gates;
mod image;
mod logbook;
mod notifiers;
mod notify;
mod pages;
mod scope;
mod signals;
mod up;

use std::process::ExitCode;

use anyhow::Result;
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
        Command::Image(image) => image.run(),
        Command::Logbook(logbook) => Ok(logbook.run()),
    }
}
