//! What the API server refused, in words that say which right is missing or what is not there.

use anyhow::{Error, anyhow};
use boathook_api::words::GROUP;
use boathook_install::roles::{DEPLOYER, NOTIFIER, SNAPSHOTTER};

use crate::{pods::Scope, server};

/// What was asked of the API server.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) verb: &'static str,
    /// As a Role names it: with its group, if it is none of core's.
    pub(crate) resource: &'a str,
    pub(crate) scope: &'a Scope,
}

/// The resource of PodNotification, as a Role or kubectl names it.
pub(crate) const POD_NOTIFICATIONS: &str = "podnotifications.boathook.dev";

pub(crate) fn explained(error: kube::Error, attempt: Attempt<'_>) -> Error {
    let Attempt { verb, resource, scope } = attempt;
    let place = match scope {
        Scope::Namespace(_) => scope.place(),
        Scope::AllNamespaces => "in all namespaces".to_owned(),
    };
    match error {
        kube::Error::Api(status) if status.code == 403 => anyhow!(
            "the right to {verb} {resource} {place} is missing (ClusterRole `{}` has it): {}",
            role_for(resource),
            status.message
        ),
        kube::Error::Api(status) if status.code == 404 && resource.ends_with(GROUP) => {
            anyhow!("the cluster does not know {resource}: install it with kubectl apply --server-side -f deploy/crds")
        }
        kube::Error::Api(status) => anyhow!("failed to {verb} {resource} {place}: {}", status.message),
        kube::Error::Service(cause) => {
            let cause = boathook_runtime::error_class::chain(cause.as_ref());
            anyhow!(
                "failed to {verb} {resource} {place}: no connection to {}: {cause}; check that the cluster runs, or choose \
                 another one with KUBECONFIG, --kubeconfig or --context",
                server::named()
            )
        }
        other => Error::new(other).context(format!("failed to {verb} {resource} {place}")),
    }
}

/// The role of people who do such things.
fn role_for(resource: &str) -> &'static str {
    match resource {
        POD_NOTIFICATIONS | "pods" => NOTIFIER,
        "deployments.apps" | "deploymentlifecycles.boathook.dev" => DEPLOYER,
        _ => SNAPSHOTTER,
    }
}

/// Whether it is the lack of a right, which a retry would not change.
pub(crate) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn the_missing_right_is_named() {
        let scope = Scope::Namespace("sea".to_owned());
        let refusal = |code, resource| {
            let status = Status { code, message: "User \"jane\" cannot".to_owned(), ..Status::default() };
            let attempt = Attempt { verb: "list", resource, scope: &scope };
            explained(kube::Error::Api(Box::new(status)), attempt).to_string()
        };
        let told = refusal(403, "pods");
        let wanted = "the right to list pods in namespace `sea` is missing (ClusterRole `boathook-notifier` has it): ";
        assert_eq!(told, format!("{wanted}User \"jane\" cannot"));
        assert!(refusal(403, "executionhooks.boathook.dev").contains("`boathook-snapshotter`"));
        assert!(refusal(403, "deployments.apps").contains("`boathook-deployer`"));
        assert!(refusal(404, POD_NOTIFICATIONS).contains("deploy/crds"));
        assert_eq!(refusal(500, "pods"), "failed to list pods in namespace `sea`: User \"jane\" cannot");
    }
}
