//! The caller's own rights, by SelfSubjectAccessReview.

use anyhow::Result;
use boathook_controllers::webhooks::{Right, rights_to_write};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};
use serde::Serialize;

use crate::objects::{Kind, unnamed_answer};

/// One right, and whether the caller has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    pub(crate) right: String,
    pub(crate) granted: bool,
}

/// The right to create this object, and those that it stands for.
pub(crate) async fn to_create<K: Kind>(
    client: &Client,
    namespace: &str,
    object: &K,
    besides: &[Right],
) -> Result<Vec<Answer>> {
    let own = ResourceAttributes {
        verb: Some("create".to_owned()),
        group: Some(K::group(&()).into_owned()),
        version: Some(K::version(&()).into_owned()),
        resource: Some(K::plural(&()).into_owned()),
        namespace: Some(namespace.to_owned()),
        ..ResourceAttributes::default()
    };
    let mut answers = vec![answer(client, format!("create {}", K::plural(&())), own).await?];
    // Those of other groups are written for nothing else.
    let stands_for = rights_to_write(&K::plural(&()), serde_json::to_value(object)?).unwrap_or_default();
    for right in stands_for.iter().chain(besides) {
        answers.push(answer(client, right.name().to_owned(), right.attributes(namespace)).await?);
    }
    Ok(answers)
}

/// Whether the caller has one.
pub(crate) async fn answer(client: &Client, right: String, attributes: ResourceAttributes) -> Result<Answer> {
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None };
    let question = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let said = unnamed_answer(api.create(&PostParams::default(), &question), "ask for the caller's rights").await?;
    let granted = said.status.is_some_and(|status| status.allowed && status.denied != Some(true));
    Ok(Answer { right, granted })
}
