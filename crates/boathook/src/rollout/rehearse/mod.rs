//! `boathook rollout rehearse`: what a change would bring about, stage by stage. It decides as the controller does, from
//! what is there now and what the API server would store, and does nothing.

mod documents;
mod dry_run;
mod rehearsed;
mod risks;
mod stage;
mod tried_pods;
mod view;

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::Result;
use kube::{Client, ResourceExt};
use serde_json::Value;

pub(crate) use documents::{Documents, parse};
use rehearsed::{Rehearsed, rehearsed};

use crate::output::{self, Screen, format::Format, plain::names};

/// What a person asked for.
pub(crate) struct Rehearse {
    /// Of documents that name none.
    pub(crate) namespace: String,
    pub(crate) documents: Documents,
    pub(crate) format: Format,
}

impl Rehearse {
    pub(crate) async fn run(self, client: &Client) -> Result<ExitCode> {
        let mut all: Vec<Rehearsed> = Vec::new();
        for (namespace, name) in self.subjects() {
            let change = dry_run::change(client, &self.documents, &self.namespace, &namespace, &name).await?;
            let mut rehearsed = rehearsed(change);
            tried_pods::try_pods(client, &self.documents, &mut rehearsed).await?;
            all.push(rehearsed);
        }
        let code = match all.iter().all(|rehearsed| rehearsed.would_work) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
        let values = all.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        if let Some(text) = self.format.text(&Value::from(values))? {
            output::print(&text)?;
            return Ok(code);
        }
        let mut screen = Screen::new();
        if !self.documents.others.is_empty() {
            let others = names(self.documents.others.iter().map(String::as_str));
            screen.note(&format!("not about rollouts, and left alone: {others}"));
        }
        for (number, rehearsed) in all.iter().enumerate() {
            if number > 0 {
                screen.line("")?;
            }
            view::show(rehearsed, &mut screen)?;
        }
        Ok(code)
    }

    /// The Deployments that the file is about, by namespace and name.
    fn subjects(&self) -> BTreeSet<(String, String)> {
        let Documents { deployments, lifecycles, others: _ } = &self.documents;
        let place = |namespace: Option<String>| namespace.unwrap_or_else(|| self.namespace.clone());
        let of_deployments = deployments.iter().map(|object| (place(object.namespace()), object.name_any()));
        of_deployments.chain(lifecycles.iter().map(|object| (place(object.namespace()), object.name_any()))).collect()
    }
}
