//! What a decision needs to know: the pods that the selector finds, and what they were told.

use boathook_api::{Notification, PodNotification, selector};
use boathook_decide::{
    Leadership,
    notification::{Observed, Pod, is_accepted},
};
use boathook_runtime::{Classified, ErrorClass, in_time};
use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::Time};
use kube::{Api, ResourceExt, api::ListParams, core::Selector};
use snafu::{ResultExt, Snafu};

use super::Controller;
use crate::author_check::was_checked;

/// Pods are listed in pages of this size.
const PAGE: u32 = 500;

#[derive(Debug, Snafu)]
pub enum ObserveError {
    #[snafu(display("failed to list the pods of namespace `{namespace}`"))]
    Pods { namespace: String, source: kube::Error },
    #[snafu(display("failed to get the webhooks' configuration"))]
    Webhooks { source: kube::Error },
}

impl Classified for ObserveError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Pods { source, .. } | Self::Webhooks { source } => source.class(),
        }
    }
}

pub(super) async fn observe<'a>(
    controller: &Controller,
    leadership: Leadership,
    object: &'a Notification,
) -> Result<Observed<'a>, ObserveError> {
    let pods = match selector::parse(&object.spec.selector) {
        Ok(selector) => Ok(pods(controller, object, &selector).await?),
        Err(wrong) => Err(wrong),
    };
    let author_checked =
        is_accepted(object) || was_checked(&controller.client, &object.metadata).await.context(WebhooksSnafu)?;
    let (enabled, children) = (controller.enabled, children(controller, object));
    Ok(Observed { object, leadership, enabled, author_checked, pods, children })
}

async fn pods(controller: &Controller, object: &Notification, selector: &Selector) -> Result<Vec<Pod>, ObserveError> {
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<v1::Pod> = Api::namespaced(controller.client.clone(), &namespace);
    let mut asked = ListParams::default().labels_from(selector).limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = in_time(api.list(&asked)).await.context(PodsSnafu { namespace: &namespace })?;
        found.extend(page.items.iter().map(seen));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => asked = asked.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn seen(pod: &v1::Pod) -> Pod {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    Pod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        created: pod.creation_timestamp().map(|Time(time)| time).unwrap_or_default(),
        running: phase == Some("Running") && pod.metadata.deletion_timestamp.is_none(),
    }
}

fn children(controller: &Controller, object: &Notification) -> Vec<PodNotification> {
    let all = controller.children.state();
    let readable = all.iter().filter_map(|child| child.0.as_ref().ok());
    let uid = object.uid();
    let owned = |child: &&PodNotification| {
        child.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref() && owner.controller == Some(true))
    };
    let mut children: Vec<_> = readable.filter(owned).cloned().collect();
    children.extend(controller.made.besides(uid.as_deref().unwrap_or_default(), &children));
    children
}
