//! The objects of one kind, as people write them: right or wrong.

use anyhow::{Context, Result, bail, ensure};
use boathook_tests::{Ctx, DEADLINE};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

pub(crate) struct Kind {
    resource: ApiResource,
    api: Api<DynamicObject>,
}

impl Kind {
    /// One of Boathook's, when it is served.
    pub(crate) async fn installed<K: Resource<DynamicType = ()>>(ctx: &Ctx) -> Result<Self> {
        boathook_install::apply(&ctx.client(), boathook_install::NAMESPACE, DEADLINE).await?;
        let resource = ApiResource::erase::<K>(&());
        Ok(Self { api: Api::namespaced_with(ctx.client(), ctx.namespace(), &resource), resource })
    }

    async fn post(&self, name: &str, fields: &Value, dry_run: bool) -> kube::Result<DynamicObject> {
        let object = DynamicObject::new(name, &self.resource).data(fields.clone());
        self.api.create(&PostParams { dry_run, ..PostParams::default() }, &object).await
    }

    pub(crate) async fn create_for_good(&self, name: &str, spec: &Value) -> Result<()> {
        self.post(name, &json!({"spec": spec}), false).await?;
        Ok(())
    }

    /// Each of these specs is taken, in a dry run.
    pub(crate) async fn takes(&self, specs: &[Value]) -> Result<()> {
        for spec in specs {
            self.post("good", &json!({"spec": spec}), true).await.with_context(|| format!("refused: {spec}"))?;
        }
        Ok(())
    }

    /// Each of these specs is refused in these words, in a dry run.
    pub(crate) async fn refuses(&self, specs: &[(Value, &str)]) -> Result<()> {
        for (spec, words) in specs {
            self.refuses_fields(&json!({"spec": spec}), words).await?;
        }
        Ok(())
    }

    /// So is an object with these fields beside its metadata.
    pub(crate) async fn refuses_fields(&self, fields: &Value, words: &str) -> Result<()> {
        in_words(self.post("bad", fields, true).await, fields, words)
    }

    /// Each of these changes of an object is refused in these words.
    pub(crate) async fn keeps(&self, name: &str, words: &str, changes: &[Value]) -> Result<()> {
        for change in changes {
            in_words(self.patch(name, change).await, change, words)?;
        }
        Ok(())
    }

    async fn patch(&self, name: &str, spec: &Value) -> kube::Result<DynamicObject> {
        self.api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
    }

    pub(crate) async fn change(&self, name: &str, spec: &Value) -> Result<()> {
        self.patch(name, spec).await.with_context(|| format!("a change is refused that is allowed: {spec}"))?;
        Ok(())
    }

    /// In a dry run, what a controller writes.
    async fn patch_status(&self, name: &str, status: &Value) -> kube::Result<DynamicObject> {
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        self.api.patch_status(name, &dry, &Patch::Merge(json!({"status": status}))).await
    }

    pub(crate) async fn takes_status(&self, name: &str, status: &Value) -> Result<()> {
        self.patch_status(name, status)
            .await
            .with_context(|| format!("a status is refused that is allowed: {status}"))?;
        Ok(())
    }

    pub(crate) async fn refuses_status(&self, name: &str, status: &Value, words: &str) -> Result<()> {
        in_words(self.patch_status(name, status).await, status, words)
    }
}

/// What was written is invalid, and the API server says so in these words.
fn in_words<T>(answer: kube::Result<T>, written: &Value, words: &str) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 422 => {
            ensure!(status.message.contains(words), "{written} is refused in other words: {}", status.message);
            Ok(())
        }
        Err(error) => Err(error).with_context(|| format!("{written} failed in another way than by being invalid")),
        Ok(_) => bail!("{written} was taken, though it breaks a rule: {words}"),
    }
}
