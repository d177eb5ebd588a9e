//! An ExecutionHook by itself: what it selects is frozen, or it says why not and what was frozen is thawed.

use anyhow::{Result, ensure};
use boathook_api::{
    ExecutionHook,
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        conditions,
        execution_hooks::{condition_of, freezing, freezing_as, mains, part_of, shell, shell_within, status, with},
        host::a_long_time,
        recording::{record, recorder, recorder_on},
    },
    claims::claim,
    pods::pod,
};
use k8s_openapi::api::core::v1::Event;
use serde_json::{Value, json};

/// Three pods that record on one claim, each with its name in `$POD`.
async fn run_three(ctx: &Ctx) -> Result<[&'static str; 3]> {
    const PODS: [&str; 3] = ["a", "b", "c"];
    ctx.create(&claim("data").build()).await?;
    for pod in PODS {
        let pod = recorder_on(ctx, "data", pod).label("app", "db").env_from_field("POD", "metadata.name");
        ctx.create(&pod.build()).await?;
    }
    for pod in PODS {
        ctx.ready(pod).await?;
    }
    Ok(PODS)
}

fn all_three(spec: Value) -> Value {
    with(spec, json!({"podSelector": {"matchLabels": {"app": "db"}}}))
}

/// The lines that begin with this word, sorted: pods are frozen at once.
fn sorted(lines: &[String], word: &str) -> Vec<String> {
    let mut found: Vec<_> = lines.iter().filter(|line| line.starts_with(word)).cloned().collect();
    found.sort();
    found
}

pub(crate) async fn a_hook_freezes_what_it_selects_and_thaws_when_it_is_deleted(ctx: Ctx, _: Executor) -> Result<()> {
    run_three(&ctx).await?;
    ctx.create_template("quiet", freezing_as("-$POD")).await?;
    let frozen = ctx.freeze("db", all_three(json!({"executionHookTemplateName": "quiet"}))).await?;
    assert_eq!(condition_of(&frozen, condition::FROZEN), Some(("True".to_owned(), reason::FROZEN.to_owned())));
    assert_eq!(status(&frozen).post_action_succeed, None);
    for pod in ["a", "b", "c"] {
        let part = part_of(&frozen, pod)?;
        let before = part.pre_action_status.unwrap_or_default();
        ensure!(before.action_succeed == Some(true) && before.action_timestamp.is_some(), "{before:?}");
        ensure!(part.container_id.is_some() && part.post_action_status.is_none(), "{frozen:?}");
    }
    let lines = ctx.recorded("a").await?;
    assert_eq!(sorted(&lines, ""), ["freeze-a", "freeze-b", "freeze-c"]);

    ctx.delete_and_see_gone::<ExecutionHook>("db").await?;
    let lines = ctx.recorded("a").await?;
    assert_eq!(sorted(&lines[3..], ""), ["thaw-a", "thaw-b", "thaw-c"]);
    Ok(())
}

pub(crate) async fn a_pre_action_that_fails_on_one_of_three_containers_is_taken_back_on_all(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    let pods = run_three(&ctx).await?;
    let fails_on_b = format!("{}; [ $POD != b ] || {{ echo disk is full >&2; exit 7; }}", record("freeze-$POD"));
    let spec = with(freezing_as("-$POD"), json!({"preAction": shell_within(&fails_on_b, 8)}));
    ctx.create_hook("db", all_three(spec)).await?;
    let tried = ctx.tried("db").await?;
    assert_eq!(status(&tried).pre_action_succeed, Some(false));
    let (_, why) = condition_of(&tried, condition::FROZEN).unwrap_or_default();
    assert_eq!(why, reason::PRE_ACTION_FAILED, "{tried:?}");
    let message = conditions::message(&status(&tried).conditions, condition::FROZEN);
    ensure!(message.contains("pod `b`") && message.contains("7"), "it does not say where and why: {message}");

    let thawed = ctx.thawed("db").await?;
    for pod in pods {
        let part = part_of(&thawed, pod)?;
        let before = part.pre_action_status.and_then(|status| status.action_succeed);
        assert_eq!(before, Some(pod != "b"), "pod `{pod}`: {thawed:?}");
        let after = part.post_action_status.and_then(|status| status.action_succeed);
        assert_eq!(after, Some(true), "pod `{pod}`: {thawed:?}");
    }
    let lines = ctx.recorded("a").await?;
    assert_eq!(sorted(&lines, "thaw"), ["thaw-a", "thaw-b", "thaw-c"]);
    for pod in pods {
        let last = |word: &str| lines.iter().rposition(|line| *line == format!("{word}-{pod}"));
        ensure!(last("freeze") < last("thaw"), "pod `{pod}` was not thawed after its freeze: {lines:?}");
    }
    // It stays, for a person to read, and goes when it is told to.
    ctx.delete_and_see_gone::<ExecutionHook>("db").await
}

