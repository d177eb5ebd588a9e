//! A snapshot that nobody has begun: what it is about is pinned, or it is refused before anything is frozen.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{
        ApplicationSnapshotStatus, ExecutionHookInfo, HookRecord, OnHookFailure, Phase, SnapshotFailure, SnapshotRecord,
    },
    execution_hook::PodContainerNames,
    words::{condition, reason},
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{
    Claim, Decision, Effect, Observed, Surroundings, User, cut, end, failure, has_finalizer, hook_name, is_deleted,
    leaving, sharing, snapshot_name,
};
use crate::{conditions, conditions::Saying, moment::moment};

/// What a snapshot will do: the controller pins it, `boathook plan` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order of their PreActions; none if nothing uses the claims.
    pub hooks: Vec<PlannedHook>,
    /// Nothing uses the claims.
    pub not_in_use: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedHook {
    pub execution_hook_template_name: String,
    /// Where it runs, if the snapshot does not say: the pods and containers that mount the claims.
    pub found: Option<Vec<PodContainerNames>>,
}

/// What these hooks do about these claims.
pub fn plan(infos: &[ExecutionHookInfo], claims: &[Claim]) -> Result<Plan, SnapshotFailure> {
    let in_use = |claim: &Claim| claim.attached || claim.pods.iter().any(|pod| pod.running);
    if !claims.iter().any(in_use) {
        return Ok(Plan { hooks: vec![], not_in_use: true });
    }
    let found = mounting(claims);
    let unfound = claims.iter().find(|claim| in_use(claim) && !claim.pods.iter().any(can_be_frozen));
    let hook = |info: &ExecutionHookInfo| {
        let found = match (info.names_a_target(), unfound) {
            (true, _) => None,
            (false, Some(claim)) => {
                let message = format!(
                    "claim `{}` is attached to a node, but no running container mounts it: name the pods to freeze in \
                     executionHookInfos, or retry",
                    claim.name
                );
                return Err(failure(reason::NO_TARGET, message));
            }
            (false, None) => Some(found.clone()),
        };
        Ok(PlannedHook { execution_hook_template_name: info.execution_hook_template_name.clone(), found })
    };
    Ok(Plan { hooks: infos.iter().map(hook).collect::<Result<_, _>>()?, not_in_use: false })
}

/// Whether there are containers in it that use the claim, and run.
fn can_be_frozen(user: &User) -> bool {
    user.running && !user.containers.is_empty()
}

/// The running pods that mount one of the claims, and their containers that do.
fn mounting(claims: &[Claim]) -> Vec<PodContainerNames> {
    let mut found: Vec<PodContainerNames> = Vec::new();
    for user in claims.iter().flat_map(|claim| &claim.pods).filter(|user| can_be_frozen(user)) {
        let place = found.iter().position(|pod| pod.pod_name == user.name).unwrap_or_else(|| {
            found.push(PodContainerNames { pod_name: user.name.clone(), ..PodContainerNames::default() });
            found.len() - 1
        });
        let names = &mut found[place].container_names;
        for container in &user.containers {
            if !names.contains(container) {
                names.push(container.clone());
            }
        }
    }
    found
}

pub(super) fn decide(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    let object = observed.object;
    if is_deleted(object) {
        let effects = if has_finalizer(object) { vec![Effect::RemoveFinalizer] } else { vec![] };
        return Decision { effects, ..Decision::default() };
    }
    let Some(surroundings) = &observed.surroundings else { return Decision::default() };
    let too_late = leaving::nobody_waits_from(object);
    if too_late.is_some_and(|too_late| too_late <= now) {
        let message = "the request for the VolumeSnapshot ended before Boathook could freeze the application: create \
                       the VolumeSnapshot again";
        return end::refuse(observed, status, failure(reason::FREEZE_TIMED_OUT, message), now);
    }
    let first = sharing::joinable(observed, &surroundings.claims);
    if let (Some(before), None) = (&surroundings.before, first) {
        return Decision { again: too_late, ..wait(object, status, before, now) };
    }
    status.start_time = Some(moment(now));
    if let Some(failure) = refusal(observed, surroundings) {
        return end::refuse(observed, status, failure, now);
    }
    if let Some(first) = first {
        return follow(observed, status, first, now);
    }
    let plan = plan(&object.spec.execution_hook_infos, &surroundings.claims);
    let crash = object.spec.on_hook_failure == OnHookFailure::CrashConsistent;
    let plan = match plan {
        Ok(plan) => plan,
        Err(failure) if crash => {
            status.failure = Some(failure);
            Plan { hooks: vec![], not_in_use: false }
        }
        Err(failure) => return end::refuse(observed, status, failure, now),
    };
    let claims = &surroundings.claims;
    let record = |claim: &Claim| SnapshotRecord {
        persistent_volume_claim_name: claim.name.clone(),
        volume_snapshot_name: snapshot_name(object, &claim.name, claims.len()),
        // One that is about to run is frozen by nobody: at the cut it counts as one that came later.
        pod_uids: claim.pods.iter().filter(|pod| pod.running).map(|pod| pod.uid.clone()).collect(),
        ..SnapshotRecord::default()
    };
    status.snapshots = claims.iter().map(record).collect();
    let hook = |(place, hook): (usize, PlannedHook)| HookRecord {
        name: hook_name(object, place),
        execution_hook_template_name: hook.execution_hook_template_name,
        pod_container_names_list: hook.found,
        ..HookRecord::default()
    };
    status.hooks = plan.hooks.into_iter().enumerate().map(hook).collect();
    status.execution_hook_names = status.hooks.iter().map(|hook| hook.name.clone()).collect();

    let mut decision = Decision::default();
    if !has_finalizer(object) {
        decision.effects.push(Effect::AddFinalizer);
    }
    if status.hooks.is_empty() {
        let (why, message) = match plan.not_in_use {
            true => (reason::NOT_IN_USE, "no pod uses the claims: Boathook runs no hook"),
            false => (reason::NO_HOOKS, "the snapshot has no hook: Boathook does not freeze the application"),
        };
        let truth = if plan.not_in_use { "True" } else { "False" };
        cut::begin(observed, status, (truth, why, message), &mut decision, now);
        return decision;
    }
    status.phase = Phase::Freezing;
    say_frozen(object, &mut status, reason::FREEZING, "", now);
    // No hook yet: only what is accepted after this write is recorded on this object, and what is there is looked for next.
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision
}

