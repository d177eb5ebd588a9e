//! Which of the pods that mount a claim a hook covers: those that it is pinned to, and with `ExecuteOnce` also those that
//! it selects, because its template's author states that the action in one pod is enough for all of them.

use boathook_api::{
    application_snapshot::{ApplicationSnapshotStatus, OtherPods, Trouble},
    execution_hook::ExecutionHookSpec,
    hook_action::HookPolicy,
    words::reason,
};
use kube::core::SelectorExt;

use super::{AtTheCut, Observed, User, trouble};
use crate::execution_hook::{self, Selection, selection};

/// The pods that mount a claim and that only the author vouches for; a pod that nothing vouches for is an error.
pub(super) fn vouched(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    at_the_cut: &AtTheCut,
) -> Result<Vec<String>, Trouble> {
    let mut vouched = Vec::new();
    for claim in &at_the_cut.claims {
        for pod in claim.pods.iter().filter(|pod| !is_covered(observed, status, pod)) {
            match observed.object.spec.other_pods {
                OtherPods::Vouched if vouched.contains(&pod.name) => {}
                OtherPods::Vouched => vouched.push(pod.name.clone()),
                OtherPods::MustBeCovered => {
                    let message = format!(
                        "pod `{}` mounts claim `{}` and no hook covers it: let a hook run in it, or write `otherPods: \
                         Vouched` if a hook freezes its data from elsewhere",
                        pod.name, claim.name
                    );
                    return Err(trouble(reason::POD_NOT_FROZEN, message));
                }
            }
        }
    }
    Ok(vouched)
}

fn is_covered(observed: &Observed<'_>, status: &ApplicationSnapshotStatus, pod: &User) -> bool {
    let hooks = status.hooks.iter().filter_map(|record| observed.hook(&record.name));
    hooks.into_iter().any(|hook| {
        let pinned = hook.status.iter().flat_map(execution_hook::pinned_pods).any(|target| target.pod_uid == pod.uid);
        let policy = hook.status.as_ref().and_then(|status| status.recorded.as_ref()).map(|recorded| recorded.policy);
        pinned || policy.is_some_and(|policy| covers(&hook.spec, policy, pod))
    })
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
