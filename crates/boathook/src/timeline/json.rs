//! A timeline for programs: every time as it was recorded, and counted from the first PreAction.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Bar, Cut, Span, Timeline, between};

pub(crate) fn value(timeline: &Timeline) -> Value {
    let start = timeline.start();
    let offset = |moment: Timestamp| start.map(|start| seconds(between(start, moment)));
    let span = |span: &Span| {
        let Span { start, end, succeeded, error } = span;
        json!({
            "startTime": text(*start), "startSeconds": offset(*start),
            "endTime": end.map(text), "endSeconds": end.and_then(offset),
            "succeeded": succeeded, "error": error,
        })
    };
    let bar = |bar: &Bar| {
        let Bar { hook, pod, container, freeze, thaw, open } = bar;
        json!({
            "hook": hook, "pod": pod, "container": container, "freeze": span(freeze), "thaw": thaw.as_ref().map(span),
            "frozenSeconds": seconds(bar.length(timeline.now)), "stillFrozen": open,
        })
    };
    let cut = |cut: &Cut| {
        let Cut { claim, volume_snapshot, seen } = cut;
        json!({
            "persistentVolumeClaimName": claim, "volumeSnapshotName": volume_snapshot,
            "seenTime": text(*seen), "seenSeconds": offset(*seen),
        })
    };
    let all_frozen = timeline.all_frozen();
    let all_frozen = all_frozen.map(|(from, to)| json!({"fromSeconds": seconds(from), "toSeconds": seconds(to)}));
    json!({
        "startTime": start.map(text), "windowSeconds": timeline.window().map(seconds),
        "stillFrozen": timeline.is_open(), "allFrozen": all_frozen,
        "containers": timeline.bars.iter().map(bar).collect::<Vec<_>>(),
        "cuts": timeline.cuts.iter().map(cut).collect::<Vec<_>>(),
    })
}

/// To the microsecond, as objects have it.
fn text(moment: Timestamp) -> String {
    format!("{moment:.6}")
}

/// To the microsecond.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{at, bar, cut, span},
        *,
    };

    #[test]
    fn programs_get_moments_and_seconds() {
        let bars = vec![bar("mysql", "mysql-0", span(100, 220), Some(span(1_000, 1_230)))];
        let value = value(&Timeline { bars, cuts: vec![cut("data", 512)], now: at(9_000) });
        assert_eq!(value["startTime"], "1970-01-01T00:00:00.100000Z");
        assert_eq!((&value["windowSeconds"], &value["stillFrozen"]), (&json!(1.13), &json!(false)));
        assert_eq!(value["allFrozen"], json!({"fromSeconds": 0.12, "toSeconds": 0.9}));
        let container = &value["containers"][0];
        assert_eq!((&container["freeze"]["endSeconds"], &container["thaw"]["succeeded"]), (&json!(0.12), &json!(true)));
        assert_eq!(value["cuts"][0]["seenSeconds"], 0.412);
    }
}
