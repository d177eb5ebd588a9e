//! Acting as someone else, by the `Impersonate-*` headers: each thing asked for needs the verb `impersonate`.

use http::HeaderMap;

use super::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, service_account_groups, split_service_account};
use super::{Attributes, Rules, User};
use crate::request::unescaped;
use crate::status::{Result, Status};

const EXTRA_PREFIX: &str = "impersonate-extra-";
const GROUP: &str = "authentication.k8s.io";

/// The user that the request is to be treated as: the one who is impersonated, if the headers ask for it.
pub fn acting_user(rules: &Rules, user: User, headers: &HeaderMap) -> Result<User> {
    let wanted = Wanted::read(headers);
    if wanted.name.is_empty() {
        return match wanted == Wanted::default() {
            true => Ok(user),
            false => Err(Status::bad_request("requested groups, uid or extra without impersonating a user")),
        };
    }
    for attributes in wanted.attributes() {
        rules.check(&user, &attributes)?;
    }
    Ok(wanted.into_user())
}

#[derive(Debug, Default, PartialEq)]
struct Wanted {
    name: String,
    uid: String,
    groups: Vec<String>,
    /// Key and value, in the order of the headers.
    extra: Vec<(String, String)>,
}

impl Wanted {
    fn read(headers: &HeaderMap) -> Self {
        let all = |name: &str| headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned);
        let extra = headers.iter().filter_map(|(name, value)| {
            // Keys are sent percent-encoded, as they may hold what a header's name may not.
            let key = unescaped(name.as_str().strip_prefix(EXTRA_PREFIX)?);
            Some((key, value.to_str().ok()?.to_owned()))
        });
        Self {
            name: all("impersonate-user").next().unwrap_or_default(),
            uid: all("impersonate-uid").next().unwrap_or_default(),
            groups: all("impersonate-group").collect(),
            extra: extra.collect(),
        }
    }

    /// What must be allowed.
    fn attributes(&self) -> Vec<Attributes<'_>> {
        let wanted = Attributes { verb: "impersonate", version: "v1", ..Default::default() };
        let of = |group, resource, name| Attributes { group, resource, name, ..wanted };
        let whom = match split_service_account(&self.name) {
            Some((namespace, name)) => Attributes { namespace, ..of("", "serviceaccounts", name) },
            None => of("", "users", &self.name),
        };
        let groups = self.groups.iter().map(|group| of("", "groups", group));
        let extra =
            self.extra.iter().map(|(key, value)| Attributes { subresource: key, ..of(GROUP, "userextras", value) });
        let uid = Some(of(GROUP, "uids", &self.uid)).filter(|_| !self.uid.is_empty());
        [whom].into_iter().chain(groups).chain(extra).chain(uid).collect()
    }

    fn into_user(self) -> User {
        let Self { name, uid, mut groups, extra } = self;
        if groups.is_empty()
            && let Some((namespace, _)) = split_service_account(&name)
        {
            groups = service_account_groups(namespace);
        }
        let has = |group: &str| groups.iter().any(|own| own == group);
        if name == ANONYMOUS {
            if !has(UNAUTHENTICATED) {
                groups.push(UNAUTHENTICATED.to_owned());
            }
        } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        let mut user = User { name, uid, groups, ..User::default() };
        for (key, value) in extra {
            user.extra.entry(key).or_default().push(value);
        }
        user
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn as_admin(list: &[(&'static str, &str)]) -> Result<User> {
        acting_user(&Rules::default(), User::authenticated("admin", &["system:masters"]), &headers(list))
    }

    #[test]
    fn without_headers_the_user_stays_who_they_are() {
        assert_eq!(as_admin(&[("accept", "*/*")]).unwrap().name, "admin");
    }

    #[test]
    fn groups_are_added_as_kubernetes_adds_them() {
        let groups = |list: &[(&'static str, &str)]| as_admin(list).unwrap().groups;
        assert_eq!(groups(&[("impersonate-user", "jane")]), ["system:authenticated"]);
        assert_eq!(
            groups(&[("impersonate-user", "jane"), ("impersonate-group", "a"), ("impersonate-group", "b")]),
            ["a", "b", "system:authenticated"]
        );
        assert_eq!(
            groups(&[("impersonate-user", "system:serviceaccount:shop:bot")]),
            ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]
        );
        assert_eq!(
            groups(&[("impersonate-user", "system:serviceaccount:shop:bot"), ("impersonate-group", "a")]),
            ["a", "system:authenticated"]
        );
        assert_eq!(groups(&[("impersonate-user", "system:anonymous")]), ["system:unauthenticated"]);
        assert_eq!(
            groups(&[("impersonate-user", "jane"), ("impersonate-group", "system:unauthenticated")]),
            ["system:unauthenticated"]
        );
    }

    #[test]
    fn uid_and_extra_are_taken_over() {
        let user = as_admin(&[
            ("impersonate-user", "jane"),
            ("impersonate-uid", "77"),
            ("impersonate-extra-foo%2fbar", "a"),
            ("impersonate-extra-foo%2fbar", "b"),
            ("impersonate-extra-odd%zz", "c"),
        ])
        .unwrap();
        assert_eq!(user.uid, "77");
        assert_eq!(json!(user.extra), json!({"foo/bar": ["a", "b"], "odd%zz": ["c"]}));
    }

    #[test]
    fn a_group_without_a_user_is_a_bad_request() {
        let status = as_admin(&[("impersonate-group", "g")]).unwrap_err();
        assert_eq!(status.code, 400);
        assert!(status.message.ends_with("without impersonating a user"));
    }

    #[test]
    fn each_thing_asked_for_must_be_allowed() {
        let objects = [
            json!({"kind": "ClusterRole", "metadata": {"name": "as-u"}, "rules": [
                {"apiGroups": [""], "resources": ["users"], "resourceNames": ["u"], "verbs": ["impersonate"]},
                {"apiGroups": [GROUP], "resources": ["userextras/scopes"], "verbs": ["impersonate"]},
            ]}),
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "as-u"},
                "roleRef": {"kind": "ClusterRole", "name": "as-u"}, "subjects": [{"kind": "User", "name": "jane"}]}),
        ];
        let rules = Rules::build(&objects);
        let jane = || User::authenticated("jane", &[]);
        let ask = |list: &[(&'static str, &str)]| acting_user(&rules, jane(), &headers(list));
        assert_eq!(ask(&[("impersonate-user", "u"), ("impersonate-extra-scopes", "a")]).unwrap().name, "u");
        let refusals = [
            (
                ask(&[("impersonate-user", "v")]),
                "users \"v\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" \
                 at the cluster scope",
            ),
            (
                ask(&[("impersonate-user", "u"), ("impersonate-group", "g")]),
                "groups \"g\" is forbidden: User \"jane\" cannot impersonate resource \"groups\" in API group \"\" \
                 at the cluster scope",
            ),
            (
                ask(&[("impersonate-user", "system:serviceaccount:shop:bot")]),
                "serviceaccounts \"bot\" is forbidden: User \"jane\" cannot impersonate resource \"serviceaccounts\" \
                 in API group \"\" in the namespace \"shop\"",
            ),
            (
                ask(&[("impersonate-user", "u"), ("impersonate-uid", "1")]),
                "uids.authentication.k8s.io \"1\" is forbidden: User \"jane\" cannot impersonate resource \"uids\" \
                 in API group \"authentication.k8s.io\" at the cluster scope",
            ),
        ];
        for (refused, wanted) in refusals {
            assert_eq!(refused.unwrap_err().message, wanted);
        }
    }
}
