//! Which kinds the API server serves, found by discovery.

use kube::Client;
use kube::discovery::{ApiCapabilities, ApiResource, Discovery, Scope, verbs};

#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    capabilities: ApiCapabilities,
}

impl Kind {
    pub(crate) fn is_namespaced(&self) -> bool {
        self.capabilities.scope == Scope::Namespaced
    }

    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        // An owner may be named in any of its kind's versions.
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.resource.group == group && self.resource.kind == kind
    }
}

/// Every kind of which objects are kept, in its preferred version. The API server serves all verbs for each of them.
pub(crate) async fn discover(client: &Client) -> kube::Result<Vec<Kind>> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let resources = discovery.groups().flat_map(|group| group.recommended_resources());
    let kept = resources.filter(|(_, capabilities)| capabilities.supports_operation(verbs::DELETE));
    Ok(kept.map(|(resource, capabilities)| Kind { resource, capabilities }).collect())
}
