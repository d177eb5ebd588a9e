//! `boathook image`: the images that pods of the embedded cluster can run.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::{embedded, output::Screen};

const AFTER_HELP: &str = "\
Examples:
  docker save nginx:1.29 -o nginx.tar && boathook image load nginx.tar

Exit codes:
  0    success
  1    failure
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Image {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Subcommand)]
enum ImageCommand {
    /// Load the images of a docker or OCI archive (`docker save`); the cluster may be running
    #[command(after_help = AFTER_HELP)]
    Load {
        /// The archive, a tar file
        file: PathBuf,
        /// The data directory of the cluster [default: that of `boathook up`]
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
}

impl Image {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let ImageCommand::Load { file, data_dir } = self.command;
        let mut screen = Screen::new();
        for name in embedded::load_images(data_dir, &file)? {
            screen.line(&format!("loaded {name}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
