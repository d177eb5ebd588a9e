//! Rollouts with hooks: a new version that comes in stage by stage, and one that is vetoed while the old one serves.
//!
//! Versions and hooks write a line each into one file; so the file says in which order everything happened.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Rollout, RolloutPhase, StageState},
    words::{ABORT_PREFIX, condition},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{AttachParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::{
    Story,
    objects::{create, of, reached},
};
use crate::output::plain::in_words;

/// The Deployment and its lifecycle.
pub(super) const NAME: &str = "shop";

/// The claim with the file that everything writes into.
const CLAIM: &str = "order";

/// What a version does until it is asked to end.
const SERVE: &str = "trap 'echo $VERSION ends >> order/of; exit' TERM; \
    echo $VERSION starts >> order/of; while :; do sleep 0.1; done";

/// More than is ever written there.
const CAP: u64 = 1 << 16;

/// What is written, in this order, when `v2` takes the place of `v1`.
const ORDER: [&str; 6] = ["v1 starts", "pre of v2", "v1 ends", "mid of v2", "v2 starts", "post of v2"];

/// Rolls out `v2`, then tries a version that its own pre does not let in.
pub(super) async fn with_hooks(story: &mut Story) -> Result<String> {
    let client = story.client();
    story.teller.say("Deployment `shop` runs v1; DeploymentLifecycle `shop` has a hook for pre, mid and post")?;
    create::<PersistentVolumeClaim>(&client, claim()).await?;
    create::<Deployment>(&client, deployment("v1")).await?;
    story.teller.wait("waiting for v1", reached::<Deployment>(&client, NAME, is_available)).await?;
    create::<DeploymentLifecycle>(&client, lifecycle()).await?;
    let adopted = reached(&client, NAME, is_adopted);
    let before = story.teller.wait("waiting until it is looked after", adopted).await?;

    let after = story.roll_out("v2", &before).await?;
    let rollout = ended(&after).context("it is not over")?;
    ensure!(rollout.phase == RolloutPhase::Complete, "v2 is {}{}", in_words(&rollout.phase), what_failed(rollout));
    let order = written(&client).await?;
    ensure!(order == ORDER, "it went in another order: {}", order.join(", "));
    story.teller.say(&format!("v2 is rolled out: {}", ORDER.join(", ")))?;

    let serving = only_pod(&client).await?;
    let after = story.roll_out("bad", &after).await?;
    let rollout = ended(&after).context("it is not over")?;
    ensure!(rollout.phase == RolloutPhase::Aborted, "`bad` is {}{}", in_words(&rollout.phase), what_failed(rollout));
    let order = written(&client).await?;
    ensure!(order.last().is_some_and(|last| last == "pre of bad"), "it went on after pre: {}", order.join(", "));
    let now = only_pod(&client).await?;
    ensure!(now.uid() == serving.uid(), "the pod of v2 is another one");
    let stopped = reached::<Deployment>(&client, NAME, is_stopped);
    story.teller.wait("waiting until `kubectl rollout status` would fail", stopped).await?;
    story.teller.say_odd("`bad` is vetoed by its own pre, and `kubectl rollout status` fails; v2 serves as before")?;
    Ok("each hook once, at its stage; a bad version vetoed while v2 served".to_owned())
}

impl Story {
    /// Changes the template, and waits for the end of that rollout.
    async fn roll_out(&mut self, version: &str, before: &DeploymentLifecycle) -> Result<DeploymentLifecycle> {
        let client = self.client();
        self.teller.say(&format!("changes the template: version {version}"))?;
        let spec = deployment(version)["spec"].clone();
        let changed = of::<Deployment>(&client);
        let changed = changed.patch(NAME, &PatchParams::default(), &Patch::Strategic(json!({"spec": spec}))).await;
        changed.with_context(|| format!("failed to change Deployment `{NAME}`"))?;
        let known = ended(before).map(|rollout| rollout.start_time.clone());
        let is_over =
            |object: &DeploymentLifecycle| ended(object).is_some_and(|now| Some(&now.start_time) != known.as_ref());
        self.teller.wait(&format!("rolling out {version}"), reached(&client, NAME, is_over)).await
    }
}

/// A new version is held from now on.
fn is_adopted(object: &DeploymentLifecycle) -> bool {
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|one| one.type_ == condition::COMPLETE && one.status == "True")
}

