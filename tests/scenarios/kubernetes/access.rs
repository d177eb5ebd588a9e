//! Who may do what: RBAC, seen by users that the scenario impersonates.

use anyhow::{Context, Result, bail, ensure};
use boathook_tests::{Ctx, DEADLINE, poll::Look};
use k8s_openapi::{
    api::{
        authorization::v1::{
            ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
            SubjectAccessReviewSpec,
        },
        core::v1::Pod,
        rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};

const USER: &str = "ishmael";

pub(crate) async fn a_user_without_rights_is_refused_until_a_role_allows_it(ctx: Ctx) -> Result<()> {
    let client = ctx.client_as(USER)?;
    let pods = Api::<Pod>::namespaced(client.clone(), ctx.namespace());
    let namespace = ctx.namespace();
    let refusal = |verb: &str, which: &str| {
        format!(
            "pods{which} is forbidden: User \"{USER}\" cannot {verb} resource \"pods\" in API group \"\" \
             in the namespace \"{namespace}\""
        )
    };

    assert_eq!(refused(pods.list(&ListParams::default()).await)?, refusal("list", ""));
    ensure!(!may(&ctx, "list").await?, "the review allows what was refused");
    ensure!(!may_self(&client, namespace, "list").await?, "the user's own review allows what was refused");

    ctx.create(&reader_role()).await?;
    ctx.create(&reader_binding()).await?;
    // The API server's own copy of the roles follows a moment later.
    ctx.poll_until(DEADLINE, "the new role binding is in force", async || {
        Ok(if may(&ctx, "list").await? { Look::Done(()) } else { Look::NotYet("not allowed".to_owned()) })
    })
    .await?;

    let listed = pods.list(&ListParams::default()).await.context("a list is refused that a role allows")?;
    ensure!(listed.items.is_empty(), "a pod is there that nobody made");
    ensure!(may_self(&client, namespace, "list").await?, "the user's own review refuses what is allowed");

    // The role allows this one verb in this one namespace, and no more.
    assert_eq!(refused(pods.delete("box", &DeleteParams::default()).await)?, refusal("delete", " \"box\""));
    ensure!(!may(&ctx, "delete").await?, "the review allows a verb that the role does not name");
    ensure!(!may_self(&client, "default", "list").await?, "a role reaches into another namespace");
    Ok(())
}

/// Kubernetes' words when it forbids.
fn refused<T>(answer: kube::Result<T>) -> Result<String> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 && status.reason == "Forbidden" => Ok(status.message),
        Err(error) => Err(error).context("failed in another way than by being forbidden"),
        Ok(_) => bail!("a user without rights was not refused"),
    }
}

/// Whether the user may do this to pods in the scenario's namespace, asked by someone else.
async fn may(ctx: &Ctx, verb: &str) -> Result<bool> {
    let spec = SubjectAccessReviewSpec {
        user: Some(USER.to_owned()),
        resource_attributes: Some(on_pods(ctx.namespace(), verb)),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let review = Api::all(ctx.client()).create(&PostParams::default(), &review).await?;
    Ok(review.status.context("a review without a status")?.allowed)
}

/// The same, asked by the user.
async fn may_self(client: &Client, namespace: &str, verb: &str) -> Result<bool> {
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(on_pods(namespace, verb)),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let review = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(review.status.context("a review without a status")?.allowed)
}

fn on_pods(namespace: &str, verb: &str) -> ResourceAttributes {
    ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        verb: Some(verb.to_owned()),
        resource: Some("pods".to_owned()),
        ..ResourceAttributes::default()
    }
}

fn reader_role() -> Role {
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["pods".to_owned()]),
        verbs: vec!["list".to_owned()],
        ..PolicyRule::default()
    };
    Role { metadata: named("reader"), rules: Some(vec![rule]) }
}

fn reader_binding() -> RoleBinding {
    let (group, user) = ("rbac.authorization.k8s.io".to_owned(), "User".to_owned());
    RoleBinding {
        metadata: named("reader"),
        role_ref: RoleRef { api_group: group.clone(), kind: "Role".to_owned(), name: "reader".to_owned() },
        subjects: Some(vec![Subject { api_group: Some(group), kind: user, name: USER.to_owned(), namespace: None }]),
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
