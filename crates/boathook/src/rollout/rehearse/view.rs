//! A rehearsal for a person: the steps in their order, then what is to be known about them.

use std::io;

use boathook_api::deployment_lifecycle::Stage;

use super::{
    rehearsed::{Outlook, Rehearsed},
    stage::Staged,
};
use crate::output::{
    Colour, Screen,
    plain::{count, one_line},
    table::{Columns, NOTHING},
};

pub(super) fn show(rehearsed: &Rehearsed, screen: &mut Screen) -> io::Result<()> {
    let Rehearsed { name, namespace, strategy, replicas, .. } = rehearsed;
    let would_be = match strategy {
        Some(strategy) => format!(" ({strategy}, {}): {}", count_of(*replicas), outlook(rehearsed.rollout)),
        None => ":".to_owned(),
    };
    screen.line(&format!("Deployment {name} in namespace {namespace}{would_be}"))?;
    let rows = rows(rehearsed);
    if !rows.is_empty() {
        let header = ["STEP", "STAGE", "MEANWHILE", "HOW"].map(str::to_owned).to_vec();
        let all: Vec<_> = std::iter::once(header).chain(rows).collect();
        let columns = Columns::fitting(all.iter().map(Vec::as_slice));
        for (lead, how) in all.iter().map(|row| columns.parts(row)) {
            screen.text(&format!("  {lead}"), None, how)?;
        }
    }
    for staged in &rehearsed.stages {
        if let Some(pod) = staged.pod_text() {
            fact(&format!("pod of {}", staged.stage), &pod, screen)?;
        }
    }
    let granted: Vec<_> =
        rehearsed.rights.iter().filter(|answer| answer.granted).map(|answer| answer.right.as_str()).collect();
    if !granted.is_empty() {
        fact("you may", &granted.join(", "), screen)?;
    }
    for note in &rehearsed.notes {
        fact("note", note, screen)?;
    }
    for risk in &rehearsed.risks {
        fact(&screen.painted(Colour::Odd, "risk"), risk, screen)?;
    }
    for reason in &rehearsed.reasons {
        fact(&screen.painted(Colour::Bad, "FAILS"), reason, screen)?;
    }
    let (colour, verdict) = match (rehearsed.would_work, rehearsed.risks.len()) {
        (true, 0) => (Colour::Good, "would work".to_owned()),
        (true, number) => (Colour::Odd, format!("would work, with {}", count(number, "risk"))),
        (false, _) => (Colour::Bad, "would FAIL".to_owned()),
    };
    screen.line(&screen.painted(colour, &verdict))
}

fn fact(name: &str, text: &str, screen: &mut Screen) -> io::Result<()> {
    screen.text(&format!("  {name}: "), None, &one_line(text))
}

fn outlook(outlook: Outlook) -> &'static str {
    match outlook {
        Outlook::Held => "a new version would be rolled out, and held at its stages",
        Outlook::NotHeld => "a new version would be rolled out, and NOT held",
        Outlook::None => "no rollout, the template is as it was; at the next one",
    }
}

fn count_of(replicas: i32) -> String {
    count(usize::try_from(replicas).unwrap_or_default(), "pod")
}

/// Hooks, and what Kubernetes does between them.
fn rows(rehearsed: &Rehearsed) -> Vec<Vec<String>> {
    if rehearsed.stages.is_empty() {
        return vec![];
    }
    let hook = |stage: Stage| rehearsed.stages.iter().find(|staged| staged.stage == stage).map(hook_row);
    let plain = |meanwhile: &str| [NOTHING, meanwhile, ""].map(str::to_owned);
    let drain = (rehearsed.strategy == Some("Recreate")).then(|| plain("the old version ends"));
    let open = plain(&format!("the new version is let in: {}", count_of(rehearsed.replicas)));
    let steps = [hook(Stage::Pre), drain, hook(Stage::Mid), Some(open), hook(Stage::Post)];
    let numbered = steps.into_iter().flatten().enumerate();
    numbered.map(|(place, row)| std::iter::once((place + 1).to_string()).chain(row).collect()).collect()
}

fn hook_row(staged: &Staged) -> [String; 3] {
    [staged.stage.to_string(), staged.held.to_owned(), format!("{} ({})", staged.what, staged.policy_text())]
}
