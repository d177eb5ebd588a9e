//! A pod that was told to end: nothing starts in it any more, and what is owed to it is undone before its grace period is
//! over. A process on a frozen filesystem cannot be killed, and a frozen database cannot shut down.
//!
//! The controller that leads sees it and asks for the undo in the object, where every executor sees the request.

use boathook_api::{outcome::Failure, pod_notification::ErrorType, words::reason};

use super::{Decision, Effect, Me, Object, Observed, Pod, Role, SeenPod, undo};
use crate::{Gravity, Leadership};

/// Asks for the undo of an object whose pod is ending, unless it was asked for.
pub(super) fn ask_for_undo(observed: &Observed<'_>, object: &Object<'_>) -> Option<Decision> {
    let SeenPod::There(pod) = &observed.pod else { return None };
    let asks = matters(object, observed.me) && pod.ending && !pod.over;
    asks.then(|| {
        let note = format!("pod `{}` was told to end: it is undone now", object.object.spec.pod_name);
        Decision {
            effects: vec![Effect::RequestUndo],
            reports: vec![undo::report(Gravity::Normal, reason::POD_ENDING, note)],
            again: None,
        }
    })
}

/// Whether this process would ask for the undo if the pod were ending.
pub(super) fn matters(object: &Object<'_>, me: Me<'_>) -> bool {
    let leads = matches!(me.role, Role::Controller { leadership: Leadership::Leader, .. });
    leads && object.owes_undo() && !object.is_revoked()
}

/// Why no handler starts in this pod, if it is ending.
pub(super) fn refusal(pod: &Pod, name: &str) -> Option<Failure> {
    let message = format!("pod `{name}` was told to end: nothing was run");
    pod.ending.then(|| Failure::new(ErrorType::ContainerNotRunning, message))
}
