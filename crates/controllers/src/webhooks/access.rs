//! Who writes a command into a PodNotification must be allowed to run it there anyway: `create pods/exec`.
//!
//! The API server is asked with a SubjectAccessReview for exactly the user who sent the request. If it cannot be asked,
//! the answer is no.

use std::time::Duration;

use boathook_runtime::{
    error_class::chain,
    webhook::{Ask, refuse},
};
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, UserInfo},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams, core::admission::AdmissionResponse};
use snafu::{OptionExt, ResultExt, Snafu};

/// Both less than a webhook has, so that the person reads our words.
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(display("failed to ask the API server who we are"))]
    WhoAmI { source: kube::Error },
    #[snafu(display("failed to ask the API server who we are: no answer in time"))]
    NoAnswer,
    #[snafu(display("the API server does not say who we are"))]
    Nobody,
}

/// The check of whoever writes an inline action or undo.
pub struct InlineActions {
    reviews: Api<SubjectAccessReview>,
    /// Boathook's own name: what it writes, it writes for an author who was checked.
    own: String,
}

impl InlineActions {
    pub async fn new(client: Client) -> Result<Self, Error> {
        let ask: Api<SelfSubjectReview> = Api::all(client.clone());
        let (params, nothing) = (PostParams::default(), SelfSubjectReview::default());
        let answer = tokio::time::timeout(DEADLINE, ask.create(&params, &nothing)).await;
        let answer = answer.ok().context(NoAnswerSnafu)?.context(WhoAmISnafu)?;
        let own = answer.status.and_then(|status| status.user_info).and_then(|user| user.username);
        Ok(Self { reviews: Api::all(client), own: own.filter(|name| !name.is_empty()).context(NobodySnafu)? })
    }

    pub async fn review(&self, ask: &Ask) -> AdmissionResponse {
        let user = ask.user_info.username.as_deref().unwrap_or_default();
        if user == self.own {
            return AdmissionResponse::from(ask);
        }
        let namespace = ask.namespace.as_deref().unwrap_or_default();
        match self.may_exec(&ask.user_info, namespace, pod_of(ask)).await {
            Ok(true) => AdmissionResponse::from(ask),
            Ok(false) => refuse(
                ask,
                403,
                "Forbidden",
                format!(
                    "user `{user}` may not `create pods/exec` in namespace `{namespace}`, and so may not write an \
                     action or undo of their own: ask for that right, or name a notifier that the pod declares"
                ),
            ),
            Err(why) => refuse(
                ask,
                500,
                "InternalError",
                format!(
                    "cannot find out whether user `{user}` may `create pods/exec` in namespace `{namespace}`: {why}"
                ),
            ),
        }
    }

    async fn may_exec(&self, user: &UserInfo, namespace: &str, pod: Option<String>) -> Result<bool, String> {
        let UserInfo { username, uid, groups, extra } = user.clone();
        let right = ResourceAttributes {
            verb: Some("create".to_owned()),
            group: Some(String::new()),
            version: Some("v1".to_owned()),
            resource: Some("pods".to_owned()),
            subresource: Some("exec".to_owned()),
            namespace: Some(namespace.to_owned()),
            // A right to one pod is enough for that pod.
            name: pod,
            ..ResourceAttributes::default()
        };
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

fn pod_of(ask: &Ask) -> Option<String> {
    Some(ask.object.as_ref()?.data.get("spec")?.get("podName")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use boathook_apiserver::{
        access::{Tokens, User},
        api::Api as Server,
        server,
        store::Store,
    };
    use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
    use kube::api::ObjectMeta;
    use serde_json::json;

    use super::*;
    use crate::webhooks::test_asks::ask;

    async fn client() -> Client {
        let admin = User::authenticated("admin", &["system:masters"]);
        let tokens = Tokens::new(&[7; 32], [("admin".to_owned(), admin)]);
        server::client(Server::new(Store::in_memory(), tokens).await.unwrap(), "admin", "test")
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
        let spec = json!({"podName": "db-0", "action": {"exec": {"command": ["sync"]}}});
        let mut ask = ask("CREATE", Some(json!({"metadata": {"name": "a"}, "spec": spec})), None);
        ask.user_info.username = Some(user.to_owned());
        ask.user_info.groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        ask
    }

    #[tokio::test]
    async fn who_may_exec_passes_and_others_are_told_the_right_they_lack() {
        let client = client().await;
        let webhook = InlineActions::new(client.clone()).await.unwrap();
        let refused = webhook.review(&writes("jane", &["devs"])).await;
        assert!(!refused.allowed);
        assert_eq!((refused.result.code, refused.result.reason.as_str()), (403, "Forbidden"));
        let message = refused.result.message;
        assert!(
            message.contains("`jane`") && message.contains("pods/exec") && message.contains("`default`"),
            "{message}"
        );

        grant(&client, "devs", subject("Group", "devs"), None).await;
        assert!(webhook.review(&writes("jane", &["devs"])).await.allowed, "by her group");
        grant(&client, "db-0", subject("User", "joe"), Some(vec!["db-0".to_owned()])).await;
        assert!(webhook.review(&writes("joe", &[])).await.allowed, "into this very pod");
        grant(&client, "db-1", subject("User", "jim"), Some(vec!["db-1".to_owned()])).await;
        assert!(!webhook.review(&writes("jim", &[])).await.allowed, "into another pod");
        let mut elsewhere = writes("jane", &["devs"]);
        elsewhere.namespace = Some("kube-system".to_owned());
        assert!(!webhook.review(&elsewhere).await.allowed, "in another namespace");
    }

    #[tokio::test]
    async fn boathook_itself_passes_and_without_an_answer_nobody_else_does() {
        let webhook = InlineActions { reviews: Api::all(unreachable()), own: "boathook".to_owned() };
        assert!(webhook.review(&writes("boathook", &[])).await.allowed);
        let refused = webhook.review(&writes("system:admin", &["system:masters"])).await;
        assert!(!refused.allowed);
        assert_eq!(refused.result.code, 500);
        assert!(refused.result.message.contains("cannot find out"), "{}", refused.result.message);
    }

    fn unreachable() -> Client {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("nobody there"))
        });
        Client::new(service, "default")
    }
}
