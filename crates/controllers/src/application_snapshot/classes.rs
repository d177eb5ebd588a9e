//! The VolumeSnapshotClass by which the storage cuts. Without one nothing is ever cut, and everything stays frozen until
//! the cut timeout. So the controller and the CLI look for it before anything is frozen.

use boathook_runtime::in_time;
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};

/// A message names at most this many of the classes that exist.
const MOST_NAMED: usize = 5;

/// Whose value is `true` of the class that is taken when none is named.
const IS_DEFAULT: &str = "snapshot.storage.kubernetes.io/is-default-class";

/// Says that the class does not exist, or that none is the default if none is named. Nothing is said to a caller without the
/// right to list classes: taking snapshots does not need it.
pub async fn missing_class(client: &Client, name: Option<&str>) -> Result<Option<String>, kube::Error> {
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass");
    let resource = ApiResource::from_gvk_with_plural(&kind, "volumesnapshotclasses");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match in_time(api.list(&ListParams::default())).await {
        Ok(classes) => Ok(told_missing(&classes.items, name)),
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(None),
        Err(error) => Err(error),
    }
}

fn told_missing(classes: &[DynamicObject], name: Option<&str>) -> Option<String> {
    let is_meant = |class: &&DynamicObject| match name {
        Some(name) => class.name_any() == name,
        None => class.annotations().get(IS_DEFAULT).is_some_and(|value| value == "true"),
    };
    if classes.iter().any(|class| is_meant(&class)) {
        return None;
    }
    let there: Vec<_> = classes.iter().map(|class| format!("`{}`", class.name_any())).collect();
    let there = match there.is_empty() {
        true => "the cluster has no VolumeSnapshotClass".to_owned(),
        false => {
            let more = there.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("the cluster has {}{more}", there[..there.len().min(MOST_NAMED)].join(", "))
        }
    };
    Some(match name {
        Some(name) => format!("VolumeSnapshotClass `{name}` not found; {there}"),
        None => format!("the cluster has no default VolumeSnapshotClass, and the snapshot names none; {there}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(name: &str, is_default: bool) -> DynamicObject {
        let annotations = json!({IS_DEFAULT: is_default.to_string()});
        let metadata = json!({"name": name, "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn what_is_there_is_named_if_what_is_meant_is_not() {
        let classes = [class("fast", false), class("slow", true)];
        assert_eq!((told_missing(&classes, Some("fast")), told_missing(&classes, None)), (None, None));
        let wanted = "VolumeSnapshotClass `fats` not found; the cluster has `fast`, `slow`";
        assert_eq!(told_missing(&classes, Some("fats")).as_deref(), Some(wanted));
        let told = told_missing(&classes[..1], None).unwrap();
        assert!(
            told.starts_with("the cluster has no default VolumeSnapshotClass") && told.ends_with("`fast`"),
            "{told}"
        );
        assert!(told_missing(&[], None).unwrap().ends_with("the cluster has no VolumeSnapshotClass"));
    }
}
