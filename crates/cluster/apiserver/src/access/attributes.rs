//! What a request wants to do, in the words in which it is authorized and refused.

use serde::Deserialize;
use serde_json::json;

use super::User;
use crate::status::{GroupResource, Status};

/// A request on a resource; or, where `path` is not empty, on a path that is none (`/version`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Attributes<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
    /// Empty at the cluster scope.
    pub namespace: &'a str,
    pub path: &'a str,
}

impl Attributes<'_> {
    /// `pods/exec`, or `pods` without a subresource.
    pub(super) fn combined_resource(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }

    /// The refusal, with the reason that the authorizer gave, if any.
    pub fn forbidden(&self, user: &User, reason: &str) -> Status {
        let mut why = without_markup(&self.refusal(user));
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        if self.resource.is_empty() {
            let message = format!("forbidden: {why}");
            return Status { code: 403, reason: "Forbidden".into(), message, details: json!({}) };
        }
        Status::forbidden(GroupResource { group: self.group, resource: self.resource }, self.name, &why)
    }

    fn refusal(&self, user: &User) -> String {
        let Self { verb, group, namespace, path, .. } = self;
        let user = &user.name;
        if !path.is_empty() {
            return format!("User {user:?} cannot {verb} path {path:?}");
        }
        let resource = self.combined_resource();
        let place = match namespace {
            &"" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
    }
}

/// Names from a request are echoed; a browser must not take them for HTML.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attributes: Attributes<'_>, reason: &str) -> String {
        attributes.forbidden(&User { name: "jane".into(), ..User::default() }, reason).message
    }

    #[test]
    fn refusals_say_what_kubernetes_says() {
        let list =
            Attributes { verb: "list", group: "apps", resource: "deployments", namespace: "x", ..Default::default() };
        assert_eq!(
            message(list, "RBAC: role.rbac.authorization.k8s.io \"gone\" not found"),
            "deployments.apps is forbidden: User \"jane\" cannot list resource \"deployments\" in API group \"apps\" \
             in the namespace \"x\": RBAC: role.rbac.authorization.k8s.io \"gone\" not found"
        );
        let exec = Attributes {
            verb: "get",
            resource: "pods",
            subresource: "exec",
            name: "web",
            namespace: "x",
            ..Default::default()
        };
        assert_eq!(
            message(exec, ""),
            "pods \"web\" is forbidden: User \"jane\" cannot get resource \"pods/exec\" in API group \"\" \
             in the namespace \"x\""
        );
        let nodes = Attributes { verb: "list", resource: "nodes", ..Default::default() };
        assert_eq!(
            message(nodes, ""),
            "nodes is forbidden: User \"jane\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
        );
    }

    #[test]
    fn a_path_is_refused_without_a_resource() {
        let path = Attributes { verb: "get", path: "/metrics", ..Default::default() };
        let status = path.forbidden(&User { name: "<b>".into(), ..User::default() }, "");
        assert_eq!(status.message, "forbidden: User \"&lt;b&gt;\" cannot get path \"/metrics\"");
        assert_eq!(status.details, json!({}));
    }
}
