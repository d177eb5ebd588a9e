//! An ExecutionHook by itself: what it selects is frozen, or it says why not and what was frozen is thawed.

use anyhow::{Result, ensure};
use boathook_api::{
    ExecutionHook, ExecutionHookTemplate,
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
    images::LANTERN,
    pods::pod,
    poll::Look,
};
use kube::api::{DeleteParams, Patch, PatchParams};
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
    let spec = with(freezing_as("-$POD"), json!({"preAction": shell_within(&fails_on_b, 15)}));
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
    let spec = with(freezing(), json!({"preAction": shell_within(&hangs, 5)}));
    ctx.create_hook("db", with(spec, mains(["box"]))).await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(status(&thawed).pre_action_succeed, Some(false));
    let before = part_of(&thawed, "box")?.pre_action_status.unwrap_or_default();
    ensure!(before.error.is_some(), "it does not say why: {before:?}");
    let lines = ctx.recorded("box").await?;
    ensure!(lines.last().is_some_and(|line| line == "thaw"), "{lines:?}");
    Ok(())
}

/// Through the API server nothing can be ended: it freezes long after it was given up, and thawed. An agent ends it.
pub(crate) async fn a_pre_action_that_freezes_after_its_time_is_taken_back(ctx: Ctx, executor: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let late = format!("{}; until [ -e log/go ]; do sleep 0.1; done; {}", record("begun"), record("freeze"));
    let spec = json!({"preAction": shell_within(&late, 10), "expirationSeconds": 40});
    ctx.create_hook("db", with(with(freezing(), spec), mains(["box"]))).await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(status(&thawed).pre_action_succeed, Some(false));
    let said = condition_of(&thawed, condition::THAWED).map(|(_, why)| why);
    ctx.shell("box", "touch log/go").await?;
    match executor {
        Executor::Api => {
            assert_eq!(said.as_deref(), Some(reason::PROCESS_MAY_REMAIN));
            ctx.records("box", "freeze").await?;
            ctx.poll_until(DEADLINE, "it is thawed after its freeze", async || {
                let lines = ctx.recorded("box").await?;
                let last = |word: &str| lines.iter().rposition(|line| line == word);
                Ok(if last("freeze") < last("thaw") { Look::Done(()) } else { Look::NotYet(format!("{lines:?}")) })
            })
            .await?;
            let certain = ctx.hook_says("db", condition::THAWED, reason::THAWED).await?;
            let frozen = condition_of(&certain, condition::FROZEN).map(|(status, _)| status);
            assert_eq!(frozen.as_deref(), Some("False"));
            Ok(())
        }
        Executor::Agent => {
            assert_eq!(said.as_deref(), Some(reason::THAWED));
            let lines = ctx.recorded("box").await?;
            ensure!(!lines.contains(&"freeze".to_owned()), "it was not ended: {lines:?}");
            Ok(())
        }
    }
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

    let never = with(with(freezing(), json!({"preAction": shell_within("exit 1", 10)})), mains(["box"]));
    ctx.create_hook("never", never).await?;
    let thawed = ctx.thawed("never").await?;
    let before = part_of(&thawed, "box")?.pre_action_status.unwrap_or_default();
    ensure!(before.action_succeed == Some(false) && before.attempts > Some(1), "{before:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "freeze", "freeze", "thaw", "thaw"]);
    Ok(())
}

/// Nobody knows how far it came: it is thawed when it has ended, and before the hook goes.
pub(crate) async fn a_hook_deleted_while_its_pre_action_runs_is_thawed(ctx: Ctx, executor: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let waits = format!("{}; until [ -e log/go ]; do sleep 0.1; done", record("freeze"));
    ctx.create_hook("db", with(with(freezing(), json!({"preAction": shell(&waits)})), mains(["box"]))).await?;
    ctx.records("box", "freeze").await?;
    ctx.api::<ExecutionHook>().delete("db", &DeleteParams::default()).await?;
    if executor == Executor::Api {
        // Nothing can be ended through the API server: the thaw follows the PreAction's own end.
        ctx.shell("box", "touch log/go").await?;
    }
    ctx.gone::<ExecutionHook>("db").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn a_hook_that_is_asked_to_thaw_stays_to_be_read(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.freeze("db", with(freezing(), mains(["box"]))).await?;
    ctx.request_thaw("db").await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(condition_of(&thawed, condition::THAWED), Some(("True".to_owned(), reason::THAWED.to_owned())));
    assert_eq!(condition_of(&thawed, condition::EXPIRED), None);
    ensure!(status(&thawed).freeze_window.is_some_and(|window| window.duration.is_some()), "{thawed:?}");
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn a_hook_without_a_post_action_is_thawed_by_doing_nothing(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let spec = with(with(freezing(), json!({"postAction": null})), mains(["box"]));
    ctx.freeze("db", spec.clone()).await?;
    ctx.request_thaw("db").await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(condition_of(&thawed, condition::THAWED), Some(("True".to_owned(), reason::THAWED.to_owned())));
    ensure!(part_of(&thawed, "box")?.post_action_status.is_none(), "something was run: {thawed:?}");
    ctx.delete_and_see_gone::<ExecutionHook>("db").await?;

    // A PreAction that failed has nothing to be taken back by either.
    ctx.create_hook("fails", with(spec, json!({"preAction": shell_within("exit 1", 2)}))).await?;
    let failed = ctx.thawed("fails").await?;
    assert_eq!(status(&failed).pre_action_succeed, Some(false));
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    Ok(())
}

/// By the agent, on the pod's node: a real cluster's pods are reached only from there.
pub(crate) async fn a_pre_action_asks_by_http_or_tcp(ctx: Ctx, _: Executor) -> Result<()> {
    const PORT: i32 = 28_431;
    let serves = [LANTERN, "serve", &format!("$(POD_IP):{PORT}"), "quiet"];
    let web = pod("web", ctx.images().lantern).env_from_field("POD_IP", "status.podIP").command(serves);
    ctx.run_pod(web.build()).await?;
    for (name, asks) in [
        ("http", json!({"httpGet": {"port": PORT, "path": "/freeze"}, "actionTimeoutSeconds": 60})),
        ("tcp", json!({"tcpSocket": {"port": PORT}, "actionTimeoutSeconds": 60})),
    ] {
        let spec = json!({"preAction": asks, "postAction": asks, "expirationSeconds": 3600});
        ctx.freeze(name, with(spec, mains(["web"]))).await?;
        ctx.request_thaw(name).await?;
        let part = part_of(&ctx.thawed(name).await?, "web")?;
        let after = part.post_action_status.and_then(|status| status.action_succeed);
        assert_eq!(after, Some(true), "{name}");
    }
    let nobody = json!({"tcpSocket": {"port": PORT + 1}, "actionTimeoutSeconds": 2});
    ctx.create_hook("nobody", with(json!({"preAction": nobody, "expirationSeconds": 3600}), mains(["web"]))).await?;
    let failed = ctx.tried("nobody").await?;
    let (_, why) = condition_of(&failed, condition::FROZEN).unwrap_or_default();
    assert_eq!(why, reason::PRE_ACTION_FAILED, "{failed:?}");
    let message = conditions::message(&status(&failed).conditions, condition::FROZEN);
    ensure!(message.contains("pod `web`"), "it does not say where: {message}");
    Ok(())
}

pub(crate) async fn a_hook_that_nobody_thaws_is_thawed_when_its_time_is_over(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.create_hook("db", with(with(freezing(), json!({"expirationSeconds": 15})), mains(["box"]))).await?;
    let thawed = ctx.thawed("db").await?;
    assert_eq!(condition_of(&thawed, condition::EXPIRED), Some(("True".to_owned(), reason::EXPIRED.to_owned())));
    assert_eq!(condition_of(&thawed, condition::FROZEN), Some(("False".to_owned(), reason::EXPIRED.to_owned())));
    assert_eq!(condition_of(&thawed, condition::NO_EXPIRY), None);
    let mut lines = ctx.recorded("box").await?;
    // By whoever ran it and when the hook asks for it: a thaw runs at least once.
    lines.dedup();
    assert_eq!(lines, ["freeze", "thaw"]);
    Ok(())
}

pub(crate) async fn a_hook_without_an_expiry_warns_and_stays_frozen(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    let frozen = ctx.freeze("db", with(with(freezing(), json!({"expirationSeconds": null})), mains(["box"]))).await?;
    assert_eq!(condition_of(&frozen, condition::NO_EXPIRY), Some(("True".to_owned(), reason::NO_EXPIRY.to_owned())));
    ctx.event_of::<ExecutionHook>("db", reason::NO_EXPIRY).await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze"]);
    ctx.delete_and_see_gone::<ExecutionHook>("db").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);
    Ok(())
}

/// What was accepted is what runs.
pub(crate) async fn a_template_edited_midway_changes_nothing_under_way(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.run_pod(recorder(&ctx, "box").build()).await?;
    ctx.create_template("quiet", freezing()).await?;
    ctx.freeze("db", with(json!({"executionHookTemplateName": "quiet"}), mains(["box"]))).await?;
    let edited = Patch::Merge(json!({"spec": {"postAction": shell(&record("edited"))}}));
    ctx.api::<ExecutionHookTemplate>().patch("quiet", &PatchParams::default(), &edited).await?;
    ctx.delete_and_see_gone::<ExecutionHook>("db").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw"]);

    ctx.freeze("again", with(json!({"executionHookTemplateName": "quiet"}), mains(["box"]))).await?;
    ctx.delete_and_see_gone::<ExecutionHookTemplate>("quiet").await?;
    ctx.delete_and_see_gone::<ExecutionHook>("again").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze", "thaw", "freeze", "edited"]);
    Ok(())
}
