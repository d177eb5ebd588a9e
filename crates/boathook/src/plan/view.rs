//! A plan for a person: the steps in their order, then what is to be known about them.

use std::{io, time::Duration};

use super::{
    hook::{Container, Hook, Step},
    layout::{Cut, Layout},
    planned::{Planned, Template},
};
use crate::output::{
    Colour, Screen,
    action::hook_action_text,
    duration::shown,
    plain::{count, one_line},
    table::{Columns, NOTHING},
};

pub(super) fn show(planned: &Planned, screen: &mut Screen) -> io::Result<()> {
    let Planned { kind, name, namespace, would_work, template, layout, rights } = planned;
    screen.line(&format!("{kind} {name} in namespace {namespace}:"))?;
    let rows = match template {
        Some(template) => of_template(name, template),
        None => rows(layout),
    };
    if !rows.is_empty() {
        let header = ["STEP", "DO", "HOOK", "WHERE", "HOW"].map(str::to_owned).to_vec();
        let all: Vec<_> = std::iter::once(header).chain(rows).collect();
        let columns = Columns::fitting(all.iter().map(Vec::as_slice));
        for (lead, how) in all.iter().map(|row| columns.parts(row)) {
            screen.text(&format!("  {lead}"), None, how)?;
        }
    }
    for hook in &layout.hooks {
        fact("expires", &expiry(&hook.name, hook.expiration_seconds), screen)?;
    }
    if let Some(template) = template {
        fact("expires", &expiry(name, template.expiration_seconds), screen)?;
    }
    let granted: Vec<_> = rights.iter().filter(|answer| answer.granted).map(|answer| answer.right.as_str()).collect();
    if !granted.is_empty() {
        fact("you may", &granted.join(", "), screen)?;
    }
    for note in &layout.notes {
        fact("note", note, screen)?;
    }
    for risk in &layout.risks {
        fact(&screen.painted(Colour::Odd, "risk"), risk, screen)?;
    }
    for reason in &layout.reasons {
        fact(&screen.painted(Colour::Bad, "FAILS"), reason, screen)?;
    }
    let (colour, verdict) = match (would_work, layout.risks.len()) {
        (true, 0) => (Colour::Good, "would work".to_owned()),
        (true, number) => (Colour::Odd, format!("would work, with {}", count(number, "risk"))),
        (false, _) => (Colour::Bad, "would FAIL".to_owned()),
    };
    screen.line(&screen.painted(colour, &verdict))
}

fn fact(name: &str, text: &str, screen: &mut Screen) -> io::Result<()> {
    screen.text(&format!("  {name}: "), None, &one_line(text))
}

fn expiry(name: &str, seconds: Option<i32>) -> String {
    match seconds.and_then(|seconds| u64::try_from(seconds).ok()) {
        Some(seconds) => format!("{name} {} after its first PreAction", shown(Duration::from_secs(seconds))),
        None => format!("{name} never"),
    }
}

fn rows(layout: &Layout) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut step = 0;
    let mut next = || {
        step += 1;
        step.to_string()
    };
    for hook in &layout.hooks {
        let frozen = hook.containers.iter().map(|container| (place(container), container.pre_action.text()));
        rows.extend(of_step(next(), "freeze", &hook.name, frozen.collect()));
    }
    if !layout.cuts.is_empty() {
        let cuts = layout.cuts.iter().map(|cut| {
            let Cut { persistent_volume_claim_name: claim, volume_snapshot_name: name, timeout_seconds } = cut;
            let longest = shown(Duration::from_secs(*timeout_seconds));
            (format!("claim {claim}"), format!("VolumeSnapshot {name} (at most {longest})"))
        });
        rows.extend(of_step(next(), "cut", NOTHING, cuts.collect()));
    }
    for hook in layout.hooks.iter().rev().filter(|hook| hook.thaws) {
        let thawed = hook.containers.iter().map(|container| (place(container), thaw_text(hook, container)));
        rows.extend(of_step(next(), "thaw", &hook.name, thawed.collect()));
    }
    rows
}

/// A session that is held is released first.
fn thaw_text(hook: &Hook, container: &Container) -> String {
    let release = hook.holds_session.then(|| "release the session".to_owned());
    let texts: Vec<_> = release.into_iter().chain(container.post_action.as_ref().map(Step::text)).collect();
    texts.join(", then ")
}

/// All of one step is done at once: it has one number, and what is the same is said once.
fn of_step(step: String, what: &str, hook: &str, places: Vec<(String, String)>) -> Vec<Vec<String>> {
    let mut before: Option<String> = None;
    let row = |(place, how): (String, String)| {
        let first = before.is_none();
        let shown = if before.as_ref() == Some(&how) { String::new() } else { how.clone() };
        before = Some(how);
        let head = match first {
            true => [step.clone(), what.to_owned(), hook.to_owned()],
            false => [String::new(), String::new(), String::new()],
        };
        head.into_iter().chain([place, shown]).collect()
    };
    places.into_iter().map(row).collect()
}

fn of_template(name: &str, template: &Template) -> Vec<Vec<String>> {
    let anywhere = "where hooks say".to_owned();
    let freeze =
        of_step("1".to_owned(), "freeze", name, vec![(anywhere.clone(), hook_action_text(&template.pre_action))]);
    let thaw = template
        .post_action
        .iter()
        .flat_map(|action| of_step("2".to_owned(), "thaw", name, vec![(anywhere.clone(), hook_action_text(action))]));
    freeze.into_iter().chain(thaw).collect()
}

fn place(container: &Container) -> String {
    format!("{}/{}", container.pod, container.container)
}
