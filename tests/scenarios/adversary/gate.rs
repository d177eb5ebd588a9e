//! No ReplicaSet that is held for a hook grows before the hook has passed, whatever a user writes.
//!
//! Not tried, because the design or Kubernetes grants it: to delete a lifecycle, which lets go what it holds; to skip a
//! stage by `patch deploymentlifecycles`, which is recorded; to write `pods/status`, which is the kubelet's word that a
//! hook has passed; to grow a ReplicaSet in a second write, after its owner reference was removed or replaced, because the
//! gate holds only what a Deployment controls (docs/deployments.md says so).

use anyhow::{Context, Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{DeploymentLifecycleSpec, Stage},
    pod_notification::Executor,
    words::{GATE, GROUP, LIFECYCLE, VERSION},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        lifecycles::{hook, rollout, waits},
        rollouts::{Web, web},
    },
    measure::Measure,
    poll::Look,
    random::Random,
};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    attacks::{Attack, Kind, Place, Victim, change, of},
    attempts::{Attempt, all},
    doors::Field,
    grants,
    promises::used,
};

const REPLICA_SET: Kind = Kind { group: "apps", version: "v1", plural: "replicasets", kind: "ReplicaSet" };
const DEPLOYMENT_LIFECYCLE: Kind =
    Kind { group: GROUP, version: VERSION, plural: "deploymentlifecycles", kind: "DeploymentLifecycle" };

fn replicas() -> Field {
    (vec!["spec", "replicas"], json!(3))
}

fn gate(mark: &str) -> Field {
    (vec!["metadata", "labels", GATE], json!(mark))
}

pub(super) const ATTACKS: &[Attack] = &[
    change("more replicas", REPLICA_SET, Victim::None, |_| vec![replicas()]),
    change("gate opened", REPLICA_SET, Victim::None, |_| vec![gate("open.2")]),
    change("gate done", REPLICA_SET, Victim::None, |_| vec![gate("done.2")]),
    change("gate draining", REPLICA_SET, Victim::None, |_| vec![gate("draining.2.hash")]),
    change("gate opened with more replicas", REPLICA_SET, Victim::None, |_| vec![gate("open.2"), replicas()]),
    change("no lifecycle with more replicas", REPLICA_SET, Victim::None, |_| {
        vec![(vec!["metadata", "annotations", LIFECYCLE], Value::Null), replicas()]
    }),
    change("no owner with more replicas", REPLICA_SET, Victim::None, |_| {
        vec![(vec!["metadata", "ownerReferences"], Value::Null), replicas()]
    }),
    change("other annotations with more replicas", REPLICA_SET, Victim::None, |_| {
        let desired = "deployment.kubernetes.io/desired-replicas";
        vec![(vec!["metadata", "annotations", desired], json!("3")), replicas()]
    }),
    of("scale", change("more replicas by scale", REPLICA_SET, Victim::None, |_| vec![replicas()])),
    of(
        "status",
        change("gate opened by status", REPLICA_SET, Victim::None, |_| {
            vec![gate("open.2"), (vec!["status", "replicas"], json!(1))]
        }),
    ),
    of(
        "status",
        change("rollout recorded as rolling", DEPLOYMENT_LIFECYCLE, Victim::None, |_| {
            vec![(vec!["status", "rollout", "phase"], json!("Rolling"))]
        }),
    ),
    of(
        "status",
        change("other hooks recorded", DEPLOYMENT_LIFECYCLE, Victim::None, |_| {
            vec![(vec!["status", "rollout", "hooks"], json!({"post": hook("true")}))]
        }),
    ),
    of(
        "status",
        change("no rollout recorded", DEPLOYMENT_LIFECYCLE, Victim::None, |_| {
            vec![(vec!["status", "rollout"], Value::Null)]
        }),
    ),
    change("no pre hook", DEPLOYMENT_LIFECYCLE, Victim::None, |_| {
        vec![(vec!["spec", "pre"], Value::Null), (vec!["spec", "post"], hook("true"))]
    }),
    change("pre hook that passes", DEPLOYMENT_LIFECYCLE, Victim::None, |_| vec![(vec!["spec", "pre"], hook("true"))]),
];

pub(crate) async fn no_gate_opens_without_its_hook(ctx: Ctx, _: Executor) -> Result<()> {
    let (grants, count) = (grants::all(), Measure::from_environment()?.attempts());
    let (permitted, forbidden) = all(&grants, ATTACKS, Random::of_the_environment()?, count)?;
    for grant in used(&permitted, &forbidden) {
        grant.give(&ctx).await?;
    }
    for attempt in &forbidden {
        attempt.is_forbidden(&ctx).await?;
    }
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": waits()})).await?;
    // Hooks are recorded when a rollout begins: a change of the spec counts before that.
    let (of_specs, permitted): (Vec<_>, Vec<_>) = permitted.into_iter().partition(is_about_spec);
    let before = lifecycle_spec(&ctx, web.name()).await?;
    for attempt in &of_specs {
        let sent = attempt.send(&ctx, &Place::nowhere(), web.name()).await?;
        let after = lifecycle_spec(&ctx, web.name()).await?;
        ensure!(after == before, "the hooks were changed\n{}", attempt.describe("its hooks are others", &sent));
    }
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Pre).await?;
    let held = web.until_lifecycle("names the ReplicaSet that it holds", |object| {
        rollout(object).is_some_and(|rollout| rollout.replica_set.is_some())
    });
    let held = rollout(&held.await?).and_then(|rollout| rollout.replica_set.clone()).context("no ReplicaSet")?;
    let before = mark(&ctx, &held).await?;
    for attempt in &permitted {
        let is_set = attempt.attack.kind.plural == REPLICA_SET.plural;
        let object = if is_set { held.as_str() } else { web.name() };
        let sent = attempt.send(&ctx, &Place::nowhere(), object).await?;
        let after = mark(&ctx, &held).await?;
        // What an open gate has let in cannot be told from what the next attempt does.
        let what = || attempt.describe(&format!("`{held}` was {before:?} and is {after:?}"), &sent);
        ensure!(after == before, "the gate was opened\n{}", what());
    }
    web.release(Stage::Pre).await?;
    web.completed().await?;
    web.serves("v2", 1).await
}

fn is_about_spec(attempt: &Attempt<'_>) -> bool {
    attempt.attack.kind.plural == DEPLOYMENT_LIFECYCLE.plural && attempt.attack.subresource.is_none()
}

async fn lifecycle_spec(ctx: &Ctx, name: &str) -> Result<DeploymentLifecycleSpec> {
    Ok(ctx.api::<DeploymentLifecycle>().get(name).await?.spec)
}

/// What holds a ReplicaSet: its replicas and the gate's marks, once its Deployment controls it. An attempt may have removed
/// its owner reference.
async fn mark(ctx: &Ctx, set: &str) -> Result<(Option<i32>, Option<String>, Option<String>)> {
    let sets = ctx.api::<ReplicaSet>();
    let set = ctx.poll_until(DEADLINE, "its Deployment controls the ReplicaSet", async || {
        let set = sets.get(set).await.context("the held ReplicaSet is gone")?;
        let is_controlled = set.owner_references().iter().any(|owner| owner.controller == Some(true));
        Ok(if is_controlled { Look::Done(set) } else { Look::NotYet("it has no controller".to_owned()) })
    });
    let set = set.await?;
    let (label, annotation) = (set.labels().get(GATE).cloned(), set.annotations().get(LIFECYCLE).cloned());
    Ok((set.spec.and_then(|spec| spec.replicas), label, annotation))
}
