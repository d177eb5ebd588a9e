//! Which rights this process has: the API server is asked, as any account may ask about itself.

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};

use crate::in_time;

/// How many questions are asked at once.
const AT_ONCE: usize = 8;

/// A right in all namespaces. `resource` may name a subresource, as in `pods/exec`.
pub fn attributes(verb: &str, group: &str, resource: &str) -> ResourceAttributes {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        ..ResourceAttributes::default()
    }
}

/// Those that this process does not have.
pub async fn missing(client: &Client, wanted: Vec<ResourceAttributes>) -> kube::Result<Vec<ResourceAttributes>> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let ask = |wanted: ResourceAttributes| {
        let api = api.clone();
        async move {
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes: Some(wanted.clone()),
                ..SelfSubjectAccessReviewSpec::default()
            };
            let question = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            let answer = in_time(api.create(&PostParams::default(), &question)).await?;
            let granted = answer.status.is_some_and(|status| status.allowed && status.denied != Some(true));
            Ok::<_, kube::Error>((!granted).then_some(wanted))
        }
    };
    stream::iter(wanted).map(ask).buffered(AT_ONCE).try_filter_map(async |missing| Ok(missing)).try_collect().await
}

/// An error that names the first that is missing, and how many more are.
pub fn none_missing(missing: &[ResourceAttributes]) -> Result<(), String> {
    let Some(first) = missing.first() else { return Ok(()) };
    let more = match missing.len() {
        1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    Err(format!("the right to {}{more} is missing: bind the role of deploy/rbac to this account", name(first)))
}

/// As in `update podnotifications/status.boathook.dev`.
fn name(right: &ResourceAttributes) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let subresource = right.subresource.iter().map(|subresource| format!("/{subresource}")).collect::<String>();
    let place = right.namespace.iter().map(|namespace| format!(" in namespace `{namespace}`")).collect::<String>();
    let resource = format!("{}{subresource}.{}", text(&right.resource), text(&right.group));
    format!("{} {}{place}", text(&right.verb), resource.trim_end_matches('.'))
}
