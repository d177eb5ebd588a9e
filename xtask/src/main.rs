//! The project's chores, as `cargo xtask COMMAND`: what is too much for a shell script and no part of the product.

mod cluster;
mod dependencies;
mod generate;
mod idioms;
mod mutants;
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
    /// Checks the licences, sources and versions of all dependencies
    Dependencies,
    /// Refreshes the code that is generated and committed
    Generate,
    /// Lists the phrases that the style guide rules out, in documentation, messages and comments
    Idioms {
        /// Lower the ceilings in xtask/idioms.yaml to what is left
        #[arg(long)]
        lower: bool,
    },
    /// Breaks promises in a scratch copy, one at a time: a fast test must notice each
    Mutants {
        /// Only those whose promise, file or crate contains this text
        filter: Option<String>,
    },
}

fn main() -> ExitCode {
    let Cli { chore } = Cli::parse();
    let done = match chore {
        Chore::Cluster(command) => cluster::run(command),
        Chore::Dependencies => dependencies::run().map(|()| ExitCode::SUCCESS),
        Chore::Generate => generate::run().map(|()| ExitCode::SUCCESS),
        Chore::Idioms { lower } => idioms::run(lower),
        Chore::Mutants { filter } => mutants::run(filter.as_deref()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