pub(crate) async fn a_pre_action_that_hangs_is_given_up_and_taken_back(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let hangs = format!("{}; exec sleep {}", record("freeze"), a_long_time());
    let spec = with(freezing(), json!({"preAction": shell_within(&hangs, 2)}));
    ctx.create_hook("db", with(spec, mains(["box"]))).await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(status(&thawed).pre_action_succeed, Some(false));
    let before = part_of(&thawed, "box")?.pre_action_status.unwrap_or_default();
    ensure!(before.error.is_some(), "it does not say why: {before:?}");
    let lines = ctx.recorded("box").await?;
    ensure!(lines.last().is_some_and(|line| line == "thaw"), "{lines:?}");
    Ok(())
}

/// Each attempt is one more line; one that succeeds in time makes the hook freeze.
pub(crate) async fn a_pre_action_is_tried_again_until_its_time_is_over(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let third = format!("{}; [ $(wc -l < log/lines) -ge 3 ]", record("freeze"));
    let spec = with(with(freezing(), json!({"preAction": shell(&third)})), mains(["box"]));
    let frozen = ctx.freeze("late", spec).await?;
    let before = part_of(&frozen, "box")?.pre_action_status.unwrap_or_default();
    assert_eq!(before.attempts, Some(3), "{before:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "freeze", "freeze"]);
    ctx.delete_and_see_gone::<ExecutionHook>("late").await?;

    let never = with(with(freezing(), json!({"preAction": shell_within("exit 1", 5)})), mains(["box"]));
    ctx.create_hook("never", never).await?;
    let thawed = ctx.thawed("never").await?;
    let before = part_of(&thawed, "box")?.pre_action_status.unwrap_or_default();
    ensure!(before.action_succeed == Some(false) && before.attempts > Some(1), "{before:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "freeze", "freeze", "thaw", "thaw"]);
    Ok(())
}

pub(crate) async fn without_its_template_a_hook_says_which_to_create(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.create_hook("db", with(json!({"executionHookTemplateName": "mysql"}), mains(["box"]))).await?;
    refused(&ctx, "db", reason::TEMPLATE_NOT_FOUND, &["`mysql`", "create it"]).await?;
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

pub(crate) async fn without_a_target_a_hook_says_what_to_write(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").label("app", "db").build()).await?;
    ctx.create(&pod("waits", "localhost/nowhere:1").label("app", "slow").build()).await?;
    let cases = [
        ("nothing", json!({}), reason::NO_TARGET, vec!["podContainerNamesList", "podSelector"]),
        ("containers", json!({"containerSelector": {"containerName": "main"}}), reason::NO_TARGET, vec!["podSelector"]),
        ("list", json!({"podContainerNamesList": []}), reason::NO_TARGET, vec!["podContainerNamesList"]),
        (
            "no-containers",
            json!({"podContainerNamesList": [{"podName": "box", "containerNames": []}]}),
            reason::NO_TARGET,
            vec!["containerNames", "`main`"],
        ),
        ("no-pod", mains(["ship"]), reason::NO_TARGET, vec!["`ship`"]),
        (
            "no-container",
            json!({"podSelector": {"matchLabels": {"app": "db"}}, "containerSelector": {"containerName": "side"}}),
            reason::NO_TARGET,
            vec!["`side`", "`main`"],
        ),
        ("labels", json!({"podSelector": {"matchLabels": {"app": "web"}}}), reason::NO_TARGET, vec!["podSelector"]),
        (
            "not-running",
            json!({"podSelector": {"matchLabels": {"app": "slow"}}}),
            reason::POD_NOT_RUNNING,
            vec!["`waits`", "Running"],
        ),
        (
            "not-ready",
            json!({"podSelector": {"matchLabels": {"app": "slow"}}, "policy": "ExecuteOnce"}),
            reason::POD_NOT_RUNNING,
            vec!["Ready"],
        ),
    ];
    for (name, fields, why, words) in cases {
        ctx.create_hook(name, with(freezing(), fields)).await?;
        refused(&ctx, name, why, &words).await?;
        ctx.delete_and_see_gone::<ExecutionHook>(name).await?;
    }
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}

/// It failed before anything was run, for this reason, and says these words; an Event does too.
async fn refused(ctx: &Ctx, name: &str, why: &str, words: &[&str]) -> Result<()> {
    let hook = ctx.thawed(name).await?;
    assert_eq!(status(&hook).pre_action_succeed, Some(false), "{name}");
    assert_eq!(condition_of(&hook, condition::ACCEPTED), Some(("False".to_owned(), why.to_owned())), "{name}");
    let message = conditions::message(&status(&hook).conditions, condition::ACCEPTED);
    ensure!(words.iter().all(|word| message.contains(word)), "hook `{name}` does not say what to do: {message}");
    let mut events = ctx.watch::<Event>("").await?;
    let tells = |event: &Event| event.regarding_name() == Some(name) && event.reason.as_deref() == Some(why);
    events.until(DEADLINE, "an Event says so", |seen| seen.now.values().any(tells)).await?;
    Ok(())
}

/// Whom an Event is about.
trait Regarding {
    fn regarding_name(&self) -> Option<&str>;
}

impl Regarding for Event {
    fn regarding_name(&self) -> Option<&str> {
        self.involved_object.name.as_deref()
    }
}
