//! `boathook plan`: which containers would be frozen, with which command, in which order, whether the caller may, and what
//! is risky. It decides as the controllers do, from what is there now, and does nothing.

mod hook;
mod layout;
mod planned;
mod risks;
mod view;

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::Result;
use kube::{Client, ResourceExt};
use serde_json::Value;

pub(crate) use hook::Hook;
pub(crate) use layout::{Layout, Place};
use planned::{Planned, of_hook, of_marked, of_snapshot, of_template};

use crate::{
    manifest::{Manifest, Wanted},
    output::{self, Screen, format::Format},
};

/// What a person asked for.
pub(crate) struct Plan {
    /// Of documents that name none.
    pub(crate) namespace: String,
    pub(crate) manifest: Manifest,
    pub(crate) format: Format,
}

impl Plan {
    pub(crate) async fn run(self, client: &Client) -> Result<ExitCode> {
        let plans = self.plans(client).await?;
        let code = match plans.iter().all(|planned| planned.would_work) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
        let values = plans.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        if let Some(text) = self.format.text(&Value::from(values))? {
            output::print(&text)?;
            return Ok(code);
        }
        let mut screen = Screen::new();
        for (number, planned) in plans.iter().enumerate() {
            if number > 0 {
                screen.line("")?;
            }
            view::show(planned, &mut screen)?;
        }
        Ok(code)
    }

    async fn plans(&self, client: &Client) -> Result<Vec<Planned>> {
        let Manifest { templates, wanted } = &self.manifest;
        let namespace = |object: Option<String>| object.unwrap_or_else(|| self.namespace.clone());
        let mut plans = Vec::new();
        let mut of_wanted = Vec::new();
        let mut used = BTreeSet::new();
        for one in wanted {
            let namespace = namespace(one.namespace());
            let here: Vec<_> = templates.iter().filter(|template| self.is_in(template, &namespace)).cloned().collect();
            let place = Place { client, namespace: &namespace, templates: &here };
            let planned = match one {
                Wanted::Snapshot(object) => of_snapshot(&place, object).await?,
                Wanted::Hook(object) => of_hook(&place, object).await?,
                Wanted::Marked(object) => of_marked(&place, object).await?,
            };
            used.extend(planned.layout.hooks.iter().map(|hook| (namespace.clone(), hook.name.clone())));
            of_wanted.push(planned);
        }
        for template in templates {
            let namespace = namespace(template.namespace());
            let is_used = used.contains(&(namespace.clone(), template.name_any()));
            let place = Place { client, namespace: &namespace, templates };
            plans.push(of_template(&place, template, is_used).await?);
        }
        plans.extend(of_wanted);
        Ok(plans)
    }

    fn is_in(&self, template: &boathook_api::ExecutionHookTemplate, namespace: &str) -> bool {
        template.namespace().as_deref().unwrap_or(&self.namespace) == namespace
    }
}
