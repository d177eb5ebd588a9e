//! What is to be done, and where.

use boathook_api::{Probe, action::ValidAction, pod_notification::Retry};

/// One container of one pod. The UID decides which pod: another one under the same name is never touched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub namespace: String,
    pub pod: String,
    pub pod_uid: String,
    pub container: String,
}

/// A handler, and what must hold after it. The action's timeout is for all of it: attempts and probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub action: ValidAction,
    pub probe: Option<Probe>,
    pub retry: Retry,
}
