//! Where Boathook is installed for some scenarios: on the chosen cluster, and if that is an embedded one, on one of theirs
//! alone.

use std::path::Path;

use anyhow::{Context, Result};
use boathook_api::{PodNotification, words::reason};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    installation::Installation,
    notifications::{may_be_undone_once_more, undone},
};
use crate::{
    DEADLINE,
    cluster::{Choice, Cluster},
    embedded::Embedded,
    namespace,
    poll::{self, Look},
};

pub(crate) struct Ground {
    pub(crate) cluster: Cluster,
    embedded: Option<Embedded>,
    pub(crate) installation: Installation,
}

impl Ground {
    pub(crate) async fn new(choice: Choice, lantern: &Path, dir: &Path) -> Result<Self> {
        let (cluster, embedded) = Cluster::connect(choice, lantern).await?;
        let installation = Installation::of(cluster.clone(), dir).await?;
        Ok(Self { cluster, embedded, installation })
    }

    /// Takes the webhooks out of the way of whoever uses the cluster next, or the cluster.
    pub(crate) async fn leave(self) -> Result<()> {
        match self.embedded {
            Some(embedded) => embedded.stop().await,
            None => {
                let webhooks = boathook_install::webhooks::NAME.to_owned();
                let client = self.cluster.client;
                namespace::remove::<MutatingWebhookConfiguration>(client.clone(), webhooks.clone()).await?;
                namespace::remove::<ValidatingWebhookConfiguration>(client, webhooks).await
            }
        }
    }
}

/// Lets go of what was to be undone once more when its time is over: whoever would have done that was stopped. What is not
/// undone at all stays held, and its namespace tells of it.
pub(crate) async fn let_go(client: &Client, namespace: &str) -> Result<()> {
    let api: Api<PodNotification> = Api::namespaced(client.clone(), namespace);
    let all = api.list(&ListParams::default()).await.context("failed to list PodNotifications")?;
    let is_undone = |object: &&PodNotification| undone(object).as_deref() == Some(reason::UNDO_SUCCEEDED);
    let held: Vec<_> = all.items.iter().filter(is_undone).filter(|object| may_be_undone_once_more(object)).collect();
    if !held.is_empty() {
        // Its webhook keeps a finalizer while an undo is owed, and nothing answers for it.
        let webhooks = boathook_install::webhooks::NAME.to_owned();
        namespace::remove::<ValidatingWebhookConfiguration>(client.clone(), webhooks).await?;
    }
    for object in held {
        let (name, free) = (object.name_any(), Patch::Merge(json!({"metadata": {"finalizers": null}})));
        // The API server learns of the removal through a cache.
        poll::until(DEADLINE, &format!("PodNotification `{name}` is let go"), async || {
            Ok(match api.patch(&name, &PatchParams::default(), &free).await {
                Ok(_) => Look::Done(()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
    }
    Ok(())
}
