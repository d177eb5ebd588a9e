//! Notification: who is told, how many at once, what is counted, and what goes with it.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    Notification, PodNotification,
    notification::NotificationStatus,
    pod_notification::{Executor, State},
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        conditions,
        notifications::{state, status},
        recording::{record, recorder},
    },
    pods::PodBuilder,
    watch::Change,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

fn notification(name: &str, more: Value) -> Result<Notification> {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}, "notifier": "reload"});
    for (key, value) in more.as_object().context("fields")? {
        spec[key] = value.clone();
    }
    let (version, kind) = ("boathook.dev/v1alpha1", "Notification");
    Ok(serde_json::from_value(json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}))?)
}

/// A pod that is selected, and records that it was told.
fn web(ctx: &Ctx, name: &str) -> PodBuilder {
    recorder(ctx, name).label("app", "web").notifier("main", "reload", &record("reloaded"))
}

async fn run_webs<const N: usize>(ctx: &Ctx, names: [&str; N]) -> Result<()> {
    for name in names {
        ctx.create(&web(ctx, name).build()).await?;
    }
    for name in names {
        ctx.ready(name).await?;
    }
    Ok(())
}

fn counts(object: &Notification) -> (i32, i32) {
    let NotificationStatus { succeeded_count, failed_count, .. } = object.status.clone().unwrap_or_default();
    (succeeded_count, failed_count)
}

/// Status and reason of the condition of this type.
fn condition_of(object: &Notification, kind: &str) -> Option<(String, String)> {
    conditions::said(&object.status.as_ref()?.conditions, kind)
}

fn is_complete(object: &Notification) -> bool {
    condition_of(object, condition::COMPLETE).is_some_and(|(status, _)| status == "True")
}

/// Waits until it is complete.
async fn complete(ctx: &Ctx, name: &str) -> Result<Notification> {
    ctx.watch_until(DEADLINE, name, "is complete", is_complete).await
}

pub(crate) async fn every_running_pod_is_told_and_those_that_come_later_too(ctx: Ctx, _: Executor) -> Result<()> {
    run_webs(&ctx, ["first", "second"]).await?;
    ctx.run_pod(recorder(&ctx, "other").notifier("main", "reload", &record("reloaded")).build()).await?;
    ctx.create(&notification("reload", json!({}))?).await?;
    ctx.watch_until::<Notification>(DEADLINE, "reload", "has told two", |object| counts(object) == (2, 0)).await?;
    run_webs(&ctx, ["third"]).await?;
    let told = ctx.watch_until(DEADLINE, "reload", "has told three", |object| counts(object) == (3, 0)).await?;
    ensure!(!is_complete(&told), "it is complete, though more pods may come: {told:?}");
    let status = told.status.context("no status")?;
    ensure!(status.start_time.is_some() && status.complete_time.is_none(), "{status:?}");
    for pod in ["first", "second", "third"] {
        assert_eq!(ctx.recorded(pod).await?, ["reloaded"], "{pod}");
    }
    assert_eq!(ctx.recorded("other").await?, [""; 0]);
    Ok(())
}

pub(crate) async fn pods_that_come_later_are_not_told_when_only_earlier_ones_are_meant(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    run_webs(&ctx, ["first", "second"]).await?;
    ctx.let_a_second_pass().await?;
    ctx.create(&notification("reload", json!({"policy": "PreExistingPods"}))?).await?;
    run_webs(&ctx, ["late"]).await?;
    let told = complete(&ctx, "reload").await?;
    assert_eq!(counts(&told), (2, 0));
    ensure!(told.status.is_some_and(|status| status.complete_time.is_some()), "it does not say when it was complete");
    // Another one that means all is told after the late pod came: by then the first would have told it too.
    ctx.create(&notification("all", json!({}))?).await?;
    ctx.watch_until::<Notification>(DEADLINE, "all", "has told three", |object| counts(object) == (3, 0)).await?;
    assert_eq!(ctx.recorded("late").await?, ["reloaded"]);
    assert_eq!(ctx.recorded("first").await?, ["reloaded", "reloaded"]);
    Ok(())
}

