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
    words::{GATE, GROUP, HOOK_OF_LABEL, LIFECYCLE, STAGE_LABEL, VERSION},
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
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};

use super::{
    attacks::{Attack, Kind, POD, Place, Victim, What, change, create, of},
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

fn label(key: &'static str, value: Value) -> Field {
    (vec!["metadata", "labels", key], value)
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
    create(
        "forged hook pod",
        POD,
        Victim::None,
        |place| {
            let container = json!({"name": "main", "image": "any", "command": ["true"]});
            json!({"metadata": {"labels": {HOOK_OF_LABEL: place.pod, STAGE_LABEL: "pre"}},
                "spec": {"restartPolicy": "Never", "containers": [container]}})
        },
        &[],
    ),
    change("hook pod hidden", POD, Victim::None, |_| vec![label(HOOK_OF_LABEL, Value::Null)]),
    of("status", change("hook pod hidden by status", POD, Victim::None, |_| vec![label(HOOK_OF_LABEL, Value::Null)])),
    change("hook pod of another stage", POD, Victim::None, |_| vec![label(STAGE_LABEL, json!("post"))]),
    // A merge patch or a JSON patch of the whole list changes more than the image, which Kubernetes refuses anyway.
    change("other image of a hook pod", POD, Victim::None, |_| {
        vec![(vec!["spec", "containers"], json!([{"name": "main", "image": "other"}]))]
    }),
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
    let hook_pod = web.hook_runs(Stage::Pre).await?.name_any();
    let held = web.until_lifecycle("names the ReplicaSet that it holds", |object| {
        rollout(object).is_some_and(|rollout| rollout.replica_set.is_some())
    });
    let held = rollout(&held.await?).and_then(|rollout| rollout.replica_set.clone()).context("no ReplicaSet")?;
    // First: another attempt may make Boathook end the hook pod and create another one.
    let (of_pods, permitted): (Vec<_>, Vec<_>) = permitted.into_iter().partition(is_about_pods);
    no_hook_pod_is_forged(&ctx, &hook_pod, web.name(), &of_pods).await?;
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

fn is_about_pods(attempt: &Attempt<'_>) -> bool {
    attempt.attack.kind.plural == POD.plural
}

/// `hook_pod` is the one that runs for the Deployment.
async fn no_hook_pod_is_forged(ctx: &Ctx, hook_pod: &str, deployment: &str, attempts: &[Attempt<'_>]) -> Result<()> {
    let place = Place { pod: deployment.to_owned(), ..Place::nowhere() };
    let before = hook_pods(ctx).await?;
    for attempt in attempts {
        let object = match attempt.attack.what {
            What::Create(_) => attempt.object(&place),
            What::Change(..) | What::Delete => hook_pod.to_owned(),
        };
        let sent = attempt.send(ctx, &place, &object).await?;
        let after = hook_pods(ctx).await?;
        let what = || attempt.describe(&format!("the hook pods were {before:?} and are {after:?}"), &sent);
        ensure!(after == before, "a hook pod was forged, hidden or changed\n{}", what());
    }
    Ok(())
}

async fn lifecycle_spec(ctx: &Ctx, name: &str) -> Result<DeploymentLifecycleSpec> {
    Ok(ctx.api::<DeploymentLifecycle>().get(name).await?.spec)
}

/// What Boathook trusts of hook pods: name and UID, stage, and images.
async fn hook_pods(ctx: &Ctx) -> Result<Vec<(String, Option<String>, Option<String>, Vec<String>)>> {
    let labelled = ListParams::default().labels(HOOK_OF_LABEL);
    let pods = ctx.api::<Pod>().list(&labelled).await?.items;
    let trusted = pods.into_iter().map(|pod| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let images = containers.filter_map(|container| container.image.clone()).collect();
        (pod.name_any(), pod.uid(), pod.labels().get(STAGE_LABEL).cloned(), images)
    });
    Ok(trusted.collect())
}

/// What holds a ReplicaSet: its replicas and the gate's marks, once its Deployment controls it. An attempt may have removed
/// its owner reference. Of the annotation only the key counts: an apply of null makes its value empty, until the Deployment
/// controller writes it again.
async fn mark(ctx: &Ctx, set: &str) -> Result<(Option<i32>, Option<String>, bool)> {
    let sets = ctx.api::<ReplicaSet>();
    let set = ctx.poll_until(DEADLINE, "its Deployment controls the ReplicaSet", async || {
        let set = sets.get(set).await.context("the held ReplicaSet is gone")?;
        let is_controlled = set.owner_references().iter().any(|owner| owner.controller == Some(true));
        Ok(if is_controlled { Look::Done(set) } else { Look::NotYet("it has no controller".to_owned()) })
    });
    let set = set.await?;
    let (label, annotation) = (set.labels().get(GATE).cloned(), set.annotations().contains_key(LIFECYCLE));
    Ok((set.spec.and_then(|spec| spec.replicas), label, annotation))
}
