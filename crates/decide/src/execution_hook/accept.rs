//! A hook that nobody has looked at yet: where it runs and what is pinned, then its children are made.

use boathook_api::{
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookSpec, ExecutionHookStatus, RecordedHook},
    words::{condition, reason},
};
use jiff::Timestamp;

use super::{
    Decision, Effect, Observed, Surroundings, Target, child, has_finalizer, is_deleted,
    targets::{Refusal, recorded, targets},
};
use crate::{
    About, Gravity, Report,
    conditions::{self, Saying},
    moment::moment,
};

pub(super) fn decide(observed: &Observed<'_>, status: ExecutionHookStatus, now: Timestamp) -> Decision {
    let object = observed.object;
    if is_deleted(object) {
        let effects = if has_finalizer(object) { vec![Effect::RemoveFinalizer] } else { vec![] };
        return Decision { effects, ..Decision::default() };
    }
    let Some(surroundings) = &observed.surroundings else { return Decision::default() };
    match plan(&object.spec, surroundings) {
        Ok((recorded, targets)) => {
            let mut decision = Decision::default();
            if !has_finalizer(object) {
                decision.effects.push(Effect::AddFinalizer);
            }
            let mut status = ExecutionHookStatus {
                start_time: Some(moment(now)),
                accepted_by: Some(observed.identity.to_owned()),
                container_execution_hook_statuses: targets.iter().flat_map(pinned).collect(),
                ..status
            };
            let generation = object.metadata.generation;
            let mut say = |kind, truth, reason, message: &str| {
                let saying = Saying { kind, status: truth, reason, message };
                conditions::set(&mut status.conditions, saying, generation, now);
            };
            say(condition::ACCEPTED, "True", reason::PINNED, "");
            let taken_back = recorded.post_action.is_some() || recorded.pre_action.holds();
            if recorded.expiration_seconds.is_none() && taken_back {
                let message = "expirationSeconds is not set: the application stays frozen until you request the thaw";
                say(condition::NO_EXPIRY, "True", reason::NO_EXPIRY, message);
                decision.reports.push(report(Gravity::Warning, reason::NO_EXPIRY, message));
            }
            say(condition::FROZEN, "False", reason::FREEZING, "");
            let children = targets.iter().map(|target| child::child(object, &recorded, target));
            let children: Vec<_> = children.map(|child| Effect::CreateChild(Box::new(child))).collect();
            status.recorded = Some(recorded);
            decision.effects.push(Effect::WriteStatus(Box::new(status)));
            decision.effects.extend(children);
            decision
        }
        Err(Refusal { reason, message }) => refuse(observed, status, reason, &message, now),
    }
}

/// What a hook runs and where: the controller pins it, `boathook plan` shows it.
pub fn plan(spec: &ExecutionHookSpec, surroundings: &Surroundings) -> Result<(RecordedHook, Vec<Target>), Refusal> {
    if spec.thaw_requested {
        return Err(Refusal::new(reason::THAW_REQUESTED, "the thaw was requested before Boathook ran the PreAction"));
    }
    spec.validate().map_err(|wrong| Refusal::new(reason::INVALID, wrong))?;
    let recorded = recorded(spec, surroundings.template.as_ref())?;
    if !surroundings.author_checked {
        let written = match &spec.execution_hook_template_name {
            Some(name) => format!("ExecutionHookTemplate `{name}`"),
            None => "the ExecutionHook".to_owned(),
        };
        let message = format!(
            "{written} was created before Boathook's webhooks answered, so Boathook did not check whether the author \
             of its actions may run them: delete {written} and create it again"
        );
        return Err(Refusal::new(reason::REFUSED, message));
    }
    let targets = targets(spec, &recorded, &surroundings.pods)?;
    Ok((recorded, targets))
}

/// Nothing is run: so nothing is to be taken back either.
fn refuse(
    observed: &Observed<'_>,
    mut status: ExecutionHookStatus,
    why: &'static str,
    message: &str,
    now: Timestamp,
) -> Decision {
    let object = observed.object;
    let generation = object.metadata.generation;
    status.start_time = Some(moment(now));
    status.accepted_by = Some(observed.identity.to_owned());
    status.pre_action_succeed = Some(false);
    status.post_action_succeed = Some(true);
    for (kind, truth, reason) in [
        (condition::ACCEPTED, "False", why),
        (condition::FROZEN, "False", why),
        (condition::THAWED, "True", reason::NOTHING_TO_UNDO),
    ] {
        let message = if kind == condition::THAWED { "Boathook ran no PreAction" } else { message };
        conditions::set(&mut status.conditions, Saying { kind, status: truth, reason, message }, generation, now);
    }
    let mut effects = vec![Effect::WriteStatus(Box::new(status))];
    if has_finalizer(object) {
        effects.push(Effect::RemoveFinalizer);
    }
    Decision { effects, reports: vec![report(Gravity::Warning, why, message)], again: None }
}

fn pinned(target: &Target) -> impl Iterator<Item = ContainerExecutionHookStatus> {
    target.containers.iter().map(|container| ContainerExecutionHookStatus {
        pod_name: target.pod_name.clone(),
        pod_uid: target.pod_uid.clone(),
        container_name: container.clone(),
        ..ContainerExecutionHookStatus::default()
    })
}

fn report(gravity: Gravity, reason: &'static str, note: &str) -> Report {
    Report { about: About::Object, gravity, reason: reason.to_owned(), action: "Accept", note: note.to_owned() }
}