/// The rollout that is recorded, if it is over.
fn ended(object: &DeploymentLifecycle) -> Option<&Rollout> {
    let rollout = object.status.as_ref()?.rollout.as_ref()?;
    rollout.phase.is_terminal().then_some(rollout)
}

/// The stage that failed, and why, if one did.
fn what_failed(rollout: &Rollout) -> String {
    let failed = rollout.stages.iter().find(|record| record.state == StageState::Failed);
    failed
        .map(|record| format!(": {}: {}", record.stage, record.message.as_deref().unwrap_or_default()))
        .unwrap_or_default()
}

fn is_available(deployment: &Deployment) -> bool {
    deployment.status.as_ref().is_some_and(|status| status.available_replicas == Some(1))
}

fn is_stopped(deployment: &Deployment) -> bool {
    let conditions = deployment.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| {
        let ours = one.message.as_ref().is_some_and(|message| message.starts_with(ABORT_PREFIX));
        one.type_ == condition::PROGRESSING && one.status == "False" && ours
    })
}

async fn only_pod(client: &Client) -> Result<Pod> {
    let pods: Api<Pod> = of(client);
    let found = pods.list(&ListParams::default().labels(&format!("app={NAME}"))).await;
    let mut found = found.context("failed to list the pods of the Deployment")?.items;
    ensure!(found.len() == 1, "there are {} pods", found.len());
    Ok(found.remove(0))
}

/// The lines of the file.
async fn written(client: &Client) -> Result<Vec<String>> {
    let pod = only_pod(client).await?.name_any();
    let pods: Api<Pod> = of(client);
    let mut exec = pods.exec(&pod, ["cat", "order/of"], &AttachParams::default()).await.context("failed to ask v2")?;
    let mut said = String::new();
    let stdout = exec.stdout().context("the exec has no output")?;
    stdout.take(CAP).read_to_string(&mut said).await.context("failed to read the order")?;
    Ok(said.lines().map(str::to_owned).collect())
}

fn claim() -> Value {
    json!({
        "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    })
}

fn deployment(version: &str) -> Value {
    let container = json!({
        "name": NAME,
        "image": "host",
        "env": [{"name": "VERSION", "value": version}],
        "command": ["sh", "-c", SERVE],
        // It serves when it has said so.
        "readinessProbe": {
            "exec": {"command": ["sh", "-c", "grep -qx \"$VERSION starts\" order/of"]},
            "periodSeconds": 1,
            "timeoutSeconds": 10,
        },
        "volumeMounts": [{"name": "order", "mountPath": "/order"}],
    });
    json!({
        "metadata": {"name": NAME},
        "spec": {
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "automountServiceAccountToken": false,
                    "containers": [container],
                    "volumes": [{"name": "order", "persistentVolumeClaim": {"claimName": CLAIM}}],
                },
            },
        },
    })
}

fn lifecycle() -> Value {
    let hook = |line: &str| {
        let command = ["sh", "-c", line];
        json!({"failurePolicy": "Abort", "execNewPod": {"containerName": NAME, "command": command, "volumes": ["order"]}})
    };
    json!({
        "metadata": {"name": NAME},
        "spec": {
            "pre": hook("echo pre of $VERSION >> order/of; [ $VERSION != bad ]"),
            "mid": hook("echo mid of $VERSION >> order/of"),
            "post": hook("echo post of $VERSION >> order/of"),
        },
    })
}
