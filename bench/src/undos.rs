//! How late undos run behind a queue of notifications: what is frozen must be thawed on time, whatever else is asked for.
//!
//! PodNotifications with an undo run first. Then many others are created at once, in the same pods, so that they are still
//! queued when the undos expire. An undo is late by the time from its expiry to the start of its process.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use boathook_api::{
    PodNotification,
    pod_notification::{PodNotificationSpec, State},
    words::{condition, reason},
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
    runtime::wait::{Condition, await_condition, conditions::is_deleted},
};
use serde_json::{Value, json};

use crate::{
    clusters::{Cluster, EITHER_EXECUTOR, on_each},
    connect,
    folder::Folder,
    pods::{COMMAND, Place},
    programs::Programs,
    say,
    table::{Unit, markdown, median, percentile},
};

struct Plan {
    pods: usize,
    /// Frozen at once: fewer than an executor runs at once.
    undos: usize,
    /// Created behind them.
    notifications: usize,
    /// The undos expire this many seconds after their handlers: by then all of them run, and the queue is there.
    expire_after: u32,
    rounds: usize,
}

const FULL: Plan = Plan { pods: 50, undos: 50, notifications: 1000, expire_after: 10, rounds: 3 };
const QUICK: Plan = Plan { pods: 5, undos: 5, notifications: 50, expire_after: 3, rounds: 1 };
/// As many as a small node takes.
const REAL: Plan = Plan { pods: 10, undos: 10, notifications: 200, expire_after: 10, rounds: 3 };

/// Creates under way at once.
const AT_ONCE: usize = 64;

const DEADLINE: Duration = Duration::from_secs(280);

/// What one round showed.
struct Seen {
    /// Milliseconds, of each undo.
    lateness: Vec<f64>,
    /// Notifications that had not ended when the last undo had.
    queued: usize,
}

pub(crate) async fn measure(quick: bool, programs: &Programs, folder: &Folder) -> Result<String> {
    on_each(EITHER_EXECUTOR, programs, folder, async |cluster| {
        let plan = match (quick, cluster.is_real) {
            (true, _) => QUICK,
            (false, true) => REAL,
            (false, false) => FULL,
        };
        one_cluster(&cluster, &plan).await
    })
    .await
}

async fn one_cluster(cluster: &Cluster, plan: &Plan) -> Result<String> {
    let Cluster { title, kubeconfig, image, is_real: _ } = cluster;
    say(&format!("{title}: starting {} pods", plan.pods));
    let place = Place::make(&connect(kubeconfig).await?, image, plan.pods).await?;
    let (mut lateness, mut queued) = (Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        let seen = one_round(&place, plan, round).await?;
        say(&format!("round {round}/{}: p99 {:.0} ms late", plan.rounds, percentile(&seen.lateness, 0.99)));
        lateness.extend(seen.lateness);
        queued.push(seen.queued as f64);
    }
    place.remove().await?;
    let shown = |figure: f64| Unit::Milliseconds.show(figure);
    let head = ["undos", "late, median", "late, p99 (aim: 1000 ms)", "late, most", "still queued after them"];
    let line = [
        lateness.len().to_string(),
        shown(median(&lateness)),
        shown(percentile(&lateness, 0.99)),
        shown(percentile(&lateness, 1.0)),
        format!("{:.0} of {}", median(&queued), plan.notifications),
    ];
    Ok(format!(
        "{title}, behind {} notifications:\n\n{}\n",
        plan.notifications,
        markdown(&[head.map(str::to_owned), line])
    ))
}

