//! `boathook timeline`: who was frozen from when to when.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{
    block_on,
    scope::{Here, Shape},
};
use crate::{subject::Name, timeline};

#[derive(Args)]
pub(crate) struct Timeline {
    /// An ApplicationSnapshot or ExecutionHook (snapshot/NAME or hook/NAME if both have that name)
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
