//! I3 and I14: what is called application-consistent was frozen, all of it and by everybody, when it was really cut.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{ApplicationSnapshotStatus, Consistency},
    words::APPLICATION_SNAPSHOT_UID,
};
use boathook_decide::execution_hook::child_name;

use super::{
    World,
    objects::{Kind, Object},
    storage::Truth,
};

impl World {
    /// A verdict is being written.
    pub(crate) fn check_verdict(&self, snapshot: &ApplicationSnapshot, status: &ApplicationSnapshotStatus) {
        let truth = self.cut_of(snapshot, status).expect("I3: a verdict without a cut");
        if status.consistency == Some(Consistency::Crash) {
            assert!(status.failure.is_some(), "a crash says why");
            return;
        }
        assert!(status.failure.is_none(), "unexpected failure: {:?}", status.failure);
        if status.hooks.is_empty() {
            assert!(truth.users.is_empty(), "I3: not in use, they say: {truth:?}");
        } else {
            assert_eq!(status.hooks.len(), self.plan.hooks.len(), "I3: not every hook was run");
        }
        for record in &status.hooks {
            let hook = self.server.last_seen(&(Kind::Hook, record.name.clone()));
            let Some(Object::Hook(hook)) = hook.as_deref() else { panic!("I3: there never was a hook") };
            for container in &record.containers {
                let held = truth.users.get(&container.pod_uid);
                let child = child_name(hook, &container.pod_uid);
                let frozen = held.is_some_and(|held| held.contains(&child));
                assert!(frozen, "I3: pod `{}` was not frozen by `{}`: {truth:?}", container.pod_uid, record.name);
            }
            for user in truth.users.keys() {
                let meant = record.containers.iter().any(|container| container.pod_uid == *user);
                assert!(meant, "I3: pod `{user}` used the claim, and nobody froze it: {truth:?}");
            }
        }
    }

    /// How things were when the VolumeSnapshot that it is about was cut.
    fn cut_of(&self, snapshot: &ApplicationSnapshot, status: &ApplicationSnapshotStatus) -> Option<&Truth> {
        if let Some(uid) = &snapshot.spec.source.volume_snapshot_uid {
            return self.storage.cuts.get(uid);
        }
        let name = &status.snapshots.first()?.volume_snapshot_name;
        let volume = self.server.last_seen(&(Kind::Volume, name.clone()))?;
        let maker = volume.meta().annotations.as_ref()?.get(APPLICATION_SNAPSHOT_UID)?.clone();
        assert_eq!(Some(maker), snapshot.metadata.uid, "I3: a verdict of somebody else's VolumeSnapshot");
        self.storage.cuts.get(volume.meta().uid.as_ref()?)
    }
}
