//! `boathook timeline`: looks the object up, and prints who was frozen from when to when.

use anyhow::Result;
use boathook_api::{ApplicationSnapshot, ExecutionHook, application_snapshot::Consistency};
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use serde_json::json;

use super::{Glyphs, Look, Timeline, lines, of_hook, of_snapshot, value};
use crate::{
    hooks,
    output::{
        self, Screen,
        duration::shown,
        format::Format,
        plain::{in_words, one_line},
    },
    pods::Scope,
    subject::{Name, Subject},
};

/// What a person asked for.
pub(crate) struct Show {
    pub(crate) namespace: String,
    pub(crate) name: Name,
    pub(crate) format: Format,
}

impl Show {
    pub(crate) async fn run(self, client: &Client) -> Result<()> {
        let subject = self.name.find(client, &Scope::Namespace(self.namespace.clone())).await?;
        let now = Timestamp::now();
        let (headline, timeline) = match &subject {
            Subject::Snapshot(snapshot, hooks) => (of_whole(snapshot), of_snapshot(snapshot, hooks, now)),
            Subject::Hook(hook) => (of_one(hook), of_hook(hook, now)),
        };
        let (kind, name) = match &subject {
            Subject::Snapshot(snapshot, _) => ("ApplicationSnapshot", snapshot.name_any()),
            Subject::Hook(hook) => ("ExecutionHook", hook.name_any()),
        };
        let mut object = value(&timeline);
        object["kind"] = json!(kind);
        object["name"] = json!(name);
        object["namespace"] = json!(self.namespace);
        if let Some(text) = self.format.text(&object)? {
            return Ok(output::print(&text)?);
        }
        let mut screen = Screen::new();
        screen.text("", None, &format!("{kind} {name}: {headline}"))?;
        print(&timeline, &mut screen)
    }
}

/// The drawing and what it shows, as wide as the screen is.
pub(crate) fn print(timeline: &Timeline, screen: &mut Screen) -> Result<()> {
    let glyphs = if output::is_unicode() { Glyphs::UNICODE } else { Glyphs::ASCII };
    let drawing = lines(timeline, Look { width: output::width(), glyphs });
    if drawing.is_empty() {
        screen.line("no freeze is recorded yet")?;
        return Ok(());
    }
    screen.line("")?;
    for line in drawing {
        screen.line(&line)?;
    }
    screen.text("", None, &summary(timeline))?;
    for (lead, why) in failures(timeline) {
        screen.text(&lead, None, &why)?;
    }
    Ok(())
}

fn summary(timeline: &Timeline) -> String {
    let window = timeline.window().map(shown).unwrap_or_default();
    let open = if timeline.is_open() { " so far" } else { "" };
    let all = match timeline.all_frozen() {
        Some((from, to)) => format!("all at once from {} to {}", shown(from), shown(to)),
        None => "never all at once".to_owned(),
    };
    format!("frozen for {window}{open}, {all}")
}

/// What failed, and why.
fn failures(timeline: &Timeline) -> Vec<(String, String)> {
    let actions = timeline.bars.iter().flat_map(|bar| {
        let thaw = bar.thaw.iter().map(|thaw| ("PostAction", thaw));
        [("PreAction", &bar.freeze)].into_iter().chain(thaw).map(move |(action, span)| (bar, action, span))
    });
    let failed = actions.filter(|(_, _, span)| span.succeeded == Some(false));
    failed
        .map(|(bar, action, span)| {
            let why = span.error.as_deref().unwrap_or("no reason is recorded");
            (format!("{action} failed in {}: ", one_line(&bar.place())), one_line(why))
        })
        .collect()
}

fn of_whole(snapshot: &ApplicationSnapshot) -> String {
    let status = snapshot.status.clone().unwrap_or_default();
    let consistency = match status.consistency {
        Some(Consistency::Application) => ", application-consistent",
        Some(Consistency::Crash) => ", crash-consistent",
        None => "",
    };
    format!(
        "{}{consistency}{}",
        in_words(&status.phase),
        since(status.freeze_window.and_then(|window| window.start_time))
    )
}

fn of_one(hook: &ExecutionHook) -> String {
    let window = hook.status.as_ref().and_then(|status| status.freeze_window.clone());
    format!("{}{}", hooks::state(hook).word(), since(window.and_then(|window| window.start_time)))
}

fn since(start: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime>) -> String {
    start.map(|start| format!(", from {:.3}", start.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{at, bar, span},
        *,
    };

    #[test]
    fn what_is_drawn_is_also_said() {
        let mut bars = vec![
            bar("a", "one", span(0, 100), Some(span(900, 1_000))),
            bar("b", "two", span(100, 300), Some(span(700, 800))),
        ];
        let told = |bars: &[_]| summary(&Timeline { bars: bars.to_vec(), cuts: vec![], now: at(5_000) });
        assert_eq!(told(&bars), "frozen for 1s, all at once from 300ms to 700ms");
        bars[1].freeze.succeeded = Some(false);
        bars[1].freeze.error = Some("exit code\n3".to_owned());
        bars[0].open = true;
        assert_eq!(told(&bars), "frozen for 5s so far, never all at once");
        let failures = failures(&Timeline { bars, cuts: vec![], now: at(5_000) });
        assert_eq!(failures, [("PreAction failed in two/main: ".to_owned(), r"exit code\n3".to_owned())]);
    }
}
