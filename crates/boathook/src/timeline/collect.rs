//! The timeline of an ApplicationSnapshot or ExecutionHook, from what its status has kept.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::HookRecord,
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookActionStatus},
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{Bar, Cut, Span, Timeline};

/// Hooks that still exist know more than the snapshot's copy of them.
pub(crate) fn of_snapshot(snapshot: &ApplicationSnapshot, hooks: &[ExecutionHook], now: Timestamp) -> Timeline {
    let status = snapshot.status.clone().unwrap_or_default();
    let bars = status.hooks.iter().flat_map(|record| match hooks.iter().find(|hook| hook.name_any() == record.name) {
        Some(hook) => bars_of_hook(hook, &record.execution_hook_template_name),
        None => bars_of_record(record),
    });
    let cuts = status.snapshots.iter().filter_map(|cut| {
        Some(Cut {
            claim: cut.persistent_volume_claim_name.clone(),
            volume_snapshot: cut.volume_snapshot_name.clone(),
            seen: cut.cut_seen_time.as_ref()?.0,
        })
    });
    Timeline { bars: bars.collect(), cuts: cuts.collect(), now }
}

pub(crate) fn of_hook(hook: &ExecutionHook, now: Timestamp) -> Timeline {
    let template = hook.spec.execution_hook_template_name.clone();
    let bars = bars_of_hook(hook, &template.unwrap_or_else(|| hook.name_any()));
    Timeline { bars, cuts: vec![], now }
}

fn bars_of_hook(hook: &ExecutionHook, name: &str) -> Vec<Bar> {
    let Some(status) = &hook.status else { return vec![] };
    let containers = &status.container_execution_hook_statuses;
    containers.iter().filter_map(|container| bar(name, container, status.post_action_succeed)).collect()
}

fn bars_of_record(record: &HookRecord) -> Vec<Bar> {
    let name = &record.execution_hook_template_name;
    record.containers.iter().filter_map(|container| bar(name, container, record.post_action_succeed)).collect()
}

/// None of a container in which nothing was started.
fn bar(hook: &str, container: &ContainerExecutionHookStatus, post_action_succeed: Option<bool>) -> Option<Bar> {
    let freeze = span(container.pre_action_status.as_ref()?)?;
    let thaw = container.post_action_status.as_ref().and_then(span);
    let thawed = thaw.as_ref().is_some_and(|thaw| thaw.succeeded == Some(true));
    Some(Bar {
        hook: hook.to_owned(),
        pod: container.pod_name.clone(),
        container: container.container_name.clone(),
        freeze,
        thaw,
        open: !thawed && post_action_succeed != Some(true),
    })
}

fn span(action: &ExecutionHookActionStatus) -> Option<Span> {
    let ExecutionHookActionStatus { action_timestamp, complete_timestamp, action_succeed, attempts: _, error } = action;
    Some(Span {
        start: action_timestamp.as_ref()?.0,
        end: complete_timestamp.as_ref().map(|time| time.0),
        succeeded: *action_succeed,
        error: error.as_ref().map(|error| error.message.clone()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-01T00:00:09Z";

    fn container(pod: &str, thawed: Option<bool>) -> Value {
        let post = thawed.map(|succeeded| {
            json!({"actionTimestamp": "2026-01-01T00:00:02.000000Z", "completeTimestamp": "2026-01-01T00:00:03.000000Z",
                "actionSucceed": succeeded})
        });
        json!({"podName": pod, "podUID": "u", "containerName": "main", "postActionStatus": post,
            "preActionStatus": {"actionTimestamp": "2026-01-01T00:00:00.000000Z",
                "completeTimestamp": "2026-01-01T00:00:01.000000Z", "actionSucceed": true}})
    }

    fn snapshot() -> ApplicationSnapshot {
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "ApplicationSnapshot", "metadata": {"name": "nightly"},
            "spec": {"source": {"persistentVolumeClaimName": "data"}},
            "status": {"hooks": [
                {"name": "nightly-0", "executionHookTemplateName": "mysql", "containers": [container("a", Some(true))],
                    "postActionSucceed": true},
                {"name": "nightly-1", "executionHookTemplateName": "files",
                    "containers": [container("b", None), {"podName": "c", "podUID": "u", "containerName": "main"}]},
            ], "snapshots": [
                {"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly",
                    "cutSeenTime": "2026-01-01T00:00:01.500000Z"},
                {"persistentVolumeClaimName": "logs", "volumeSnapshotName": "nightly-logs"},
            ]},
        }))
        .unwrap()
    }

    fn hook(thawed: Option<bool>) -> ExecutionHook {
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook", "metadata": {"name": "nightly-1"},
            "spec": {"executionHookTemplateName": "files"},
            "status": {"containerExecutionHookStatuses": [container("b", thawed)], "postActionSucceed": thawed},
        }))
        .unwrap()
    }

    #[test]
    fn a_snapshot_keeps_what_its_hooks_were() {
        let timeline = of_snapshot(&snapshot(), &[], NOW.parse().unwrap());
        let seen: Vec<_> = timeline.bars.iter().map(|bar| (bar.hook.as_str(), bar.pod.as_str(), bar.open)).collect();
        assert_eq!(seen, [("mysql", "a", false), ("files", "b", true)]);
        assert_eq!((timeline.cuts.len(), timeline.cuts[0].claim.as_str()), (1, "data"));
        assert_eq!(timeline.window(), Some(std::time::Duration::from_secs(9)));
    }

    #[test]
    fn a_hook_that_exists_knows_better() {
        let timeline = of_snapshot(&snapshot(), &[hook(Some(true))], NOW.parse().unwrap());
        assert!(!timeline.is_open());
        assert!(of_hook(&hook(Some(false)), NOW.parse().unwrap()).is_open());
        assert_eq!(of_hook(&hook(None), NOW.parse().unwrap()).bars[0].hook, "files");
    }
}