async fn one_round(place: &Place, plan: &Plan, round: usize) -> Result<Seen> {
    let api: Api<PodNotification> = Api::namespaced(place.client.clone(), &place.namespace);
    let action = json!({"exec": {"command": [COMMAND]}, "timeoutSeconds": 60});
    let undo = json!({"action": action, "afterSeconds": plan.expire_after});
    let frozen = |number: usize| json!({"podName": place.pod(number), "action": action, "undo": undo});
    let frozen = create(&api, &format!("frozen-{round}"), (0..plan.undos).map(frozen)).await?;
    until(&api, &frozen, |object| object.status.as_ref().is_some_and(|status| status.state == State::Succeeded))
        .await?;
    // As many as may run at once take so long that the others are still queued at the expiry.
    let slow = json!({"exec": {"command": ["sleep", "2"]}, "timeoutSeconds": 60});
    let queued = |number: usize| json!({"podName": place.pod(number), "action": slow, "startDeadlineSeconds": 280});
    let prefix = format!("queued-{round}");
    let behind = create(&api, &prefix, (0..plan.notifications).map(queued));
    let (_, undone) = tokio::try_join!(behind, until(&api, &frozen, is_undone))?;
    let lateness = undone.iter().map(|object| late(object, plan.expire_after)).collect::<Result<_>>()?;
    let all = api.list(&ListParams::default()).await.context("failed to list")?.items;
    let is_new = |object: &&PodNotification| object.status.as_ref().is_none_or(|status| status.state == State::New);
    let queued = all.iter().filter(is_new).count();
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.context("failed to tidy up")?;
    stream::iter(&all)
        .map(|object| async {
            let (name, uid) = object.metadata.name.as_deref().zip(object.metadata.uid.as_deref()).context("no name")?;
            let gone = await_condition(api.clone(), name, is_deleted(uid));
            tokio::time::timeout(DEADLINE, gone).await.with_context(|| format!("`{name}` did not go"))??;
            anyhow::Ok(())
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(Seen { lateness, queued })
}

async fn create(api: &Api<PodNotification>, prefix: &str, specs: impl Iterator<Item = Value>) -> Result<Vec<String>> {
    let one = |(number, spec): (usize, Value)| async move {
        let spec: PodNotificationSpec = serde_json::from_value(spec)?;
        let name = format!("{prefix}-{number}");
        let object = PodNotification::new(&name, spec);
        api.create(&PostParams::default(), &object).await.with_context(|| format!("failed to create `{name}`"))?;
        anyhow::Ok(name)
    };
    stream::iter(specs.enumerate().map(one)).buffer_unordered(AT_ONCE).try_collect().await
}

async fn until(
    api: &Api<PodNotification>,
    names: &[String],
    is_over: fn(&PodNotification) -> bool,
) -> Result<Vec<PodNotification>> {
    let one = |name: &String| {
        let (api, name) = (api.clone(), name.clone());
        async move {
            let over = await_condition(api, &name, ended(is_over));
            let object = tokio::time::timeout(DEADLINE, over).await;
            object.with_context(|| format!("`{name}` did not end after {DEADLINE:?}"))??.context("it is gone")
        }
    };
    stream::iter(names.iter().map(one)).buffer_unordered(AT_ONCE).try_collect().await
}

fn ended(is_over: fn(&PodNotification) -> bool) -> impl Condition<PodNotification> {
    move |object: Option<&PodNotification>| object.is_some_and(is_over)
}

fn is_undone(object: &PodNotification) -> bool {
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == condition::UNDONE && one.reason == reason::UNDO_SUCCEEDED)
}

/// Milliseconds from the expiry to the start of the undo, by its executor's clock.
fn late(object: &PodNotification, after: u32) -> Result<f64> {
    let status = object.status.as_ref().context("it has no status")?;
    let claimed = status.claim.as_ref().context("it was not claimed")?.time.0;
    let undo = status.containers.first().and_then(|container| container.undo.as_ref());
    let started = undo.and_then(|undo| undo.start_time.as_ref()).context("its undo has no start")?.0;
    let late = started.duration_since(claimed).as_secs_f64() - f64::from(after);
    // The executor counts from the moment before its claim is written.
    ensure!(late > -1.0, "an undo ran {:.1} s before its expiry", -late);
    Ok(late.max(0.0) * 1000.0)
}
