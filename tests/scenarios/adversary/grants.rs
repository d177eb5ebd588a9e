//! The adversary's users: one for each role that is shipped for people, one for each single right, and one who may run
//! commands anyway, to see that the traces appear.
//!
//! The roles of Boathook's own processes are left out: a user with the controller's role is the controller.

use anyhow::{Context, Result, bail};
use boathook_api::{pod_notification::Executor, words::GROUP};
use boathook_install::roles;
use boathook_tests::{Ctx, DEADLINE, poll::Look};
use k8s_openapi::{
    api::{
        authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
        rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, api::PostParams};

use super::{
    attacks::{ATTACKS, PODS_EXEC, SNAPSHOT_GROUP},
    attempts::{doors_of, permits},
    gate,
};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

const VERBS: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

const RESOURCES: [(&str, &str); 25] = [
    (GROUP, "podnotifications"),
    (GROUP, "podnotifications/status"),
    (GROUP, "notifications"),
    (GROUP, "notifications/status"),
    (GROUP, "executionhooks"),
    (GROUP, "executionhooks/status"),
    (GROUP, "executionhooktemplates"),
    (GROUP, "applicationsnapshots"),
    (GROUP, "applicationsnapshots/status"),
    (GROUP, "deploymentlifecycles"),
    (GROUP, "deploymentlifecycles/status"),
    ("", "pods"),
    ("", "pods/status"),
    ("", "pods/binding"),
    ("", "pods/eviction"),
    ("", "pods/log"),
    ("", "bindings"),
    ("apps", "replicasets"),
    ("apps", "replicasets/status"),
    ("apps", "replicasets/scale"),
    ("apps", "deployments/status"),
    ("apps", "deployments/scale"),
    (SNAPSHOT_GROUP, "volumesnapshots"),
    (SNAPSHOT_GROUP, "volumesnapshots/status"),
    ("", "events"),
];

/// Kinds whose objects ask for `create pods/exec`.
const WITH_COMMANDS: [&str; 3] = ["podnotifications", "executionhooks", "executionhooktemplates"];

/// A verb on a resource of a group.
pub(super) type Right = (&'static str, &'static str, &'static str);

/// A user, and what the user may do in the scenario's namespace.
pub(super) struct Grant {
    pub(super) name: String,
    rules: Vec<PolicyRule>,
    /// May run commands in pods.
    pub(super) is_control: bool,
}

pub(super) fn all() -> Vec<Grant> {
    let shipped = [
        (roles::NOTIFIER, roles::notifier()),
        (roles::SNAPSHOTTER, roles::snapshotter()),
        (roles::DEPLOYER, roles::deployer()),
    ];
    let shipped = shipped.map(|(name, rules)| Grant { name: name.to_owned(), rules, is_control: false });
    let single = RESOURCES.into_iter().flat_map(|(group, resource)| {
        VERBS.map(|verb| Grant {
            name: format!("{verb}-{}", resource.replace('/', "-")),
            rules: vec![rule(verb, group, resource)],
            is_control: false,
        })
    });
    let (verb, group, resource) = PODS_EXEC;
    let mut rules = vec![rule(verb, group, resource)];
    rules.extend(WITH_COMMANDS.map(|resource| rule("create", GROUP, resource)));
    let control = Grant { name: "create-pods-exec".to_owned(), rules, is_control: true };
    shipped.into_iter().chain(single).chain([control]).collect()
}

/// Why no attempt uses a single right.
fn no_attempt(verb: &str, resource: &str) -> Option<&'static str> {
    let is_new = verb == "create";
    let is_change = verb == "update" || verb == "patch";
    let is_end = verb == "delete" || verb == "deletecollection";
    match resource {
        "pods/eviction" | "pods/binding" | "bindings" | "pods/log" if !is_new => {
            Some("the API server has no such verb")
        }
        "pods/log" => Some("the API server has no such verb"),
        "pods/eviction" => Some("an evicted pod is deleted"),
        "notifications/status" if is_change => Some("it holds counts and conditions, and runs nothing"),
        "deployments/status" if is_change => Some("the gate trusts no status of a Deployment"),
        "deployments/scale" if is_change => Some("a held version grows with its Deployment when it is let in"),
        subresource if subresource.contains('/') && !is_change => {
            (resource != "pods/binding").then_some("the API server has no such verb")
        }
        "events" => Some("no process reads Events"),
        "pods" if is_end => Some("a deleted pod takes what is frozen with it"),
        "notifications" | "executionhooktemplates" | "volumesnapshots" if is_end => {
            Some("what runs was recorded before")
        }
        "deploymentlifecycles" if is_new => {
            Some("a Deployment has one lifecycle; rollouts::access tries to create one")
        }
        "deploymentlifecycles" if is_end => Some("a deletion lets go what it holds, as documented"),
        "replicasets" if is_new => Some("the user's own is no version of the Deployment"),
        "replicasets" if is_end => Some("the Deployment controller creates it again, held"),
        _ => None,
    }
}

/// Every single right is used by an attempt, or is listed with the reason that it is not; never both.
pub(crate) async fn every_grant_is_used_or_explained(_: Ctx, _: Executor) -> Result<()> {
    let attacks = || ATTACKS.iter().chain(gate::ATTACKS);
    let uses =
        |grant: &Grant| attacks().any(|attack| doors_of(attack).iter().any(|door| permits(grant, attack, *door)));
    for grant in all() {
        let single = grant.name.split_once('-').filter(|_| grant.rules.len() == 1);
        let resource = grant.rules[0].resources.iter().flatten().next().map(String::as_str).unwrap_or_default();
        let reason = single.and_then(|(verb, _)| no_attempt(verb, resource));
        match (uses(&grant), reason) {
            (true, None) | (false, Some(_)) => {}
            (false, None) => bail!("no attempt uses the rights of `{}`: add one, or the reason", grant.name),
            (true, Some(reason)) => bail!("`{}` is used, though it is listed as unused: {reason}", grant.name),
        }
    }
    Ok(())
}

impl Grant {
    pub(super) fn allows(&self, (verb, group, resource): (&str, &str, &str)) -> bool {
        let lists = |list: &Option<Vec<String>>, item: &str| list.iter().flatten().any(|listed| listed == item);
        self.rules.iter().any(|rule| {
            lists(&rule.api_groups, group)
                && lists(&rule.resources, resource)
                && rule.verbs.iter().any(|listed| listed == verb)
        })
    }

    pub(super) fn user(&self) -> String {
        format!("adversary:{}", self.name)
    }

    /// Creates the role and its binding, and waits until the API server knows of them.
    pub(super) async fn give(&self, ctx: &Ctx) -> Result<()> {
        let metadata = || ObjectMeta { name: Some(format!("adversary-{}", self.name)), ..ObjectMeta::default() };
        ctx.create(&Role { metadata: metadata(), rules: Some(self.rules.clone()) }).await?;
        let (group, kind) = (RBAC_GROUP.to_owned(), "User".to_owned());
        let name = metadata().name.unwrap_or_default();
        ctx.create(&RoleBinding {
            metadata: metadata(),
            role_ref: RoleRef { api_group: group.clone(), kind: "Role".to_owned(), name },
            subjects: Some(vec![Subject { api_group: Some(group), kind, name: self.user(), namespace: None }]),
        })
        .await?;
        ctx.poll_until(DEADLINE, &format!("user `{}` has the rights", self.user()), async || {
            Ok(match self.is_in_force(ctx).await? {
                true => Look::Done(()),
                false => Look::NotYet("not allowed".to_owned()),
            })
        })
        .await
    }

    async fn is_in_force(&self, ctx: &Ctx) -> Result<bool> {
        let rule = self.rules.first().context("a grant without rules")?;
        let first = |list: &Option<Vec<String>>| list.iter().flatten().next().cloned();
        let resource = first(&rule.resources).context("a rule without resources")?;
        let (resource, subresource) = resource
            .split_once('/')
            .map_or((resource.as_str(), None), |(resource, sub)| (resource, Some(sub.to_owned())));
        let attributes = ResourceAttributes {
            namespace: Some(ctx.namespace().to_owned()),
            verb: rule.verbs.first().cloned(),
            group: first(&rule.api_groups),
            resource: Some(resource.to_owned()),
            subresource,
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(self.user()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let review = Api::all(ctx.client()).create(&PostParams::default(), &review).await?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}

fn rule(verb: &str, group: &str, resource: &str) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: vec![verb.to_owned()],
        ..PolicyRule::default()
    }
}
