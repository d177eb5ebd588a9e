//! `boathook snapshot list`: every ApplicationSnapshot in a line.

use anyhow::Result;
use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{Consistency, Phase},
};
use boathook_apiserver::time::human_duration;
use jiff::Timestamp;
use kube::{Client, ResourceExt, api::ListParams};

use super::result::{Verdict, verdict};
use crate::{
    hooks::NONE,
    objects,
    output::{
        self, Colour, Screen,
        format::{self, Format},
        plain::names,
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
const PHASE: &str = "PHASE";

impl List {
    pub(crate) async fn run(self, client: &Client) -> Result<()> {
        let params = ListParams { label_selector: self.labels.clone(), ..ListParams::default() };
        let found: Vec<ApplicationSnapshot> = objects::list(client, &self.scope, params).await?;
        let values = found.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        if let Some(text) = self.format.text(&format::list(values))? {
            return Ok(output::print(&text)?);
        }
        let mut screen = Screen::new();
        if found.is_empty() {
            let with = self.labels.as_ref().map(|labels| format!(" with `{labels}`")).unwrap_or_default();
            screen.note(&format!("there are no ApplicationSnapshots{with} {}", self.scope.place()));
            return Ok(());
        }
        let header = self.header();
        let rows: Vec<_> = found.iter().map(|snapshot| self.row(snapshot, Timestamp::now())).collect();
        let columns = Columns::fitting([header.as_slice()].into_iter().chain(rows.iter().map(Vec::as_slice)));
        screen.line(&columns.line(&header, |_, cell| cell.to_owned()))?;
        for (row, snapshot) in rows.iter().zip(&found) {
            let is_phase = |place: usize| header.get(place).is_some_and(|title| title == PHASE);
            let colour = match verdict(snapshot) {
                Some(Verdict::Complete) => Colour::Good,
                Some(Verdict::OnlyCrashConsistent | Verdict::Failed | Verdict::NotThawed) => Colour::Bad,
                None => Colour::Odd,
            };
            let line = columns.line(row, |place, cell| match is_phase(place) {
                true => screen.painted(colour, cell),
                false => cell.to_owned(),
            });
            screen.line(&line)?;
        }
        Ok(())
    }

    fn header(&self) -> Vec<String> {
        let usual =
            ["NAMESPACE", "NAME", PHASE, "CONSISTENCY", "FROZEN FOR", "CLAIMS", "VOLUMESNAPSHOTS", "AGE", "HOOKS"];
        self.chosen(usual.map(str::to_owned).into())
    }

    fn row(&self, snapshot: &ApplicationSnapshot, now: Timestamp) -> Vec<String> {
        let status = snapshot.status.clone().unwrap_or_default();
        let or_none = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| NONE.to_owned());
        let claims = names(status.snapshots.iter().map(|record| record.persistent_volume_claim_name.as_str()));
        let claims = Some(claims).filter(|claims| !claims.is_empty());
        let made = status.snapshots.iter().filter(|record| record.cut_seen_time.is_some());
        let made = names(made.map(|record| record.volume_snapshot_name.as_str()));
        let age = snapshot.creation_timestamp().map(|created| human_duration(now.duration_since(created.0)));
        let infos = snapshot.spec.execution_hook_infos.iter();
        self.chosen(vec![
            snapshot.namespace().unwrap_or_default(),
            snapshot.name_any(),
            phase(status.phase).to_owned(),
            or_none(status.consistency.map(|consistency| consistency_word(consistency).to_owned())),
            or_none(status.freeze_window.and_then(|window| window.duration)),
            or_none(claims.or_else(|| snapshot.spec.source.persistent_volume_claim_name.clone())),
            or_none(Some(made)),
            or_none(age),
            or_none(Some(names(infos.map(|info| info.execution_hook_template_name.as_str())))),
        ])
    }

    /// Without what was not asked for: the hooks' templates are for `-o wide`.
    fn chosen(&self, mut row: Vec<String>) -> Vec<String> {
        if self.format != Format::Wide {
            row.pop();
        }
        match self.scope {
            Scope::AllNamespaces => row,
            Scope::Namespace(_) => row.split_off(1),
        }
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Freezing => "Freezing",
        Phase::Cutting => "Cutting",
        Phase::Thawing => "Thawing",
        Phase::Complete => "Complete",
        Phase::Failed => "Failed",
    }
}

fn consistency_word(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Application => "Application",
        Consistency::Crash => "Crash",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::steps::tests::snapshot, *};

    #[test]
    fn a_snapshot_is_a_row() {
        let cut = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly",
            "cutSeenTime": "2026-01-01T00:00:00.500000Z"});
        let whole = snapshot(&json!({"phase": "Complete", "consistency": "Application",
            "freezeWindow": {"duration": "1.234s"}, "snapshots": [cut]}));
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let wide = List { scope: Scope::AllNamespaces, labels: None, format: Format::Wide };
        let wanted = ["sea", "nightly", "Complete", "Application", "1.234s", "data", "nightly", "60s", "mysql, files"];
        assert_eq!(wide.row(&whole, now), wanted);
        let here = List { scope: Scope::Namespace("sea".to_owned()), labels: None, format: Format::Table };
        let young = here.row(&snapshot(&serde_json::Value::Null), now);
        assert_eq!(young, ["nightly", "Pending", "<none>", "<none>", "data", "<none>", "60s"]);
        assert_eq!(here.header().len(), young.len());
    }
}
