//! The answers here are those of Kubernetes 1.35 to the same questions about the same objects.

use super::super::bootstrap;
use super::*;

fn binding(name: &str, role_kind: &str, role: &str, subjects: Value) -> Value {
    json!({"kind": "RoleBinding", "metadata": {"name": name, "namespace": "shop"},
        "roleRef": {"kind": role_kind, "name": role}, "subjects": subjects})
}

/// jane and the account bot read; jane's second role is gone; adm is admin of the namespace; devs may edit.
fn rules() -> Rules {
    let mut objects = bootstrap::objects();
    let user = |name: &str| json!({"kind": "User", "name": name});
    objects.extend([
        json!({"kind": "Role", "metadata": {"name": "reader", "namespace": "shop"}, "rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["get", "update"]},
            {"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["get"]},
        ]}),
        binding("reader", "Role", "reader", json!([user("jane"), {"kind": "ServiceAccount", "name": "bot"}])),
        binding("gone", "Role", "gone", json!([user("jane")])),
        binding("gone2", "ClusterRole", "goneCluster", json!([user("tim")])),
        binding("admins", "ClusterRole", "admin", json!([user("adm")])),
        binding("editors", "ClusterRole", "edit", json!([{"kind": "Group", "name": "devs"}])),
    ]);
    Rules::build(&objects)
}

const WHO: [(&str, &[&str]); 5] =
    [("jane", &[]), ("system:serviceaccount:shop:bot", &[]), ("adm", &[]), ("x", &["devs"]), ("x", &[])];

fn resource(verb: &'static str, resource: &'static str) -> Attributes<'static> {
    Attributes { verb, resource, namespace: "shop", ..Default::default() }
}

