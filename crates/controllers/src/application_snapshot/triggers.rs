//! When an ApplicationSnapshot is looked at again: a VolumeSnapshot that it is about has changed, or its content.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    volume_snapshot::{VolumeSnapshot, VolumeSnapshotContent},
};
use boathook_runtime::{
    Watches,
    lenient::{Lenient, touched, watched},
};
use futures::{Stream, StreamExt, stream};
use kube::{
    Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};

/// The VolumeSnapshots of all namespaces, and those ApplicationSnapshots that each change concerns. The stream is to be
/// polled, or the store stays empty.
pub fn watch_snapshots(
    client: Client,
    all: Store<Lenient<ApplicationSnapshot>>,
    watches: &Watches,
) -> (Store<Lenient<VolumeSnapshot>>, impl Stream<Item = ObjectRef<ApplicationSnapshot>> + Send + use<>) {
    let (reader, writer) = reflector::store();
    let changes = watched::<Lenient<VolumeSnapshot>>(client, watcher::Config::default(), watches);
    let changes = changes.reflect(writer).touched_objects();
    let changes = changes.filter_map(|change| std::future::ready(change.ok()));
    let concerned = changes.flat_map(move |snapshot| {
        let (namespace, name) = (snapshot.namespace(), snapshot.name_any());
        stream::iter(concerned(&all, namespace.as_deref(), &name))
    });
    (reader, concerned)
}

/// Those that the contents of VolumeSnapshots concern: a content knows first that it was cut.
pub fn triggers(
    client: Client,
    all: Store<Lenient<ApplicationSnapshot>>,
    watches: &Watches,
) -> impl Stream<Item = ObjectRef<ApplicationSnapshot>> + Send + use<> {
    touched::<VolumeSnapshotContent>(client, watcher::Config::default(), watches).flat_map(move |content| {
        let snapshot = &content.spec.volume_snapshot_ref;
        let name = snapshot.name.as_deref().unwrap_or_default();
        stream::iter(concerned(&all, snapshot.namespace.as_deref(), name))
    })
}

fn concerned(
    all: &Store<Lenient<ApplicationSnapshot>>,
    namespace: Option<&str>,
    snapshot: &str,
) -> Vec<ObjectRef<ApplicationSnapshot>> {
    let all = all.state();
    let readable = all.iter().filter_map(|object| object.0.as_ref().ok());
    let here = readable.filter(|object| object.namespace().as_deref() == namespace);
    here.filter(|object| is_about(object, snapshot)).map(ObjectRef::from_obj).collect()
}

fn is_about(object: &ApplicationSnapshot, snapshot: &str) -> bool {
    let pinned = object.status.iter().flat_map(|status| &status.snapshots);
    let named = object.spec.source.volume_snapshot_name.as_deref() == Some(snapshot);
    named || pinned.into_iter().any(|record| record.volume_snapshot_name == snapshot)
}

/// The ApplicationSnapshots that go by a hook of this name, one that is gone by now. The name alone does not tell: that of a
/// long one is cut in it.
pub(crate) fn going_by(
    all: &Store<Lenient<ApplicationSnapshot>>,
    hook: &ObjectRef<ExecutionHook>,
) -> Vec<ObjectRef<ApplicationSnapshot>> {
    let all = all.state();
    let readable = all.iter().filter_map(|object| object.0.as_ref().ok());
    let here = readable.filter(|object| object.namespace() == hook.namespace);
    let names = |object: &&ApplicationSnapshot| {
        object.status.as_ref().is_some_and(|status| status.execution_hook_names.contains(&hook.name))
    };
    here.filter(names).map(ObjectRef::from_obj).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::{Api, api::PostParams};
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::test_world::world;

    const DEADLINE: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn volume_snapshot_and_its_content_wake_the_snapshot_about_them() {
        let client = world("nothing-is-refused").await.client;
        let (all, mut writer) = reflector::store();
        for (name, cuts) in [("nightly", "nightly-data"), ("other", "other-data")] {
            let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": []});
            let mut snapshot = ApplicationSnapshot::new(name, serde_json::from_value(spec).unwrap());
            snapshot.metadata.namespace = Some("default".to_owned());
            let record = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": cuts});
            snapshot.status = serde_json::from_value(json!({"snapshots": [record]})).unwrap();
            writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(snapshot))));
        }
        let nightly = Some(ObjectRef::new("nightly").within("default"));
        let new = PostParams::default();

        let source = json!({"source": {"persistentVolumeClaimName": "data"}});
        let cut = VolumeSnapshot::new("nightly-data", serde_json::from_value(source).unwrap());
        Api::namespaced(client.clone(), "default").create(&new, &cut).await.unwrap();
        let (_store, woken) = watch_snapshots(client.clone(), all.clone(), &Watches::default());
        let mut woken = std::pin::pin!(woken);
        assert_eq!(timeout(DEADLINE, woken.next()).await.unwrap(), nightly);

        let snapshot = json!({"name": "nightly-data", "namespace": "default"});
        let spec = json!({"volumeSnapshotRef": snapshot, "deletionPolicy": "Delete", "driver": "d",
            "source": {"volumeHandle": "v"}});
        let content = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": "content"}, "spec": spec});
        let resource = kube::api::ApiResource::erase::<VolumeSnapshotContent>(&());
        let contents: Api<kube::api::DynamicObject> = Api::all_with(client.clone(), &resource);
        contents.create(&new, &serde_json::from_value(content).unwrap()).await.unwrap();
        let mut woken = std::pin::pin!(triggers(client, all, &Watches::default()));
        assert_eq!(timeout(DEADLINE, woken.next()).await.unwrap(), nightly);
    }
}
