//! Marks without a lifecycle. A write of Boathook can reach the API server after the lifecycle that it was for is gone:
//! the request was delayed on its way, or its process was suspended after the lease was checked. A person can also remove
//! the finalizer of a lifecycle by hand. No lifecycle would ever release such a Deployment, so the leader does.

use boathook_api::words::LIFECYCLE_MANAGED;

use super::{Deployment, Release, ReplicaSet, release::release};
use crate::Leadership;

/// A Deployment that may carry marks without a lifecycle.
#[derive(Clone, Debug)]
pub struct Unclaimed<'a> {
    pub leadership: Leadership,
    pub deployment: &'a Deployment,
    /// The ReplicaSets that it owns.
    pub replica_sets: &'a [ReplicaSet],
    /// The pods of its hooks that have not ended.
    pub live_hooks: &'a [LiveHook],
    /// Whether a DeploymentLifecycle of its name exists. This must be read after everything else: a lifecycle that is
    /// created later changes what it adopts, so a release fails on its version, and the hooks above are none of its own.
    pub lifecycle_exists: bool,
}

/// The pod of a hook that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveHook {
    pub name: String,
    pub uid: String,
    /// It is deleted already.
    pub deleted: bool,
}

/// What to do about a Deployment that may carry marks without a lifecycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// Its marks are in order.
    Keep,
    /// Delete these pods, and look again: a new version must not run beside a hook of the lifecycle that is gone.
    EndHooks(Vec<LiveHook>),
    Release(Vec<Release>),
}

/// Whether this annotation of a Deployment asks for a lifecycle that is still to come. Boathook itself only writes
/// `managed`, and only for a lifecycle that exists.
pub fn waits_for_a_lifecycle(annotation: Option<&str>) -> bool {
    annotation.is_some_and(|value| value != LIFECYCLE_MANAGED)
}

/// Removes the marks if no lifecycle stands for them.
pub fn decide_orphan(unclaimed: &Unclaimed<'_>) -> Orphan {
    let Unclaimed { leadership, deployment, replica_sets, live_hooks, lifecycle_exists } = unclaimed;
    let waits = waits_for_a_lifecycle(deployment.lifecycle.as_deref());
    if *leadership != Leadership::Leader || *lifecycle_exists || waits {
        return Orphan::Keep;
    }
    let releases: Vec<_> = release(Some(deployment), replica_sets).collect();
    match (releases.is_empty(), live_hooks.is_empty()) {
        (true, _) => Orphan::Keep,
        (false, true) => Orphan::Release(releases),
        (false, false) => Orphan::EndHooks(live_hooks.iter().filter(|pod| !pod.deleted).cloned().collect()),
    }
}