pub(crate) async fn no_more_pods_are_told_at_once_than_allowed(ctx: Ctx, _: Executor) -> Result<()> {
    let names = ["a", "b", "c", "d", "e"];
    run_webs(&ctx, names).await?;
    ctx.let_a_second_pass().await?;
    let mut watch = ctx.watch::<PodNotification>("").await?;
    ctx.create(&notification("reload", json!({"policy": "PreExistingPods", "parallelism": 2}))?).await?;
    let all_ended = |parts: usize, ended: bool| parts == names.len() && ended;
    let seen = watch
        .until(DEADLINE, "all have been told", |seen| {
            all_ended(seen.now.len(), seen.now.values().all(|part| state(part).is_terminal()))
        })
        .await?;
    let mut open = std::collections::BTreeSet::new();
    for change in seen.history()? {
        let (Change::Is(part) | Change::Gone(part)) = change;
        match state(part) {
            State::New => open.insert(part.name_any()),
            State::Succeeded | State::Failed => open.remove(&part.name_any()),
        };
        ensure!(open.len() <= 2, "more than two at once: {open:?}");
    }
    assert_eq!(counts(&complete(&ctx, "reload").await?), (5, 0));
    for pod in names {
        assert_eq!(ctx.recorded(pod).await?, ["reloaded"], "{pod}");
    }
    Ok(())
}

pub(crate) async fn a_negative_parallelism_fails_at_once(ctx: Ctx, _: Executor) -> Result<()> {
    run_webs(&ctx, ["first"]).await?;
    ctx.create(&notification("reload", json!({"parallelism": -1}))?).await?;
    let failed = complete(&ctx, "reload").await?;
    assert_eq!(condition_of(&failed, condition::COMPLETE), Some(("True".to_owned(), reason::FAILED.to_owned())));
    assert_eq!(condition_of(&failed, condition::ACCEPTED), Some(("False".to_owned(), reason::INVALID.to_owned())));
    assert_eq!(ctx.recorded("first").await?, [""; 0]);
    Ok(())
}

pub(crate) async fn what_failed_and_what_succeeded_is_counted(ctx: Ctx, _: Executor) -> Result<()> {
    run_webs(&ctx, ["first", "second"]).await?;
    let broken = recorder(&ctx, "broken").label("app", "web").notifier("main", "reload", "exit 3");
    ctx.run_pod(broken.build()).await?;
    ctx.let_a_second_pass().await?;
    ctx.create(&notification("reload", json!({"policy": "PreExistingPods"}))?).await?;
    let told = complete(&ctx, "reload").await?;
    assert_eq!(counts(&told), (2, 1));
    assert_eq!(condition_of(&told, condition::COMPLETE), Some(("True".to_owned(), reason::FAILED.to_owned())));
    Ok(())
}

pub(crate) async fn a_deleted_notification_tells_nobody_more_and_takes_its_parts_along(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    run_webs(&ctx, ["first"]).await?;
    ctx.create(&notification("reload", json!({}))?).await?;
    ctx.watch_until::<Notification>(DEADLINE, "reload", "has told one", |object| counts(object) == (1, 0)).await?;
    let mut parts = ctx.watch::<PodNotification>("").await?;
    ctx.delete_and_see_gone::<Notification>("reload").await?;
    parts.until(DEADLINE, "its parts are gone", |seen| seen.now.is_empty()).await?;
    run_webs(&ctx, ["second"]).await?;
    // Whoever is told of the second pod after this knows of it: nothing is left to tell it.
    let told = ctx.tell("second", "reload").await?;
    ensure!(status(&told).state == State::Succeeded, "{told:?}");
    assert_eq!(ctx.recorded("second").await?, ["reloaded"]);
    let pod: Pod = ctx.ready("first").await?;
    assert_eq!(ctx.recorded(&pod.name_any()).await?, ["reloaded"]);
    Ok(())
}
