//! `boathook timeline`: when each container was frozen.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{
    block_on,
    scope::{Here, Shape},
};
use crate::{subject::Name, timeline};

const AFTER_HELP: &str = "\
Examples:
  boathook timeline nightly -n shop
  boathook timeline hook/freeze -o json

Exit codes:
  0    success
  1    failure, or there is no such object
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Timeline {
    /// An ApplicationSnapshot or ExecutionHook; snapshot/NAME or hook/NAME if both exist
    #[arg(value_parser = Name::parse)]
    name: Name,
    #[command(flatten)]
    place: Here,
    #[command(flatten)]
    shape: Shape,
}

impl Timeline {
    pub(crate) fn run(self) -> Result<ExitCode> {
        block_on(async {
            let (client, namespace) = self.place.client().await?;
            timeline::Show { namespace, name: self.name, format: self.shape.format() }.run(&client).await?;
            Ok(ExitCode::SUCCESS)
        })
    }
}
