//! Which writes give up an undo that is owed: the annotation that says so, and the removal of the finalizer that keeps it.
//!
//! A finalizer that keeps nothing may be removed by every user, also while no webhook answers. `needs_finalizer` of each
//! kind in `boathook_decide` decides what a finalizer keeps, and a test compares the two.

use boathook_api::words::{ABANDON_UNDO, ABANDONED_BY, THAW_FINALIZER, UNDO_FINALIZER, condition, reason};

use super::gate::{annotation, quoted};

/// The kinds that Boathook's finalizers hold for an undo.
pub(super) const KINDS: [&str; 3] = ["applicationsnapshots", "executionhooks", "podnotifications"];

/// Whether another user than Boathook gives up an undo.
pub(super) fn gives_up(own: &str) -> String {
    let (is, was) = (is_given_up("object"), is_given_up("oldObject"));
    format!("{} && {is} && (request.operation == 'CREATE' || !{was})", not_by_us(own))
}

/// Whether a write changes that an undo is given up, or by whom.
pub(super) fn changes_an_abandonment() -> String {
    let changes = |key: &str| {
        let (new, old) = (annotation("object", key), annotation("oldObject", key));
        format!("(request.operation == 'CREATE' ? {new} != '' : {new} != {old})")
    };
    format!("{} || {}", changes(ABANDON_UNDO), changes(ABANDONED_BY))
}

/// Of a PodNotification. The condition also selects one whose undo has run once more after its handler may have outlived
/// it: only the webhook compares times.
pub(super) fn drops_an_owed_undo(own: &str) -> String {
    let closed: Vec<_> = reason::UNDO_CLOSED.iter().map(|reason| quoted(reason)).collect();
    let undone = format!("c.type == '{}' && c.reason in [{}]", condition::UNDONE, closed.join(", "));
    let status = "oldObject.?status";
    let waits = format!("{status}.?executor.hasValue() && {status}.?state.orValue('New') == 'New'");
    let owes = format!("{status}.?claim.hasValue() && !{status}.?conditions.orValue([]).exists(c, {undone})");
    let once_more = format!("{status}.?containers.orValue([]).exists(c, c.?processMayRemain.orValue(false))");
    let needed = format!("oldObject.spec.?undo.hasValue() && (({waits}) || ({owes}) || {once_more})");
    format!("{} && {needed}", drops(own, UNDO_FINALIZER))
}

/// Of an ExecutionHook.
pub(super) fn drops_an_owed_thaw(own: &str) -> String {
    let status = "oldObject.?status";
    let given_up = format!(
        "c.type == '{}' && c.reason in [{}, {}]",
        condition::THAWED,
        quoted(reason::ABANDONED),
        quoted(reason::THAW_UNCONFIRMED)
    );
    let recorded = format!("{status}.?recorded");
    let owes = format!("({recorded}.?postAction.hasValue() || {recorded}.?preAction.?exec.?hold.orValue(false))");
    let open = format!(
        "!{status}.?postActionSucceed.orValue(false) && !{status}.?conditions.orValue([]).exists(c, {given_up})"
    );
    format!("{} && {status}.?startTime.hasValue() && {owes} && {open}", drops(own, THAW_FINALIZER))
}

/// Of an ApplicationSnapshot.
pub(super) fn drops_hooks_under_way(own: &str) -> String {
    let under_way = "oldObject.?status.?phase.orValue('') in ['Freezing', 'Cutting', 'Thawing']";
    let has_hooks = "oldObject.?status.?hooks.orValue([]).size() > 0";
    format!("{} && {under_way} && {has_hooks}", drops(own, THAW_FINALIZER))
}

/// Whether another user than Boathook removes this finalizer of an object whose undo was not given up before.
fn drops(own: &str, finalizer: &str) -> String {
    let has = |object: &str| format!("{object}.metadata.?finalizers.orValue([]).exists(f, f == '{finalizer}')");
    let (was_given_up, had, has) = (is_given_up("oldObject"), has("oldObject"), has("object"));
    format!("{} && {had} && !{has} && !{was_given_up}", not_by_us(own))
}

fn is_given_up(object: &str) -> String {
    format!("({} == 'true')", annotation(object, ABANDON_UNDO))
}

pub(super) fn not_by_us(own: &str) -> String {
    format!("request.userInfo.username != {}", quoted(own))
}
