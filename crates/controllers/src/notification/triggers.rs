//! When a Notification is looked at again: a pod that it may select has changed, or a PodNotification of its own.

use boathook_api::{Notification, PodNotification, words::condition};
use boathook_runtime::{
    Watches,
    lenient::{Lenient, touched_metadata},
};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};

/// How many hexadecimal digits end the name of a child.
const DIGITS: usize = 16;

/// The Notifications that may concern each pod that changes. Of pods only the metadata is read, and nothing is kept.
pub fn triggers(
    client: Client,
    notifications: Store<Lenient<Notification>>,
    watches: &Watches,
) -> impl Stream<Item = ObjectRef<Notification>> + Send + use<> {
    touched_metadata::<Pod>(client, watches).flat_map(move |pod| stream::iter(concerned(&notifications, &pod)))
}

fn concerned(
    notifications: &Store<Lenient<Notification>>,
    pod: &PartialObjectMeta<Pod>,
) -> Vec<ObjectRef<Notification>> {
    let all = notifications.state();
    let readable = all.iter().filter_map(|notification| notification.0.as_ref().ok());
    let open =
        readable.filter(|notification| notification.namespace() == pod.namespace() && !is_complete(notification));
    open.map(ObjectRef::from_obj).collect()
}

fn is_complete(notification: &Notification) -> bool {
    let conditions = notification.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == condition::COMPLETE && one.status == "True")
}

/// The Notification that would have made a PodNotification of this name, one that is gone by now.
pub(crate) fn parent_by_name(child: &ObjectRef<PodNotification>) -> Option<ObjectRef<Notification>> {
    let (parent, digits) = child.name.rsplit_once('-')?;
    let is_child = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_child.then(|| ObjectRef::new(parent).within(child.namespace.as_deref().unwrap_or_default()))
}
