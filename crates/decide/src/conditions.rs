//! Conditions: a list with one of each type.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What a condition says.
pub(crate) struct Saying<'a> {
    pub(crate) kind: &'static str,
    pub(crate) status: &'static str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Sets a condition; the time of its transition moves only with its status.
pub(crate) fn set(conditions: &mut Vec<Condition>, saying: Saying<'_>, generation: Option<i64>, now: Timestamp) {
    let Saying { kind, status, reason, message } = saying;
    let earlier = conditions.iter().position(|condition| condition.type_ == kind);
    let since = match earlier.map(|place| &conditions[place]) {
        Some(earlier) if earlier.status == status => earlier.last_transition_time.clone(),
        _ => Time(now),
    };
    let condition = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: since,
    };
    match earlier {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
}

pub(crate) fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
}

pub(crate) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// The conditions that say something else than before: another status, or for another reason.
pub(crate) fn changed<'a>(before: &'a [Condition], after: &'a [Condition]) -> impl Iterator<Item = &'a Condition> {
    let as_before = |condition: &Condition| {
        find(before, &condition.type_)
            .is_some_and(|before| before.status == condition.status && before.reason == condition.reason)
    };
    after.iter().filter(move |condition| !as_before(condition))
}

pub(crate) fn differ(before: &[Condition], after: &[Condition]) -> bool {
    changed(before, after).next().is_some()
}
