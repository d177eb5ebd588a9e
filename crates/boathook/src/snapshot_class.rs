//! The VolumeSnapshotClass by which the storage is to cut: without it nothing is ever cut, and everything stays frozen until
//! the time for the cut is over. So it is looked for before anything is frozen.

use anyhow::Result;
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};

use crate::{objects::answer, output::plain::names};

/// Whose value is `true` of the class that is taken when none is named.
const IS_DEFAULT: &str = "snapshot.storage.kubernetes.io/is-default-class";

/// That there is no such class, or no default if none is named. Who may not look at classes is not told, for they belong
/// to no namespace, and taking snapshots needs no right to them.
pub(crate) async fn missing(client: &Client, name: Option<&str>) -> Result<Option<String>> {
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass");
    let resource = ApiResource::from_gvk_with_plural(&kind, "volumesnapshotclasses");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let classes = match answer(api.list(&ListParams::default())).await? {
        Ok(classes) => classes.items,
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(told_missing(&classes, name))
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
        true => "and none at all".to_owned(),
        false => format!("there are: {}", names(there.iter().map(String::as_str))),
    };
    Some(match name {
        Some(name) => format!("there is no VolumeSnapshotClass `{name}`; {there}"),
        None => format!("no VolumeSnapshotClass is the default, so one must be named; {there}"),
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
        let wanted = "there is no VolumeSnapshotClass `fats`; there are: `fast`, `slow`";
        assert_eq!(told_missing(&classes, Some("fats")).as_deref(), Some(wanted));
        let told = told_missing(&classes[..1], None).unwrap();
        assert!(told.starts_with("no VolumeSnapshotClass is the default") && told.ends_with("`fast`"), "{told}");
        assert!(told_missing(&[], None).unwrap().ends_with("and none at all"));
    }
}
