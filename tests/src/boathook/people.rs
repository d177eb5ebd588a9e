//! People with few rights, to see what they may do and in which words they are told what they may not.

use std::fmt::Debug;

use anyhow::{Context, Result, bail};
use k8s_openapi::{
    NamespaceResourceScope,
    api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Ctx, DEADLINE, poll::Look};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// A user of the cluster, who may do nothing in the scenario's namespace but what was granted.
pub struct Person {
    ctx: Ctx,
    name: String,
    client: Client,
}

impl Ctx {
    pub fn person(&self, name: &str) -> Result<Person> {
        Ok(Person { ctx: self.clone(), name: name.to_owned(), client: self.client_as(name)? })
    }
}

impl Person {
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of one kind in the scenario's namespace, as this person sees them.
    pub fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client(), self.ctx.namespace())
    }

    /// Lets the person do this in the scenario's namespace, under a name for the role that is new.
    pub async fn may(&self, role: &str, group: &str, resource: &str, verbs: &[&str]) -> Result<()> {
        let rule = PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            ..PolicyRule::default()
        };
        self.ctx.create(&Role { metadata: named(role), rules: Some(vec![rule]) }).await?;
        self.bind("Role", role).await
    }

    /// Binds a role that is there to the person.
    pub async fn bind(&self, kind: &str, role: &str) -> Result<()> {
        let subject = Subject {
            api_group: Some(RBAC_GROUP.to_owned()),
            kind: "User".to_owned(),
            name: self.name.clone(),
            namespace: None,
        };
        let binding = RoleBinding {
            metadata: named(role),
            role_ref: RoleRef { api_group: RBAC_GROUP.to_owned(), kind: kind.to_owned(), name: role.to_owned() },
            subjects: Some(vec![subject]),
        };
        self.ctx.create(&binding).await.map(drop)
    }

    pub async fn create<K: Written>(&self, object: &K) -> kube::Result<K> {
        self.api().create(&PostParams::default(), object).await
    }

    /// Asks for it, and has nothing done: whether it would be created.
    pub async fn try_to_create<K: Written>(&self, object: &K) -> kube::Result<K> {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        self.api().create(&params, object).await
    }

    pub async fn patch<K: Written>(&self, name: &str, patch: Value) -> kube::Result<K> {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    pub async fn patch_status<K: Written>(&self, name: &str, patch: Value) -> kube::Result<K> {
        self.api().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// Asks as soon as the API server knows that the person may.
    pub async fn in_force<T>(&self, ask: impl AsyncFn() -> kube::Result<T>) -> Result<T> {
        let what = format!("what `{}` was granted is in force", self.name);
        self.ctx
            .poll_until(DEADLINE, &what, async || match ask().await {
                Ok(answer) => Ok(Look::Done(answer)),
                Err(kube::Error::Api(status)) if status.code == 403 => Ok(Look::NotYet(status.message)),
                Err(error) => Err(error.into()),
            })
            .await
    }
}

/// In which words it was forbidden.
pub fn refusal<T: Debug>(answer: kube::Result<T>) -> Result<String> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(status.message),
        Err(error) => Err(error).context("failed in another way than by being forbidden"),
        Ok(done) => bail!("was not refused: {done:?}"),
    }
}

/// What people write.
pub trait Written:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize
{
}

impl<K> Written for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize
{
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
