//! `boathook hooks describe`: all that is known of a hook, for a person.

use std::time::Duration;

use anyhow::Result;
use boathook_api::{
    ExecutionHook,
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookActionStatus},
};
use jiff::Timestamp;
use kube::{Client, ResourceExt, api::ListParams};

use super::{
    list::frozen_for,
    state::{State, expires, snapshot_of, state, why},
};
use crate::{
    objects,
    output::{
        Screen,
        action::hook_action_text,
        duration::shown,
        plain::one_line,
        table::{Columns, NONE, NOTHING},
    },
    pods::Scope,
};

/// What a person asked for.
pub(crate) struct Describe {
    pub(crate) namespace: String,
    /// Absent: all.
    pub(crate) name: Option<String>,
}

impl Describe {
    pub(crate) async fn run(self, client: &Client) -> Result<()> {
        let scope = Scope::Namespace(self.namespace);
        let hooks: Vec<ExecutionHook> = match &self.name {
            Some(name) => vec![objects::get(client, &scope, name).await?],
            None => objects::list(client, &scope, ListParams::default()).await?,
        };
        let mut screen = Screen::new();
        if hooks.is_empty() {
            screen.note(&format!("there are no ExecutionHooks {}", scope.place()));
        }
        for (number, hook) in hooks.iter().enumerate() {
            if number > 0 {
                screen.line("")?;
            }
            for (lead, text) in described(hook, Timestamp::now()) {
                screen.text(&lead, None, &text)?;
            }
        }
        Ok(())
    }
}

/// Lines: a lead and what it is of.
fn described(hook: &ExecutionHook, now: Timestamp) -> Vec<(String, String)> {
    let mut all: Vec<_> = facts(hook, now).into_iter().map(|(name, value)| (format!("{name:14}"), value)).collect();
    let title = |title: &str| (title.to_owned(), String::new());
    let status = hook.status.clone().unwrap_or_default();
    if !status.container_execution_hook_statuses.is_empty() {
        all.push(title("Containers:"));
        all.extend(containers(&status.container_execution_hook_statuses));
    }
    if !status.conditions.is_empty() {
        all.push(title("Conditions:"));
        let header = ["TYPE", "STATUS", "REASON", "MESSAGE"].map(str::to_owned).to_vec();
        let rows = status.conditions.iter().map(|condition| {
            let message = one_line(&condition.message);
            vec![condition.type_.clone(), condition.status.clone(), condition.reason.clone(), message]
        });
        let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
        let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
        let parts = rows.iter().map(|row| columns.parts(row));
        all.extend(parts.map(|(lead, message)| (format!("  {lead}"), message.to_owned())));
    }
    all
}

fn facts(hook: &ExecutionHook, now: Timestamp) -> Vec<(&'static str, String)> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let recorded = hook.status.as_ref().and_then(|status| status.recorded.clone());
    let pre_action = recorded.as_ref().map(|recorded| recorded.pre_action.clone()).or(hook.spec.pre_action.clone());
    let post_action =
        recorded.as_ref().and_then(|recorded| recorded.post_action.clone()).or(hook.spec.post_action.clone());
    let because = why(hook).map(|why| format!(" ({})", why.reason)).unwrap_or_default();
    vec![
        ("Name:", hook.name_any()),
        ("Namespace:", hook.namespace().unwrap_or_default()),
        ("Template:", or_none(hook.spec.execution_hook_template_name.clone())),
        ("Snapshot:", or_none(snapshot_of(hook).map(str::to_owned))),
        ("State:", format!("{}{because}", state(hook).word())),
        ("Frozen for:", or_none(frozen_for(hook, now))),
        ("Expires:", expiry(hook, now)),
        ("PreAction:", or_none(pre_action.as_ref().map(hook_action_text))),
        ("PostAction:", or_none(post_action.as_ref().map(hook_action_text))),
    ]
}

/// When it thaws by itself.
fn expiry(hook: &ExecutionHook, now: Timestamp) -> String {
    let status = hook.status.as_ref();
    let after = status.and_then(|status| status.recorded.as_ref()?.expiration_seconds).or(hook.spec.expiration_seconds);
    let Some(after) = after.and_then(|seconds| u64::try_from(seconds).ok()) else { return "never".to_owned() };
    let after = format!("{} after the first PreAction", shown(Duration::from_secs(after)));
    match (state(hook), expires(hook)) {
        (State::Freezing | State::Frozen, Some(moment)) => {
            let left: Duration = moment.duration_since(now).try_into().unwrap_or_default();
            format!("{after}: in {}", shown(Duration::from_secs(left.as_secs())))
        }
        _ => after,
    }
}

