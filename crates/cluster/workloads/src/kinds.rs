//! Which kinds the API server serves, found by discovery.

use kube::core::Status;
use kube::discovery::{ApiCapabilities, ApiResource, Discovery, Scope, verbs};
use kube::{Client, Error};

#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    capabilities: ApiCapabilities,
}

impl Kind {
    pub(crate) fn is_namespaced(&self) -> bool {
        self.capabilities.scope == Scope::Namespaced
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.capabilities.supports_operation(verb)
    }

    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        // An owner may be named in any of its kind's versions.
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.resource.group == group && self.resource.kind == kind
    }
}

/// Every kind that can be deleted, in its preferred version.
pub(crate) async fn discover(client: &Client) -> kube::Result<Vec<Kind>> {
    let discovery = match Discovery::new(client.clone()).run_aggregated().await {
        Err(error) if !is_refusal(&error) => return Err(error),
        Err(_) => Discovery::new(client.clone()).run().await?,
        Ok(discovery) => discovery,
    };
    let resources = discovery.groups().flat_map(|group| group.recommended_resources());
    let kinds = resources.map(|(resource, capabilities)| Kind { resource, capabilities });
    Ok(kinds.filter(|kind| kind.can(verbs::DELETE)).collect())
}

/// A server without aggregated discovery.
fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Api(status) => matches!(**status, Status { code: 404 | 406, .. }),
        Error::SerdeError(_) => true,
        _ => false,
    }
}
