//! Nobody gains a right by writing it into an object: whoever writes something must have the rights it stands for.
//!
//! The API server is asked with a SubjectAccessReview for exactly the user who sent the request. If it cannot be asked,
//! the answer is no.

use std::time::Duration;

use boathook_api::words::{GROUP, VERSION};
use boathook_runtime::{
    error_class::chain,
    in_time, until_answered,
    webhook::{Ask, refuse},
};
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, UserInfo},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams, core::admission::AdmissionResponse};
use snafu::{OptionExt, ResultExt, Snafu};

/// Less than a webhook has, so that the person reads our words.
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(display("failed to ask the API server for the controller's user name"))]
    WhoAmI { source: kube::Error },
    #[snafu(display("the API server did not return the controller's user name"))]
    Nobody,
}

/// A right in the namespace of what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    /// To run commands, in this pod or in any.
    Exec { pod: Option<String> },
    /// To run what pods declare.
    Notify,
    /// To run what templates say.
    Hook,
    /// To run pods.
    RunPods,
    /// To give up the undo that this object owes, or that any object of its kind owes.
    Abandon { kind: AbandonedKind, name: Option<String> },
}

/// A kind whose objects owe undos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonedKind {
    PodNotification,
    ExecutionHook,
    ApplicationSnapshot,
}

impl Right {
    /// As a role would grant it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exec { .. } => "create pods/exec",
            Self::Notify => "create podnotifications",
            Self::Hook => "create executionhooks",
            Self::RunPods => "create pods",
            Self::Abandon { kind: AbandonedKind::PodNotification, .. } => "abandon podnotifications",
            Self::Abandon { kind: AbandonedKind::ExecutionHook, .. } => "abandon executionhooks",
            Self::Abandon { kind: AbandonedKind::ApplicationSnapshot, .. } => "abandon applicationsnapshots",
        }
    }

    /// What is not done without it, and what to do.
    fn consequence(&self) -> &'static str {
        match self {
            Self::Exec { .. } => {
                "to write, change or remove an inline action or undo: ask an administrator for that right, or name a \
                 notifier that the pod declares"
            }
            Self::Notify => {
                "to write, change or remove an object that runs a notifier: ask an administrator for that right"
            }
            Self::Hook => {
                "to run hooks around a snapshot: ask an administrator for that right, or create the snapshot without \
                 hooks"
            }
            Self::RunPods => "to write hooks, which run in new pods: ask an administrator for that right",
            Self::Abandon { .. } => {
                "to give up an undo, because the application may stay frozen: ask an administrator for that right, or \
                 omit the annotation `boathook.dev/abandon-undo`, and Boathook retries the undo until it succeeds"
            }
        }
    }

    /// To be asked for.
    pub fn attributes(&self, namespace: &str) -> ResourceAttributes {
        let (verb, resource) = self.name().split_once(' ').unwrap_or_default();
        let (resource, subresource) = match resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (resource, None),
        };
        let (group, version) = match self {
            Self::Exec { .. } | Self::RunPods => ("", "v1"),
            Self::Notify | Self::Hook | Self::Abandon { .. } => (GROUP, VERSION),
        };
        let name = match self {
            // A right to one object is enough for that object.
            Self::Exec { pod: name } | Self::Abandon { name, .. } => name.clone(),
            Self::Notify | Self::Hook | Self::RunPods => None,
        };
        ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            version: Some(version.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: subresource.map(str::to_owned),
            namespace: Some(namespace.to_owned()),
            name,
            ..ResourceAttributes::default()
        }
    }
}

/// Who may do what.
pub(super) struct Access {
    reviews: Api<SubjectAccessReview>,
    /// Boathook's own name: what it writes, it writes for an author who was checked.
    own: String,
}

impl Access {
    pub(super) async fn new(client: Client) -> Result<Self, Error> {
        let ask: Api<SelfSubjectReview> = Api::all(client.clone());
        let (params, nothing) = (PostParams::default(), SelfSubjectReview::default());
        let answer =
            until_answered(async || in_time(ask.create(&params, &nothing)).await).await.context(WhoAmISnafu)?;
        let own = answer.status.and_then(|status| status.user_info).and_then(|user| user.username);
        Ok(Self { reviews: Api::all(client), own: own.filter(|name| !name.is_empty()).context(NobodySnafu)? })
    }

    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// Whether who asks has all these rights; else the refusal names the first that is missing.
    pub(super) async fn check(&self, ask: &Ask, rights: &[Right]) -> Result<(), Box<AdmissionResponse>> {
        let user = ask.user_info.username.as_deref().unwrap_or_default();
        if user == self.own {
            return Ok(());
        }
        let namespace = ask.namespace.as_deref().unwrap_or_default();
        for right in rights {
            let name = right.name();
            let (code, reason, message) = match self.has(&ask.user_info, right.attributes(namespace)).await {
                Ok(true) => continue,
                Ok(false) => {
                    let consequence = right.consequence();
                    let message = format!(
                        "user `{user}` may not `{name}` in namespace `{namespace}`, which is required {consequence}"
                    );
                    (403, "Forbidden", message)
                }
                Err(why) => {
                    let question = format!("whether user `{user}` may `{name}` in namespace `{namespace}`");
                    (500, "InternalError", format!("failed to check {question}: {why}. Try again later"))
                }
            };
            return Err(Box::new(refuse(ask, code, reason, message)));
        }
        Ok(())
    }

