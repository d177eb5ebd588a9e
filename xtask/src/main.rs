//! The project's chores, as `cargo xtask COMMAND`: what is too much for a shell script and no part of the product.

mod cluster;
mod generate;
mod reference;
mod say;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "The project's chores")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// A real single-node Kubernetes on this machine, for the tests
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Refreshes the code that is generated and committed
    Generate,
}

fn main() -> ExitCode {
    let Cli { chore } = Cli::parse();
    let done = match chore {
        Chore::Cluster(command) => cluster::run(command),
        Chore::Generate => generate::run().map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
