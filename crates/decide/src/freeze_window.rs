//! How long something was frozen.

use boathook_api::execution_hook::{ContainerExecutionHookStatus, ExecutionHookActionStatus, FreezeWindow};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// From the start of the first PreAction among these containers to the end of the last PostAction, if `over`.
pub(crate) fn of<'a>(
    containers: impl Iterator<Item = &'a ContainerExecutionHookStatus> + Clone,
    over: bool,
) -> Option<FreezeWindow> {
    let begun = |status: &ExecutionHookActionStatus| status.action_timestamp.clone();
    let ended = |status: &ExecutionHookActionStatus| status.complete_timestamp.clone();
    let starts = containers.clone().filter_map(|one| one.pre_action_status.as_ref().and_then(begun));
    let start = starts.min_by_key(|MicroTime(time)| *time)?;
    let ends = containers.filter_map(|one| one.post_action_status.as_ref().and_then(ended));
    let end = ends.max_by_key(|MicroTime(time)| *time).filter(|_| over);
    let duration = end.as_ref().map(|end| {
        let seconds = end.0.duration_since(start.0).as_secs_f64().max(0.0);
        format!("{seconds:.3}s")
    });
    Some(FreezeWindow { start_time: Some(start), end_time: end, duration })
}
