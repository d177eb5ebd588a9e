//! What the admission webhooks answer: a file per webhook. Where they are asked, and about what, stands in `install`.

mod abandonment;
mod access;
mod authors;
mod deployments;
mod gate;
mod gate_marks;
mod hook_pods;
mod lifecycle_strategy;
mod pod_declarations;
mod records;
mod requesters;
mod snapshot_verdicts;
mod template_declarations;
mod volume_snapshots;

use std::sync::Arc;

use boathook_api::words;
use boathook_install::webhooks::{
    ABANDONED_BY, ABANDONMENTS, AUTHORS, DECLARATION_CHANGES, DEPLOYMENT_STATUSES, DEPLOYMENTS, FINALIZERS, GATE_MARKS,
    HOOK_PODS, POD_DECLARATIONS, RECORDS, REPLICA_SETS, ROLLOUT_REQUESTS, SCALES, SNAPSHOT_VERDICTS,
    TEMPLATE_DECLARATIONS, VOLUME_SNAPSHOTS,
};
use boathook_runtime::webhook::{Ask, Reviews, refuse};
use kube::{Client, core::admission::AdmissionResponse};
use serde_json::Value;

use access::Access;
pub use access::{Error, Right};
pub use authors::rights_to_write;
use gate::Gate;
use volume_snapshots::Door;
pub use volume_snapshots::{fits, intended, seconds_for_hooks};

/// All of them, and the name by which the API server knows us.
pub async fn reviews(client: Client) -> Result<(Reviews, String), Error> {
    let access = Arc::new(Access::new(client.clone()).await?);
    let own = access.own().to_owned();
    let abandonments = Arc::clone(&access);
    let gate = Arc::new(Gate::new(client.clone()));
    let scales = Arc::clone(&gate);
    let lifecycles = client.clone();
    let deployments = client.clone();
    let door = Arc::new(Door::new(client, Arc::clone(&access)));
    let reviews = Reviews::default()
        .on(AUTHORS, move |ask| {
            let (access, client) = (Arc::clone(&access), deployments.clone());
            async move {
                match authors::review(&access, &ask).await {
                    answer if answer.allowed => lifecycle_strategy::review(&client, &ask).await,
                    refusal => refusal,
                }
            }
        })
        .on(POD_DECLARATIONS, |ask| async move { pod_declarations::review_new_pod(&ask) })
        .on(TEMPLATE_DECLARATIONS, |ask| async move { template_declarations::review(&ask) })
        .on(DECLARATION_CHANGES, |ask| async move { pod_declarations::review_change(&ask) })
        .on(GATE_MARKS, |ask| async move { gate_marks::review(&ask) })
        .on(REPLICA_SETS, move |ask| {
            let gate = Arc::clone(&gate);
            async move { gate.review_replica_set(&ask).await }
        })
        .on(SCALES, move |ask| {
            let gate = Arc::clone(&scales);
            async move { gate.review_scale(&ask).await }
        })
        .on(DEPLOYMENTS, move |ask| {
            let client = lifecycles.clone();
            async move { deployments::review(&client, &ask).await }
        })
        .on(DEPLOYMENT_STATUSES, |ask| async move { deployments::review_status(&ask) })
        .on(ROLLOUT_REQUESTS, |ask| async move {
            requesters::review(&ask, words::ROLLOUT_REQUEST, words::ROLLOUT_REQUESTED_BY)
        })
        .on(ABANDONED_BY, |ask| async move { requesters::review(&ask, words::ABANDON_UNDO, words::ABANDONED_BY) })
        .on(ABANDONMENTS, move |ask| {
            let access = Arc::clone(&abandonments);
            async move { abandonment::review(&access, &ask).await }
        })
        .on(FINALIZERS, |ask| async move { abandonment::review_finalizers(&ask) })
        .on(SNAPSHOT_VERDICTS, |ask| async move { snapshot_verdicts::review(&ask) })
        .on(HOOK_PODS, |ask| async move { hook_pods::review(&ask) })
        .on(RECORDS, |ask| async move { records::review(&ask) })
        .on_by_when(VOLUME_SNAPSHOTS, move |ask, by_when| {
            let door = Arc::clone(&door);
            async move { door.review(&ask, by_when).await }
        });
    Ok((reviews, own))
}

/// Yes, with this JSON patch.
fn patched(ask: &Ask, patch: Value) -> AdmissionResponse {
    let patch: Result<json_patch::Patch, _> = serde_json::from_value(patch);
    let answer = patch
        .map_err(|error| error.to_string())
        .and_then(|patch| AdmissionResponse::from(ask).with_patch(patch).map_err(|error| error.to_string()));
    answer.unwrap_or_else(|why| refuse(ask, 500, "InternalError", format!("failed to write the patch: {why}")))
}

/// A key as a part of a JSON pointer.
fn pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
pub(crate) mod test_asks;
