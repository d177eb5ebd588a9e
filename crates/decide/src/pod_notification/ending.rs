//! A pod that was told to end: nothing starts in it any more, and what is owed to it is undone before its grace period is
//! over. A process on a frozen filesystem cannot be killed, and a frozen database cannot shut down.
//!
//! The controller that leads sees it and asks for the undo in the object, where every executor sees the request.

use boathook_api::{outcome::Failure, pod_notification::ErrorType, words::reason};

use super::{Decision, Effect, Me, Object, Observed, Pod, Role, SeenPod, undo};
use crate::{Gravity, Leadership};

/// Asks for the undo of an object whose pod is ending, unless it was asked for.
pub(super) fn ask_for_undo(observed: &Observed<'_>, object: &Object<'_>) -> Option<Decision> {
    let asks = matters(object, observed.me) && is_ending(&observed.pod);
    asks.then(|| {
        let note = format!("pod `{}` is being deleted: the undo runs now", object.object.spec.pod_name);
        Decision {
            effects: vec![Effect::RequestUndo],
            reports: vec![undo::report(Gravity::Normal, reason::POD_ENDING, note)],
            again: None,
        }
    })
}

/// Whether the pod was told to end and something may still run in it.
pub(super) fn is_ending(pod: &SeenPod) -> bool {
    matches!(pod, SeenPod::There(pod) if pod.ending && !pod.over)
}

/// Whether this process acts on the end of the pod while it runs the handlers: it asks for the undo or, if that was asked for
/// before, does not wait for handlers that it cannot end.
pub(super) fn matters_to_handlers(object: &Object<'_>, me: Me<'_>) -> bool {
    matters(object, me) || object.owes_undo() && object.is_revoked() && matches!(me.role, Role::Controller { .. })
}

/// Whether this process would ask for the undo if the pod were ending.
fn matters(object: &Object<'_>, me: Me<'_>) -> bool {
    let leads = matches!(me.role, Role::Controller { leadership: Leadership::Leader, .. });
    leads && object.owes_undo() && !object.is_revoked()
}

/// Why no handler starts in this pod, if it is ending.
pub(super) fn refusal(pod: &Pod, name: &str) -> Option<Failure> {
    let message = format!("pod `{name}` is being deleted: the handler was not run");
    pod.ending.then(|| Failure::new(ErrorType::ContainerNotRunning, message))
}