fn path(path: &'static str) -> Attributes<'static> {
    Attributes { verb: "get", path, ..Default::default() }
}

#[test]
fn access_is_what_a_real_cluster_grants() {
    let apps = |verb, name| Attributes { group: "apps", name, ..resource(verb, "deployments") };
    let (yes, no) = (true, false);
    let table = [
        (resource("get", "pods"), [yes, yes, yes, yes, no]),
        (Attributes { subresource: "log", ..resource("get", "pods") }, [yes, yes, yes, yes, no]),
        (apps("update", "web"), [yes, yes, yes, yes, no]),
        (apps("get", "other"), [no, no, yes, yes, no]),
        (apps("list", ""), [no, no, yes, yes, no]),
        (Attributes { subresource: "scale", ..apps("get", "any") }, [yes, yes, yes, yes, no]),
        (resource("list", "secrets"), [no, no, yes, yes, no]),
        (Attributes { subresource: "exec", ..resource("create", "pods") }, [no, no, yes, yes, no]),
        (Attributes { namespace: "other", ..resource("get", "pods") }, [no; 5]),
        (Attributes { namespace: "", ..resource("get", "pods") }, [no; 5]),
        (Attributes { group: "rbac.authorization.k8s.io", ..resource("create", "roles") }, [no, no, yes, no, no]),
        (path("/version"), [yes; 5]),
        (path("/apis/foo"), [yes; 5]),
        (path("/metrics"), [no; 5]),
        (Attributes { group: "authentication.k8s.io", ..resource("create", "selfsubjectreviews") }, [yes; 5]),
        (resource("impersonate", "serviceaccounts"), [no, no, yes, yes, no]),
    ];
    let rules = rules();
    for (request, wanted) in table {
        let answers = WHO.map(|(name, groups)| rules.authorize(&User::authenticated(name, groups), &request).allowed);
        assert_eq!(answers, wanted, "{request:?}");
    }
}

#[test]
fn a_refusal_names_the_role_that_is_not_there() {
    let rules = rules();
    let message = |user, request| rules.check(&User::authenticated(user, &[]), &request).unwrap_err().message;
    assert_eq!(
        message("tim", resource("list", "pods")),
        "pods is forbidden: User \"tim\" cannot list resource \"pods\" in API group \"\" in the namespace \"shop\": \
         RBAC: clusterrole.rbac.authorization.k8s.io \"goneCluster\" not found"
    );
    assert_eq!(
        message("tim", Attributes { namespace: "", ..resource("list", "nodes") }),
        "nodes is forbidden: User \"tim\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    );
}

#[test]
fn anonymous_may_see_the_version_only() {
    let rules = rules();
    assert!(rules.authorize(&User::anonymous(), &path("/version")).allowed);
    let status = rules.check(&User::anonymous(), &path("/api")).unwrap_err();
    assert_eq!(status.message, "forbidden: User \"system:anonymous\" cannot get path \"/api\"");
}

fn review(spec: Value) -> Value {
    subject_access_review(&rules(), json!({"spec": spec})).unwrap()["status"].clone()
}

#[test]
fn a_subject_access_review_says_what_allowed_it() {
    let pods = |verb| json!({"namespace": "shop", "verb": verb, "resource": "pods"});
    let allowed = |reason: &str| json!({"allowed": true, "reason": format!("RBAC: allowed by {reason}")});
    assert_eq!(
        review(json!({"user": "jane", "resourceAttributes": pods("get")})),
        allowed("RoleBinding \"reader/shop\" of Role \"reader\" to User \"jane\"")
    );
    assert_eq!(
        review(json!({"user": "x", "groups": ["devs"], "resourceAttributes": pods("delete")})),
        allowed("RoleBinding \"editors/shop\" of ClusterRole \"edit\" to Group \"devs\"")
    );
    assert_eq!(
        review(json!({"user": "system:serviceaccount:shop:bot", "resourceAttributes": pods("get")})),
        allowed("RoleBinding \"reader/shop\" of Role \"reader\" to ServiceAccount \"bot/shop\"")
    );
    assert_eq!(
        review(
            json!({"groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/version", "verb": "get"}})
        ),
        allowed(
            "ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\""
        )
    );
    assert_eq!(
        review(json!({"user": "x", "groups": ["system:masters"], "resourceAttributes": pods("delete")})),
        json!({"allowed": true})
    );
    assert_eq!(
        review(json!({"user": "jane", "resourceAttributes": pods("delete")})),
        json!({"allowed": false, "reason": "RBAC: role.rbac.authorization.k8s.io \"gone\" not found"})
    );
    assert_eq!(
        review(json!({"user": "x", "nonResourceAttributes": {"path": "/x", "verb": "get"}})),
        json!({"allowed": false})
    );
}

#[test]
fn malformed_reviews_are_refused_as_kubernetes_refuses_them() {
    let rules = rules();
    let message = |spec: Value| subject_access_review(&rules, json!({"spec": spec})).unwrap_err().message;
    let start = ".authorization.k8s.io \"\" is invalid: ";
    assert_eq!(
        message(json!({"resourceAttributes": {"verb": "x"}})),
        format!("{start}spec.user: Invalid value: \"\": at least one of user or group must be specified")
    );
    assert_eq!(
        message(json!({"user": "x"})),
        format!(
            "{start}spec.resourceAttributes: Invalid value: null: \
             exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )
    );
    let both = json!({"user": "x", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/x", "verb": "get"}});
    assert_eq!(
        message(both),
        format!(
            "{start}spec.nonResourceAttributes: Invalid value: {{\"Path\":\"/x\",\"Verb\":\"get\"}}: \
             cannot be specified in combination with resourceAttributes"
        )
    );
}

#[test]
fn my_own_rights_are_reviewed_for_me() {
    let spec = json!({"resourceAttributes": {"namespace": "shop", "verb": "get", "resource": "pods"}});
    let ask = |user: &str| {
        self_subject_access_review(&rules(), &User::authenticated(user, &[]), json!({"spec": spec})).unwrap()
    };
    assert_eq!(ask("jane")["status"]["allowed"], true);
    assert_eq!(ask("nobody")["status"], json!({"allowed": false}));
    assert_eq!(ask("jane")["kind"], "SelfSubjectAccessReview");
}

#[test]
fn my_rules_are_listed() {
    let jane = User::authenticated("jane", &[]);
    let answered = self_subject_rules_review(&rules(), &jane, &json!({"spec": {"namespace": "shop"}})).unwrap();
    let status = &answered["status"];
    assert_eq!(status["evaluationError"], "role.rbac.authorization.k8s.io \"gone\" not found");
    assert_eq!(status["resourceRules"].as_array().unwrap().len(), 5);
    assert_eq!(status["nonResourceRules"].as_array().unwrap().len(), 2);
    let wanted = json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"]});
    assert_eq!(status["resourceRules"][4], wanted);
    let refused = self_subject_rules_review(&rules(), &jane, &json!({"spec": {}})).unwrap_err();
    assert_eq!(refused.message, "no namespace on request");
}

#[test]
fn whoami_shows_name_and_groups() {
    let answered = self_subject_review(&User::authenticated("jane", &["devs"]), 1_794_779_629);
    assert_eq!(
        answered,
        json!({
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": "2026-11-15T21:53:49Z"},
            "status": {"userInfo": {"username": "jane", "groups": ["devs", "system:authenticated"]}},
        })
    );
}
