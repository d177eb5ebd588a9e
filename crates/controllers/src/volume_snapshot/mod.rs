//! VolumeSnapshot: removes a verdict that Boathook did not write. The watch omits managed fields, so the controller reads
//! them live, and only for a verdict that no ApplicationSnapshot explains.

use std::{sync::Arc, time::Duration};

use boathook_api::{
    ApplicationSnapshot,
    volume_snapshot::VolumeSnapshot,
    words::{APPLICATION_SNAPSHOT_UID, CONSISTENCY, EXECUTION_HOOK_NAMES, reason},
};
use boathook_decide::{About, Gravity, Report, volume_snapshot::foreign_verdicts};
use boathook_runtime::{Classified, ErrorClass, Lease, Reconcile, Reporter, in_time, lenient::Lenient};
use kube::{Api, Client, ResourceExt, runtime::reflector::Store};
use serde_json::{Map, Value, json};
use snafu::{ResultExt, Snafu};

use crate::writes::{self, WriteError};

pub struct Controller {
    pub client: Client,
    pub lease: Lease,
    pub reporter: Reporter,
    /// Those of all namespaces.
    pub snapshots: Store<Lenient<ApplicationSnapshot>>,
}

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(display("failed to get VolumeSnapshot `{name}`"))]
    Look { name: String, source: kube::Error },
    #[snafu(transparent)]
    Write { source: WriteError },
}

impl Classified for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Look { source, .. } => source.class(),
            Self::Write { source } => source.class(),
        }
    }
}

impl Controller {
    /// Whether an ApplicationSnapshot took it and came to the same verdict: then the managed fields need no look.
    fn is_explained(&self, object: &VolumeSnapshot) -> bool {
        let (uid, maker) = (object.uid(), object.annotations().get(APPLICATION_SNAPSHOT_UID));
        let all = self.snapshots.state();
        let readable = all.iter().filter_map(|one| one.0.as_ref().ok());
        readable.filter(|one| one.namespace() == object.namespace()).any(|one| {
            let marked = one.spec.source.volume_snapshot_uid.as_ref();
            let made = one.status.iter().flat_map(|status| &status.snapshots);
            let made_it = maker == one.metadata.uid.as_ref()
                && made.into_iter().any(|record| record.volume_snapshot_name == object.name_any());
            let is_its = marked.map_or(made_it, |marked| Some(marked) == uid.as_ref());
            let verdict = one.status.as_ref().and_then(|status| status.consistency);
            let same = verdict.is_some_and(|verdict| {
                object.annotations().get(CONSISTENCY).map(String::as_str) == Some(verdict.as_str())
            });
            is_its && same
        })
    }
}

impl Reconcile<VolumeSnapshot> for Controller {
    type Error = Error;

    async fn reconcile(&self, object: Arc<VolumeSnapshot>) -> Result<Option<Duration>, Error> {
        let annotated = [CONSISTENCY, EXECUTION_HOOK_NAMES].iter().any(|key| object.annotations().contains_key(*key));
        if !annotated || !self.lease.leads() || self.is_explained(&object) {
            return Ok(None);
        }
        let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
        let api: Api<VolumeSnapshot> = Api::namespaced(self.client.clone(), &namespace);
        let Some(live) = in_time(api.get_metadata_opt(&name)).await.context(LookSnafu { name: &name })? else {
            return Ok(None);
        };
        let foreign = foreign_verdicts(&live.metadata);
        if foreign.is_empty() {
            return Ok(None);
        }
        let removed: Map<String, Value> = foreign.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
        // The version that was looked at: a verdict that Boathook writes meanwhile stays.
        let metadata = json!({"uid": live.uid(), "resourceVersion": live.resource_version(), "annotations": removed});
        let patch = json!({"metadata": metadata});
        writes::patch::<VolumeSnapshot>(&self.client, &namespace, &name, "remove a foreign verdict from", patch)
            .await?;
        let note = format!("removed `{}`: Boathook did not write it", foreign.join("`, `"));
        let (about, gravity, reason) = (About::Object, Gravity::Warning, reason::FOREIGN_VERDICT.to_owned());
        self.reporter.report(&*object, vec![Report { about, gravity, reason, action: "Verify", note }]);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use boathook_api::words::VERDICT_FIELD_MANAGER;
    use kube::{
        api::{Patch, PatchParams, PostParams},
        runtime::{reflector, watcher},
    };

    use super::*;
    use crate::test_world::{World, world};

    async fn stored(client: &Client, name: &str) -> Api<VolumeSnapshot> {
        let api: Api<VolumeSnapshot> = Api::namespaced(client.clone(), "default");
        let source = json!({"source": {"persistentVolumeClaimName": "data"}});
        let new = VolumeSnapshot::new(name, serde_json::from_value(source).unwrap());
        api.create(&PostParams::default(), &new).await.unwrap();
        api
    }

    #[tokio::test]
    async fn verdict_that_boathook_did_not_write_is_removed() {
        let World { client, lease, reporter } = world("nothing-is-refused").await;
        let (snapshots, mut writer) = reflector::store();
        let controller = Controller { client: client.clone(), lease, reporter, snapshots };
        let verdict = Patch::Merge(json!({"metadata": {"annotations": {CONSISTENCY: "Application"}}}));
        for (name, manager, stays) in [("forged", "kubectl-annotate", false), ("ours", VERDICT_FIELD_MANAGER, true)] {
            let api = stored(&client, name).await;
            let written = api.patch(name, &PatchParams::apply(manager), &verdict).await.unwrap();
            controller.reconcile(Arc::new(written)).await.unwrap();
            let after = api.get(name).await.unwrap();
            assert_eq!(after.annotations().contains_key(CONSISTENCY), stays, "{name}");
        }

        // An ApplicationSnapshot that came to the same verdict explains the value; another verdict does not.
        for (verdict_of_snapshot, stays) in [("Crash", false), ("Application", true)] {
            let api = stored(&client, verdict_of_snapshot.to_lowercase().as_str()).await;
            let name = verdict_of_snapshot.to_lowercase();
            let written = api.patch(&name, &PatchParams::apply("kubectl-annotate"), &verdict).await.unwrap();
            let source = json!({"volumeSnapshotName": name, "volumeSnapshotUID": written.uid()});
            let spec = serde_json::from_value(json!({"source": source})).unwrap();
            let mut snapshot = ApplicationSnapshot::new(&name, spec);
            snapshot.metadata.namespace = Some("default".to_owned());
            snapshot.status = serde_json::from_value(json!({"consistency": verdict_of_snapshot})).unwrap();
            writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(snapshot))));
            controller.reconcile(Arc::new(written)).await.unwrap();
            let after = api.get(&name).await.unwrap();
            assert_eq!(after.annotations().contains_key(CONSISTENCY), stays, "{verdict_of_snapshot}");
        }
    }
}