fn refusal(observed: &Observed<'_>, surroundings: &Surroundings) -> Option<SnapshotFailure> {
    let object = observed.object;
    let source = &object.spec.source;
    if let Err(wrong) = object.spec.validate() {
        return Some(failure(reason::INVALID, wrong));
    }
    if !object.spec.execution_hook_infos.is_empty() && !surroundings.author_checked {
        let message = "the ApplicationSnapshot was created before Boathook's webhooks answered, so Boathook did not \
                       check whether its author may `create executionhooks`: delete the ApplicationSnapshot and create \
                       it again";
        return Some(failure(reason::REFUSED, message));
    }
    if surroundings.claims.is_empty() {
        let message = match &source.persistent_volume_claim_name {
            Some(name) => format!(
                "claim `{name}` not found in this namespace: create it, or fix source.persistentVolumeClaimName"
            ),
            None => "source.selector matches no claim in this namespace: fix the selector or the labels of the claims"
                .to_owned(),
        };
        return Some(failure(reason::CLAIM_NOT_FOUND, message));
    }
    if let Some(missing) = surroundings.missing_templates.first()
        && object.spec.on_hook_failure == OnHookFailure::Fail
    {
        let message = format!(
            "ExecutionHookTemplate `{missing}` not found in this namespace: create it, or fix executionHookTemplateName"
        );
        return Some(failure(reason::TEMPLATE_NOT_FOUND, message));
    }
    if let Some(missing) = &surroundings.missing_class {
        let message = format!("{missing}: create it, or name an existing class. Boathook ran no hook");
        return Some(failure(reason::SNAPSHOT_CLASS_NOT_FOUND, message));
    }
    // Whoever made it: it was cut before anything was frozen.
    // A pending object has made none, so one that names it as its maker is forged.
    let in_the_way =
        |snapshot: &&super::SeenSnapshot| snapshot.cut || !snapshot.ours || !super::is_made_by_others(object);
    let taken = observed.snapshots.iter().find(in_the_way)?;
    let message = format!(
        "VolumeSnapshot `{}` already exists, so Boathook ran no hook: delete it, or give the ApplicationSnapshot \
         another name",
        taken.name
    );
    Some(failure(reason::SNAPSHOT_EXISTS, message))
}

/// It need not wait: what it needs is being frozen.
fn follow(
    observed: &Observed<'_>,
    status: ApplicationSnapshotStatus,
    first: &ApplicationSnapshot,
    now: Timestamp,
) -> Decision {
    let object = observed.object;
    let (said, mut status) = sharing::join(observed, status, first);
    let message = format!("the snapshot shares the freeze of ApplicationSnapshot `{}`", first.name_any());
    say_frozen(object, &mut status, reason::FREEZING, &message, now);
    let hold = (!has_finalizer(object)).then_some(Effect::AddFinalizer);
    let effects = hold.into_iter().chain(said).chain([Effect::WriteStatus(Box::new(status))]).collect();
    Decision { effects, ..Decision::default() }
}

fn wait(object: &ApplicationSnapshot, mut status: ApplicationSnapshotStatus, before: &str, now: Timestamp) -> Decision {
    let message = format!("the snapshot waits for ApplicationSnapshot `{before}`, which uses the same claim");
    let earlier = status.conditions.clone();
    say_frozen(object, &mut status, reason::WAITING, &message, now);
    let news = conditions::differ(&earlier, &status.conditions);
    let effects = if news { vec![Effect::WriteStatus(Box::new(status))] } else { vec![] };
    Decision { effects, ..Decision::default() }
}

fn say_frozen(
    object: &ApplicationSnapshot,
    status: &mut ApplicationSnapshotStatus,
    why: &'static str,
    message: &str,
    now: Timestamp,
) {
    let saying = Saying { kind: condition::FROZEN, status: "False", reason: why, message };
    conditions::set(&mut status.conditions, saying, object.metadata.generation, now);
}
