//! A user as the server knows them after authentication, and the names that mean something to Kubernetes.

use std::collections::BTreeMap;

use serde::Serialize;

/// Members may do everything; RBAC is not asked.
pub const MASTERS: &str = "system:masters";
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const ANONYMOUS: &str = "system:anonymous";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// Written as reviews show it (`authentication.k8s.io/v1` `UserInfo`), without what is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct User {
    #[serde(rename = "username", skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who has shown who they are.
    pub fn authenticated(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain([AUTHENTICATED]).map(str::to_owned).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// A request without any credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let mut groups = service_account_groups(namespace);
        groups.push(AUTHENTICATED.to_owned());
        Self { name: service_account_name(namespace, name), uid: uid.to_owned(), groups, ..Self::default() }
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups every account of a namespace is in; the one of all authenticated users is not among them.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// Namespace and name of the service account that a user name stands for.
pub fn split_service_account(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let usable = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    usable.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_account_is_in_three_groups() {
        let user = User::service_account("shop", "bot", "u1");
        assert_eq!(user.name, "system:serviceaccount:shop:bot");
        let wanted = ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"];
        assert_eq!(user.groups, wanted);
    }

    #[test]
    fn only_whole_service_account_names_are_split() {
        assert_eq!(split_service_account("system:serviceaccount:shop:bot"), Some(("shop", "bot")));
        for other in ["jane", "system:serviceaccount:shop", "system:serviceaccount::bot", "system:serviceaccount:a:b:c"]
        {
            assert_eq!(split_service_account(other), None, "{other}");
        }
    }

    #[test]
    fn what_a_user_lacks_is_not_in_the_info() {
        let info = json!(User { name: "jane".into(), ..User::default() });
        assert_eq!(info, json!({"username": "jane"}));
    }
}