    async fn has(&self, user: &UserInfo, right: ResourceAttributes) -> Result<bool, String> {
        let UserInfo { username, uid, groups, extra } = user.clone();
        let spec = SubjectAccessReviewSpec {
            user: username,
            uid,
            groups,
            extra,
            resource_attributes: Some(right),
            non_resource_attributes: None,
        };
        let question = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        match tokio::time::timeout(DEADLINE, self.reviews.create(&PostParams::default(), &question)).await {
            Ok(Ok(answer)) => Ok(answer.status.is_some_and(|status| status.allowed && status.denied != Some(true))),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err("the API server did not answer in time".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::test_asks::{ask, client};
    use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
    use kube::api::ObjectMeta;
    use serde_json::{Value, json};

    /// Whether this user may exec in `db-0`.
    async fn review(access: &Access, ask: &Ask) -> AdmissionResponse {
        let right = Right::Exec { pod: Some("db-0".to_owned()) };
        access.check(ask, &[right]).await.map_or_else(|refusal| *refusal, |()| AdmissionResponse::from(ask))
    }

    async fn grant(client: &Client, name: &str, subject: Subject, pods: Option<Vec<String>>) {
        let metadata = || ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let rule = PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["pods/exec".to_owned()]),
            verbs: vec!["create".to_owned()],
            resource_names: pods,
            ..PolicyRule::default()
        };
        let role = Role { metadata: metadata(), rules: Some(vec![rule]) };
        Api::namespaced(client.clone(), "default").create(&PostParams::default(), &role).await.unwrap();
        let role_ref = RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: name.to_owned(),
        };
        let binding = RoleBinding { metadata: metadata(), role_ref, subjects: Some(vec![subject]) };
        Api::namespaced(client.clone(), "default").create(&PostParams::default(), &binding).await.unwrap();
    }

    fn subject(kind: &str, name: &str) -> Subject {
        let api_group = Some("rbac.authorization.k8s.io".to_owned());
        Subject { api_group, kind: kind.to_owned(), name: name.to_owned(), namespace: None }
    }

    fn writes(user: &str, groups: &[&str]) -> Ask {
        let mut ask = ask("CREATE", None, None);
        ask.user_info.username = Some(user.to_owned());
        ask.user_info.groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        ask
    }

    #[tokio::test]
    async fn who_has_the_right_passes_and_others_are_told_what_they_lack() {
        let client = client().await;
        let access = Access::new(client.clone()).await.unwrap();
        let refused = review(&access, &writes("jane", &["devs"])).await;
        assert!(!refused.allowed);
        assert_eq!((refused.result.code, refused.result.reason.as_str()), (403, "Forbidden"));
        let message = refused.result.message;
        assert!(
            message.contains("`jane`") && message.contains("pods/exec") && message.contains("`default`"),
            "{message}"
        );

        grant(&client, "devs", subject("Group", "devs"), None).await;
        assert!(review(&access, &writes("jane", &["devs"])).await.allowed, "by her group");
        grant(&client, "db-0", subject("User", "joe"), Some(vec!["db-0".to_owned()])).await;
        assert!(review(&access, &writes("joe", &[])).await.allowed, "into this very pod");
        grant(&client, "db-1", subject("User", "jim"), Some(vec!["db-1".to_owned()])).await;
        assert!(!review(&access, &writes("jim", &[])).await.allowed, "into another pod");
        let mut elsewhere = writes("jane", &["devs"]);
        elsewhere.namespace = Some("kube-system".to_owned());
        assert!(!review(&access, &elsewhere).await.allowed, "in another namespace");
        for (right, name) in [(Right::Notify, "podnotifications"), (Right::Hook, "executionhooks")] {
            let exec_too = [Right::Exec { pod: None }, right];
            let refused = access.check(&writes("jane", &["devs"]), &exec_too).await.unwrap_err();
            assert!(refused.result.message.contains(&format!("`create {name}`")), "{}", refused.result.message);
        }
    }

    #[tokio::test]
    async fn boathook_itself_passes_and_without_an_answer_nobody_else_does() {
        let access = Access { reviews: Api::all(unreachable()), own: "boathook".to_owned() };
        assert!(review(&access, &writes("boathook", &[])).await.allowed);
        let refused = review(&access, &writes("system:admin", &["system:masters"])).await;
        assert!(!refused.allowed);
        assert_eq!(refused.result.code, 500);
        assert!(refused.result.message.contains("failed to check"), "{}", refused.result.message);
    }

    #[tokio::test]
    async fn review_without_a_clear_yes_is_a_no() {
        for status in [None, Some(json!({"allowed": false})), Some(json!({"allowed": true, "denied": true}))] {
            let reviews = Api::all(answering(status.clone()));
            let access = Access { reviews, own: "boathook".to_owned() };
            let refused = review(&access, &writes("jane", &[])).await;
            assert_eq!((refused.allowed, refused.result.code), (false, 403), "{status:?}");
        }
        let access =
            Access { reviews: Api::all(answering(Some(json!({"allowed": true})))), own: "boathook".to_owned() };
        assert!(review(&access, &writes("jane", &[])).await.allowed);
    }

    /// An API server that says this about every SubjectAccessReview.
    fn answering(status: Option<Value>) -> Client {
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let review = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
                "status": status});
            async move {
                http::Response::builder().status(201).body(kube::client::Body::from(review.to_string().into_bytes()))
            }
        });
        Client::new(service, "default")
    }

    fn unreachable() -> Client {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("nobody there"))
        });
        Client::new(service, "default")
    }
}
