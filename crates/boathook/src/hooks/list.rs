//! `boathook hooks list`: what each line says.

use boathook_api::{ExecutionHook, execution_hook::FreezeWindow};
use jiff::Timestamp;

use super::state::{State, snapshot_of, state, why_in_short};
use crate::{
    listing::Listed,
    output::{Colour, duration::shown},
};

impl Listed for ExecutionHook {
    const COLUMNS: &'static [&'static str] = &["TEMPLATE", "SNAPSHOT", "STATE", "WHY", "PODS", "FROZEN FOR"];
    const COLOURED: &'static str = "STATE";

    fn cells(&self, now: Timestamp) -> Vec<Option<String>> {
        vec![
            self.spec.execution_hook_template_name.clone(),
            snapshot_of(self).map(str::to_owned),
            Some(state(self).word().to_owned()),
            why_in_short(self),
            Some(pods(self).to_string()),
            frozen_for(self, now),
        ]
    }

    fn colour(&self) -> Colour {
        state(self).colour()
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
    use crate::{listing::List, output::format::Format, pods::Scope};

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
        assert_eq!(here.header::<ExecutionHook>().len(), here.row(&failed, now).len());
    }
}
