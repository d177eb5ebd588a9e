//! `boathook image`: the images that pods of the embedded cluster can run.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::{embedded, output::Screen};

#[derive(Args)]
pub(crate) struct Image {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Subcommand)]
enum ImageCommand {
    /// Adds the images of a docker or OCI archive (`docker save`), also while the cluster runs
    Load {
        /// The archive
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
