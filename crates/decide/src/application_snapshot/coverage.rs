//! Which of the pods that mount a claim a hook covers: those that it is pinned to, and with `ExecuteOnce` also those that
//! it selects, because its template's author states that the action in one pod is enough for all of them.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{ApplicationSnapshotStatus, OtherPods, SnapshotFailure},
    execution_hook::ExecutionHookSpec,
    hook_action::HookPolicy,
    words::reason,
};
use kube::core::SelectorExt;

use super::{AtTheCut, Claim, Observed, User, failure, sharing};
use crate::execution_hook::{self, Selection, selection};

/// The pods that use a claim at the cut, or may have used it since the freeze began: one that ended counts if it ran when the
/// freeze began, or was created later than the snapshot. Both creation times are the API server's, in whole seconds, so a
/// pod of the same second counts.
pub(super) fn users<'a>(
    observed: &'a Observed<'_>,
    status: &'a ApplicationSnapshotStatus,
    claim: &'a Claim,
) -> impl Iterator<Item = &'a User> {
    let created = |object: &ApplicationSnapshot| object.metadata.creation_timestamp.as_ref().map(|created| created.0);
    let freezes = sharing::first(observed, status).unwrap_or(observed.object);
    let since = created(freezes);
    let ran = |pod: &User| used_before(status, &claim.name).contains(&pod.uid);
    let is_new = move |pod: &User| pod.created.is_none_or(|created| since.is_none_or(|since| since <= created));
    claim.pods.iter().chain(claim.ended.iter().filter(move |pod| ran(pod) || is_new(pod)))
}

/// The UIDs of the pods that ran when the freeze began and mounted the claim.
fn used_before<'a>(status: &'a ApplicationSnapshotStatus, claim: &str) -> &'a [String] {
    let record = status.snapshots.iter().find(|record| record.persistent_volume_claim_name == claim);
    record.map(|record| &record.pod_uids[..]).unwrap_or_default()
}

/// The pods that mount a claim and that only the author vouches for; a pod that nothing vouches for is an error. Of a pod
/// that is gone only the UID is known.
pub(super) fn vouched(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    at_the_cut: &AtTheCut,
) -> Result<Vec<String>, SnapshotFailure> {
    let mut vouched = Vec::new();
    for claim in &at_the_cut.claims {
        let users: Vec<_> = users(observed, status, claim).collect();
        let uncovered = users.iter().filter(|pod| !is_covered(observed, status, pod));
        let uncovered = uncovered.map(|pod| (pod.name.clone(), format!("pod `{}` mounts", pod.name)));
        let is_gone = |uid: &&String| !users.iter().any(|pod| pod.uid == **uid) && !is_pinned(observed, status, uid);
        let gone = used_before(status, &claim.name).iter().filter(is_gone);
        let gone = gone.map(|uid| (uid.clone(), format!("a deleted pod with UID `{uid}` mounted")));
        for (pod, message) in uncovered.chain(gone) {
            match observed.object.spec.other_pods {
                OtherPods::Vouched if vouched.contains(&pod) => {}
                OtherPods::Vouched => vouched.push(pod),
                OtherPods::MustBeCovered => {
                    let message = format!(
                        "{message} claim `{}`, and no hook covers this pod: run a hook in it, or write `otherPods: \
                         Vouched` if a hook in another pod freezes its data",
                        claim.name
                    );
                    return Err(failure(reason::POD_NOT_FROZEN, message));
                }
            }
        }
    }
    Ok(vouched)
}

fn is_pinned(observed: &Observed<'_>, status: &ApplicationSnapshotStatus, uid: &str) -> bool {
    let hooks = status.hooks.iter().filter_map(|record| observed.hook(&record.name));
    let mut pinned = hooks.flat_map(|hook| hook.status.iter().flat_map(execution_hook::pinned_pods));
    pinned.any(|target| target.pod_uid == uid)
}

fn is_covered(observed: &Observed<'_>, status: &ApplicationSnapshotStatus, pod: &User) -> bool {
    let hooks = status.hooks.iter().filter_map(|record| observed.hook(&record.name));
    let mut selecting = hooks.filter(|hook| {
        let policy = hook.status.as_ref().and_then(|status| status.recorded.as_ref()).map(|recorded| recorded.policy);
        policy.is_some_and(|policy| covers(&hook.spec, policy, pod))
    });
    is_pinned(observed, status, &pod.uid) || selecting.next().is_some()
}

/// Whether a hook covers a pod that it does not run in.
pub fn covers(hook: &ExecutionHookSpec, policy: HookPolicy, pod: &User) -> bool {
    match policy {
        HookPolicy::ExecuteAll => false,
        HookPolicy::ExecuteOnce => match selection(hook) {
            Ok(Selection::Names(list)) => list.iter().any(|named| named.pod_name == pod.name),
            Ok(Selection::Labels(selector)) => selector.matches(&pod.labels),
            Err(_) => false,
        },
    }
}
