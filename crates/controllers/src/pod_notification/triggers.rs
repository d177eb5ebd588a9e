//! When a PodNotification is looked at again because of its pod: the pod was told to end, or is gone.

use boathook_api::PodNotification;
use boathook_decide::pod_notification::depends_on_pod;
use boathook_runtime::{
    Watches,
    lenient::{Lenient, touched_metadata},
};
use futures::{Stream, StreamExt, future, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};

/// The PodNotifications that an ending pod concerns. Of pods only the metadata is read, and nothing is kept.
pub fn triggers(
    client: Client,
    all: Store<Lenient<PodNotification>>,
    watches: &Watches,
) -> impl Stream<Item = ObjectRef<PodNotification>> + Send + use<> {
    // A pod that goes is ending in its last version too.
    let ending = |pod: &PartialObjectMeta<Pod>| future::ready(pod.metadata.deletion_timestamp.is_some());
    touched_metadata::<Pod>(client, watches).filter(ending).flat_map(move |pod| stream::iter(concerned(&all, &pod)))
}

fn concerned(all: &Store<Lenient<PodNotification>>, pod: &PartialObjectMeta<Pod>) -> Vec<ObjectRef<PodNotification>> {
    let all = all.state();
    let readable = all.iter().filter_map(|object| object.0.as_ref().ok());
    let of_pod =
        readable.filter(|object| object.namespace() == pod.namespace() && object.spec.pod_name == pod.name_any());
    of_pod.filter(|object| depends_on_pod(object)).map(ObjectRef::from_obj).collect()
}
