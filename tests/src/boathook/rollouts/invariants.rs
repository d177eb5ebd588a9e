//! What holds for every rollout, read from everything that was seen of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use boathook_api::{
    deployment_lifecycle::{Rollout, Stage},
    words::ROLLOUT_LABEL,
};
use k8s_openapi::{api::apps::v1::ReplicaSet, api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::ResourceExt;

use super::{
    history::{History, exit_code, hook_stage, is_hook, is_live, is_managed},
    replica_set_changes::SetChange,
    status_writes::StatusWrites,
    story::{Moment, Now, Thing},
};
use crate::boathook::lifecycles::rollout;

/// What one rollout was at last, by when it began.
pub(super) type Rollouts = BTreeMap<MicroTime, Rollout>;

/// Checks all of them.
pub(super) fn check(history: &History) -> Result<()> {
    let rollouts = rollouts(history);
    let mut status_writes = StatusWrites::default();
    for (place, (before, moment)) in history.steps().enumerate() {
        let checked = match &moment.thing {
            _ if moment.gone => Ok(()),
            Thing::Pod(pod) if before.pods.contains_key(&pod.name_any()) => Ok(()),
            Thing::Pod(pod) if is_hook(pod) => hook_begins(&before, pod),
            Thing::Pod(pod) => pod_begins(&before, pod),
            Thing::ReplicaSet(set) if is_managed(&**set) => {
                SetChange { before: &before, set, place, rollouts: &rollouts, history }.check()
            }
            Thing::Deployment(deployment) => status_writes.take(&before, deployment),
            Thing::ReplicaSet(_) | Thing::Lifecycle(_) => Ok(()),
        };
        checked.with_context(|| format!("at version {}\n{}", moment.version, outline(history, moment.version)))?;
    }
    Ok(())
}

/// One hook at a time, of the rollout that is recorded; mid while nothing runs; post when everything that is old has been let go.
fn hook_begins(before: &Now, pod: &Pod) -> Result<()> {
    let name = pod.name_any();
    let running = before.pods.values().find(|other| is_hook(other) && is_running(other));
    ensure!(running.is_none(), "hook pod `{name}` was made beside `{}`", running.unwrap_or(pod).name_any());
    let recorded = before.lifecycle.as_ref().and_then(rollout).map(|rollout| id(&rollout.start_time));
    let of = pod.labels().get(ROLLOUT_LABEL);
    ensure!(of == recorded.as_ref(), "hook pod `{name}` is of rollout {of:?}, while {recorded:?} is under way");
    let replicas = before.pods.values().filter(|other| !is_hook(other) && is_live(other));
    let replicas: Vec<_> = replicas.map(ResourceExt::name_any).collect();
    if hook_stage(pod) == Some(Stage::Mid.as_str()) {
        ensure!(replicas.is_empty(), "mid's pod `{name}` was made while {replicas:?} lived");
    }
    if hook_stage(pod) == Some(Stage::Post.as_str()) {
        let wanted = before.sets.values().filter(|set| replicas_of(set) > 0);
        let wanted: Vec<_> = wanted.map(ResourceExt::name_any).collect();
        ensure!(wanted.len() <= 1, "post's pod `{name}` was made while {wanted:?} had pods");
    }
    Ok(())
}

fn pod_begins(before: &Now, pod: &Pod) -> Result<()> {
    let is_mid = |other: &&Pod| hook_stage(other) == Some(Stage::Mid.as_str()) && is_running(other);
    let mid = before.pods.values().find(is_mid);
    ensure!(mid.is_none(), "pod `{}` was made while mid ran in `{}`", pod.name_any(), mid.unwrap_or(pod).name_any());
    Ok(())
}

fn rollouts(history: &History) -> Rollouts {
    let mut rollouts = Rollouts::new();
    for moment in history.moments() {
        let Thing::Lifecycle(lifecycle) = &moment.thing else { continue };
        // Not those that are past: their hooks are not kept, and it would look as if they had had none.
        if let Some(rollout) = rollout(lifecycle) {
            rollouts.insert(rollout.start_time.clone(), rollout.clone());
        }
    }
    rollouts
}

/// Whether the hook of this pod runs; what was injected beside it does not count when it has succeeded.
fn is_running(pod: &Pod) -> bool {
    is_live(pod) && exit_code(pod) != Some(0)
}

/// As the pods of its hooks name a rollout.
pub(super) fn id(start_time: &MicroTime) -> String {
    start_time.0.as_microsecond().to_string()
}

pub(super) fn replicas_of(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// What was seen up to there, a line each.
fn outline(history: &History, until: u64) -> String {
    let seen = history.moments().iter().take_while(|moment| moment.version <= until);
    let lines: Vec<_> = seen.map(line).collect();
    lines.join("\n")
}

fn line(moment: &Moment) -> String {
    let what = match &moment.thing {
        Thing::Deployment(object) => format!(
            "Deployment: generation {:?}, {:?}",
            object.metadata.generation,
            object.status.as_ref().map(|status| (status.observed_generation, status.replicas, status.updated_replicas))
        ),
        Thing::ReplicaSet(object) => {
            let gate = object.labels().get(boathook_api::words::GATE);
            format!("ReplicaSet {}: replicas {}, gate {gate:?}", object.name_any(), replicas_of(object))
        }
        Thing::Pod(object) => {
            let phase = object.status.as_ref().and_then(|status| status.phase.clone());
            format!("Pod {}: {phase:?}, exit code {:?}", object.name_any(), exit_code(object))
        }
        Thing::Lifecycle(object) => {
            let phase = rollout(object).map(|rollout| (rollout.revision.clone(), rollout.phase));
            format!("DeploymentLifecycle: {phase:?}")
        }
    };
    format!("{} {what}{}", moment.version, if moment.gone { ", gone" } else { "" })
}