/// A table, and below a container that failed why.
fn containers(all: &[ContainerExecutionHookStatus]) -> Vec<(String, String)> {
    let header = ["POD", "CONTAINER", "PREACTION", "TIME", "TRIES", "POSTACTION", "TIME", "TRIES"];
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|container| {
            let place = [container.pod_name.clone(), container.container_name.clone()];
            let actions = [&container.pre_action_status, &container.post_action_status];
            place.into_iter().chain(actions.into_iter().flat_map(|action| cells(action.as_ref()))).collect()
        })
        .collect();
    let header = header.map(str::to_owned).to_vec();
    let columns = Columns::fitting([header.as_slice()].into_iter().chain(rows.iter().map(Vec::as_slice)));
    let line = |row: &[String]| (format!("  {}", columns.line(row, |_, cell| cell.to_owned())), String::new());
    let mut told = vec![line(&header)];
    for (row, container) in rows.iter().zip(all) {
        told.push(line(row));
        let actions = [("PreAction", &container.pre_action_status), ("PostAction", &container.post_action_status)];
        for (name, action) in actions {
            if let Some(error) = action.as_ref().and_then(|action| action.error.as_ref()) {
                told.push((format!("    {name}: "), one_line(&error.message)));
            }
        }
    }
    told
}

/// How one action went, how long it took, how often it was tried.
fn cells(action: Option<&ExecutionHookActionStatus>) -> [String; 3] {
    let nothing = || NOTHING.to_owned();
    let Some(action) = action else { return [nothing(), nothing(), nothing()] };
    let result = match action.action_succeed {
        Some(true) => "ok",
        Some(false) => "FAILED",
        None => "running",
    };
    let took = action.action_timestamp.as_ref().zip(action.complete_timestamp.as_ref());
    let took = took.and_then(|(start, end)| end.0.duration_since(start.0).try_into().ok()).map(shown);
    let tries = action.attempts.map(|attempts| attempts.to_string());
    [result.to_owned(), took.unwrap_or_else(nothing), tries.unwrap_or_else(nothing)]
}

#[cfg(test)]
mod tests {
    use super::{super::state::tests::hook, *};

    #[test]
    fn a_hook_is_described() {
        let mut failed = hook(&[("Frozen", "False", "PreActionFailed"), ("Thawed", "False", "ThawFailed")]);
        let status = failed.status.as_mut().unwrap();
        let action = serde_json::from_value(serde_json::json!({"actionSucceed": false, "attempts": 3,
            "error": {"time": "2026-01-01T00:00:02.000000Z", "message": "exit\tcode 3"}}));
        status.container_execution_hook_statuses[0].post_action_status = Some(action.unwrap());
        let lines = described(&failed, "2026-01-01T00:00:13Z".parse().unwrap());
        let lines: Vec<_> = lines.into_iter().map(|(lead, text)| lead + &text).collect();
        let text = lines.join("\n");
        let wanted = "
Name:         nightly-0
Namespace:    sea
Template:     mysql
Snapshot:     nightly
State:        THAW FAILED (PreActionFailed)
Frozen for:   12s
Expires:      30s after the first PreAction
PreAction:    quiesce (at most 10s)
PostAction:   unquiesce (at most 10s)
Containers:
  POD       CONTAINER   PREACTION   TIME    TRIES   POSTACTION   TIME   TRIES
  mysql-0   mysql       ok          250ms   1       FAILED       -      3
    PostAction: exit    code 3
Conditions:
  TYPE     STATUS   REASON            MESSAGE
  Frozen   False    PreActionFailed   it says why
  Thawed   False    ThawFailed        it says why";
        assert_eq!(text, wanted.trim_start(), "\n{text}");
    }

    #[test]
    fn a_frozen_hook_says_when_it_thaws() {
        let frozen = hook(&[("Frozen", "True", "Frozen")]);
        let told = expiry(&frozen, "2026-01-01T00:00:13.4Z".parse().unwrap());
        assert_eq!(told, "30s after the first PreAction: in 17s");
    }
}
