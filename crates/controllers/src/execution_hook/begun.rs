//! The pods in which this process saw the PreAction of a hook begin. The hook's status records that only when every pod has
//! finished, because each write before that would delay the freeze.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use boathook_api::{ExecutionHook, PodNotification};
use boathook_decide::{execution_hook::is_child_of, pod_notification::claimed_at};
use jiff::Timestamp;
use kube::{ResourceExt, runtime::reflector::ObjectRef};

/// When the PodNotification of each pod was claimed, by the UID of the pod.
type Claims = BTreeMap<String, Timestamp>;

/// By hook: its UID, and the claims of those of its PodNotifications that were seen.
#[derive(Default)]
pub struct Begun(Mutex<HashMap<ObjectRef<ExecutionHook>, (String, Claims)>>);

impl Begun {
    /// Notes the claims of a hook's PodNotifications, and returns those that were seen so far.
    pub(super) fn note(&self, hook: &ExecutionHook, children: &[PodNotification]) -> Claims {
        let key = ObjectRef::from_obj(hook);
        if hook.status.as_ref().is_some_and(|status| status.pre_action_succeed.is_some()) {
            // The status records them.
            self.forget(&key);
            return Claims::new();
        }
        let claim = |child: &PodNotification| Some((child.spec.pod_uid.clone()?, claimed_at(child)?));
        let claims: Claims = children.iter().filter(|child| is_child_of(hook, child)).filter_map(claim).collect();
        let uid = hook.uid().unwrap_or_default();
        // A map is whole between two writes, also after a panic.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(key.clone()).or_insert_with(|| (uid.clone(), Claims::new()));
        if known.0 != uid {
            *known = (uid, Claims::new());
        }
        known.1.extend(claims);
        let known = known.1.clone();
        if known.is_empty() {
            all.remove(&key);
        }
        known
    }

    /// The hook is gone.
    pub(super) fn forget(&self, hook: &ObjectRef<ExecutionHook>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(hook);
    }
}
