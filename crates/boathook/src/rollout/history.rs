//! `boathook rollout history`: what became of each rollout and its stages, the latest last, as kubectl has it.

use anyhow::Result;
use boathook_api::deployment_lifecycle::{PastRollout, Rollout, RolloutOutcome, RolloutPhase, Stage, StageState};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::{
    deployment,
    stages::{result, took},
};
use crate::{
    output::{
        self, Colour, Screen,
        duration::shown,
        format::Format,
        plain::{in_words, one_line},
        table::{Columns, NONE, NOTHING},
    },
    pods::Scope,
};

/// What a person asked for.
pub(crate) struct History {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) format: Format,
}

/// One rollout, and what became of it if it is over.
struct Entry<'a> {
    rollout: &'a Rollout,
    outcome: Option<RolloutOutcome>,
}

impl History {
    pub(crate) async fn run(self, client: &Client) -> Result<()> {
        let scope = Scope::Namespace(self.namespace.clone());
        let (_, lifecycle) = deployment::find(client, &scope, &self.name).await?;
        let status = lifecycle.status.unwrap_or_default();
        let entries = entries(&status.history, status.rollout.as_ref());
        let values = entries.iter().map(value).collect::<Result<Vec<_>>>()?;
        if let Some(text) = self.format.text(&Value::from(values))? {
            return Ok(output::print(&text)?);
        }
        let mut screen = Screen::new();
        if entries.is_empty() {
            screen.note(&format!("no rollout of Deployment `{}` is recorded yet", self.name));
            return Ok(());
        }
        let rows = rows(&entries, self.format == Format::Wide, Timestamp::now());
        let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
        for (place, row) in rows.iter().enumerate() {
            let entry = place.checked_sub(1).and_then(|place| entries.get(place));
            let line = columns.line(row, |column, cell| match entry.filter(|_| column == OUTCOME) {
                Some(entry) => entry.colour().map_or_else(|| cell.to_owned(), |colour| screen.painted(colour, cell)),
                None => cell.to_owned(),
            });
            screen.line(&line)?;
        }
        Ok(())
    }
}

/// The column that is coloured.
const OUTCOME: usize = 1;

/// The oldest first.
fn entries<'a>(history: &'a [PastRollout], current: Option<&'a Rollout>) -> Vec<Entry<'a>> {
    let past = history.iter().rev().map(|past| Entry { rollout: &past.rollout, outcome: Some(past.outcome) });
    past.chain(current.map(|rollout| Entry { rollout, outcome: None })).collect()
}

fn value(entry: &Entry<'_>) -> Result<Value> {
    Ok(match entry.outcome {
        Some(outcome) => serde_json::to_value(PastRollout { rollout: entry.rollout.clone(), outcome })?,
        None => serde_json::to_value(entry.rollout)?,
    })
}

fn rows(entries: &[Entry<'_>], wide: bool, now: Timestamp) -> Vec<Vec<String>> {
    let mut header = ["REVISION", "OUTCOME", "STARTED", "TOOK", "PRE", "MID", "POST"].map(str::to_owned).to_vec();
    if wide {
        header.extend(["REPLICASET", "WHY"].map(str::to_owned));
    }
    let rows = entries.iter().map(|entry| {
        let rollout = entry.rollout;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
        let mut row = vec![or_none(rollout.revision.clone()), entry.word(), started(rollout), entry.took(now)];
        row.extend(Stage::ALL.map(|stage| result(rollout, stage).to_owned()));
        if wide {
            row.extend([or_none(rollout.replica_set.clone()), or_none(why(rollout))]);
        }
        row
    });
    std::iter::once(header).chain(rows).collect()
}

impl Entry<'_> {
    fn word(&self) -> String {
        match self.outcome {
            Some(outcome) => in_words(&outcome),
            None => in_words(&self.rollout.phase),
        }
    }

    fn colour(&self) -> Option<Colour> {
        match (self.outcome, self.rollout.phase) {
            (Some(RolloutOutcome::Superseded), _) => None,
            (_, RolloutPhase::Complete) => Some(Colour::Good),
            (_, RolloutPhase::Aborted) => Some(Colour::Bad),
            (_, RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Rolling | RolloutPhase::Post) => {
                Some(Colour::Odd)
            }
        }
    }

    fn took(&self, now: Timestamp) -> String {
        let Rollout { start_time, complete_time, .. } = self.rollout;
        match self.rollout.stages.is_empty() && complete_time.as_ref() == Some(start_time) {
            // Adopted or cancelled.
            true => NOTHING.to_owned(),
            false => shown(took(start_time, complete_time.as_ref(), now)),
        }
    }
}

/// To the second.
fn started(rollout: &Rollout) -> String {
    format!("{:.0}", rollout.start_time.0)
}

/// What its stages that did not succeed had to say.
fn why(rollout: &Rollout) -> Option<String> {
    let told = rollout.stages.iter().filter(|record| record.state != StageState::Succeeded);
    let told = told.filter_map(|record| Some(format!("{}: {}", record.stage, one_line(record.message.as_ref()?))));
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::verdict::tests::lifecycle, *};
    use crate::output::table::lines;

    #[test]
    fn each_rollout_is_a_row_the_latest_last() {
        let stage = |name: &str, state: &str| {
            json!({"stage": name, "state": state, "pods": 1, "failures": 1,
            "message": "exit code 1", "startTime": "2025-12-31T23:00:00.000000Z"})
        };
        let past = |revision: &str, phase: &str, end: &str, outcome: &str, stages: serde_json::Value| {
            json!({"target": "t", "revision": revision, "replicaSet": format!("web-{revision}"), "phase": phase,
                "startTime": "2025-12-31T23:00:00.000000Z", "completeTime": end, "outcome": outcome, "stages": stages})
        };
        let aborted = past("1", "Aborted", "2025-12-31T23:00:02.500000Z", "Aborted", json!([stage("Pre", "Failed")]));
        let adopted = past("0", "Complete", "2025-12-31T23:00:00.000000Z", "Complete", json!([]));
        let history = json!([aborted, adopted]);
        let found =
            lifecycle("Mid", json!({"status": {"history": history, "rollout": {"stages": [stage("Pre", "Ignored")]}}}));
        let status = found.status.unwrap();
        let entries = entries(&status.history, status.rollout.as_ref());
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        let told: Vec<_> = lines(&rows(&entries, true, now)).collect();
        let wanted = [
            "REVISION   OUTCOME    STARTED                TOOK   PRE       MID       POST      REPLICASET   WHY",
            "0          Complete   2025-12-31T23:00:00Z   -      -         -         -         web-0        <none>",
            "1          Aborted    2025-12-31T23:00:00Z   2.5s   FAILED    -         -         web-1        pre: exit code 1",
            "2          Mid        2026-01-01T00:00:00Z   10s    ignored   to come   to come   web-2        pre: exit code 1",
        ];
        assert_eq!(told, wanted);
        assert_eq!(value(&entries[1]).unwrap()["outcome"], "Aborted");
        assert_eq!(rows(&entries, false, now)[0].len(), 7);
    }
}
