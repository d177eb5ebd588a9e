//! `boathook hooks list`: every hook in a line.

use anyhow::Result;
use boathook_api::{ExecutionHook, execution_hook::FreezeWindow};
use boathook_apiserver::time::human_duration;
use jiff::Timestamp;
use kube::{Client, ResourceExt, api::ListParams};

use super::{
    NONE,
    state::{State, snapshot_of, state, why},
};
use crate::{
    objects,
    output::{
        self, Screen,
        duration::shown,
        format::{self, Format},
        table::Columns,
    },
    pods::Scope,
};

/// What a person asked for.
pub(crate) struct List {
    pub(crate) scope: Scope,
    pub(crate) labels: Option<String>,
    pub(crate) format: Format,
}

/// The column of the table that is coloured.
const STATE: &str = "STATE";

impl List {
    pub(crate) async fn run(self, client: &Client) -> Result<()> {
        let params = ListParams { label_selector: self.labels.clone(), ..ListParams::default() };
        let found: Vec<ExecutionHook> = objects::list(client, &self.scope, params).await?;
        let values = found.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        if let Some(text) = self.format.text(&format::list(values))? {
            return Ok(output::print(&text)?);
        }
        let mut screen = Screen::new();
        if found.is_empty() {
            let with = self.labels.as_ref().map(|labels| format!(" with `{labels}`")).unwrap_or_default();
            screen.note(&format!("there are no ExecutionHooks{with} {}", self.scope.place()));
            return Ok(());
        }
        let header = self.header();
        let rows: Vec<_> = found.iter().map(|hook| self.row(hook, Timestamp::now())).collect();
        let columns = Columns::fitting([header.as_slice()].into_iter().chain(rows.iter().map(Vec::as_slice)));
        screen.line(&columns.line(&header, |_, cell| cell.to_owned()))?;
        for (row, hook) in rows.iter().zip(&found) {
            let is_state = |place: usize| header.get(place).is_some_and(|title| title == STATE);
            let colour = state(hook).colour();
            let line = columns.line(row, |place, cell| match is_state(place) {
                true => screen.painted(colour, cell),
                false => cell.to_owned(),
            });
            screen.line(&line)?;
        }
        Ok(())
    }

    fn header(&self) -> Vec<String> {
        let usual = ["NAMESPACE", "NAME", "TEMPLATE", "SNAPSHOT", STATE, "WHY", "PODS", "FROZEN FOR", "AGE"];
        self.chosen(usual.map(str::to_owned).into())
    }

    fn row(&self, hook: &ExecutionHook, now: Timestamp) -> Vec<String> {
        let or_none = |text: Option<&str>| text.unwrap_or(NONE).to_owned();
        let age = hook.creation_timestamp().map(|created| human_duration(now.duration_since(created.0)));
        self.chosen(vec![
            hook.namespace().unwrap_or_default(),
            hook.name_any(),
            or_none(hook.spec.execution_hook_template_name.as_deref()),
            or_none(snapshot_of(hook)),
            state(hook).word().to_owned(),
            or_none(why(hook).map(|why| why.reason.as_str())),
            pods(hook).to_string(),
            frozen_for(hook, now).unwrap_or_else(|| NONE.to_owned()),
            or_none(age.as_deref()),
        ])
    }

    fn chosen(&self, mut row: Vec<String>) -> Vec<String> {
        match self.scope {
            Scope::AllNamespaces => row,
            Scope::Namespace(_) => row.split_off(1),
        }
    }
}

fn pods(hook: &ExecutionHook) -> usize {
    let status = hook.status.as_ref();
    status.map(|status| boathook_decide::execution_hook::pinned_pods(status).len()).unwrap_or_default()
}

/// How long it was frozen, or has been.
pub(super) fn frozen_for(hook: &ExecutionHook, now: Timestamp) -> Option<String> {
    let FreezeWindow { start_time, end_time, duration: _ } = hook.status.as_ref()?.freeze_window.as_ref()?;
    let end = match (end_time, state(hook)) {
        (Some(end), _) => end.0,
        (None, State::Freezing | State::Frozen | State::Thawing | State::ThawFailed) => now,
        (None, _) => return None,
    };
    let length = end.duration_since(start_time.as_ref()?.0).try_into().unwrap_or_default();
    Some(shown(length))
}

#[cfg(test)]
mod tests {
    use super::{super::state::tests::hook, *};

    #[test]
    fn a_hook_is_a_row() {
        let list = |scope| List { scope, labels: None, format: Format::Table };
        let now = "2026-01-01T00:00:13Z".parse().unwrap();
        let frozen = hook(&[("Accepted", "True", "Pinned"), ("Frozen", "True", "Frozen")]);
        let row = list(Scope::AllNamespaces).row(&frozen, now);
        assert_eq!(row, ["sea", "nightly-0", "mysql", "nightly", "Frozen", "<none>", "1", "12s", "13s"]);
        let here = list(Scope::Namespace("sea".to_owned()));
        let failed = hook(&[("Frozen", "False", "PreActionFailed"), ("Thawed", "True", "Thawed")]);
        assert_eq!(here.row(&failed, now)[3..5], ["Thawed", "PreActionFailed"]);
        assert_eq!(here.header().len(), here.row(&failed, now).len());
    }
}
