//! Where a hook runs: what it selects, or what to write if that is nothing.

use anyhow::{Result, ensure};
use boathook_api::{
    ExecutionHook,
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        conditions,
        execution_hooks::{condition_of, freezing, freezing_as, mains, status, with},
        recording::{record, recorder, recorder_on},
    },
    claims::claim,
    pods::pod,
};
use serde_json::{Value, json};

fn labelled(spec: Value, app: &str) -> Value {
    with(spec, json!({"podSelector": {"matchLabels": {"app": app}}}))
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
    ctx.event_of::<ExecutionHook>(name, why).await
}

pub(crate) async fn execute_once_runs_on_the_oldest_pod_that_is_ready(ctx: Ctx, _: Executor) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    ctx.create(&pod("never", "localhost/nowhere:1").label("app", "db").build()).await?;
    for name in ["older", "newer"] {
        ctx.let_a_second_pass().await?;
        let pod = recorder_on(&ctx, "data", name).label("app", "db").env_from_field("POD", "metadata.name");
        ctx.run_pod(pod.build()).await?;
    }
    let once = with(freezing_as("-$POD"), json!({"policy": "ExecuteOnce"}));
    let frozen = ctx.freeze("db", labelled(once, "db")).await?;
    assert_eq!(status(&frozen).container_execution_hook_statuses.len(), 1, "{frozen:?}");
    ctx.delete_and_see_gone::<ExecutionHook>("db").await?;
    assert_eq!(ctx.recorded("newer").await?, ["freeze-older", "thaw-older"]);
    Ok(())
}

pub(crate) async fn all_containers_are_meant_unless_one_is_named(ctx: Ctx, _: Executor) -> Result<()> {
    let pod = recorder(&ctx, "box").label("app", "db").also("side").containers_know_their_names();
    ctx.run_pod(pod.build()).await?;
    ctx.freeze("both", labelled(freezing_as("-$CONTAINER"), "db")).await?;
    ctx.delete_and_see_gone::<ExecutionHook>("both").await?;
    let mut lines = ctx.recorded("box").await?;
    lines.sort();
    assert_eq!(lines, ["freeze-main", "freeze-side", "thaw-main", "thaw-side"]);
    ctx.shell("box", "rm log/lines").await?;
    let one = with(freezing_as("-$CONTAINER"), json!({"containerSelector": {"containerName": "side"}}));
    ctx.freeze("one", labelled(one, "db")).await?;
    ctx.delete_and_see_gone::<ExecutionHook>("one").await?;
    assert_eq!(ctx.recorded("box").await?, ["freeze-side", "thaw-side"]);
    Ok(())
}

/// The pod's author declares, and whoever takes the snapshot only names it.
pub(crate) async fn a_notifier_freezes_the_containers_that_declare_it(ctx: Ctx, _: Executor) -> Result<()> {
    let mut pod = recorder(&ctx, "box").label("app", "db").also("second").also("third");
    for container in ["main", "third"] {
        for word in ["freeze", "thaw"] {
            pod = pod.notifier(container, word, &record(&format!("{word}-{container}")));
        }
    }
    ctx.run_pod(pod.build()).await?;
    let spec = json!({"preAction": {"notifier": "freeze"}, "postAction": {"notifier": "thaw"}});
    ctx.freeze("db", labelled(spec.clone(), "db")).await?;
    ctx.delete_and_see_gone::<ExecutionHook>("db").await?;
    let mut lines = ctx.recorded("box").await?;
    lines.sort();
    assert_eq!(lines, ["freeze-main", "freeze-third", "thaw-main", "thaw-third"]);

    // One that was named and does not declare it: nothing is run in the others either.
    ctx.shell("box", "rm log/lines").await?;
    let second = json!({"podContainerNamesList": [{"podName": "box", "containerNames": ["main", "second"]}]});
    ctx.create_hook("wrong", with(spec, second)).await?;
    let failed = ctx.thawed("wrong").await?;
    assert_eq!(status(&failed).pre_action_succeed, Some(false));
    let message = conditions::message(&status(&failed).conditions, condition::FROZEN);
    ensure!(message.contains("`second`") && message.contains("`freeze`"), "{message}");
    assert_eq!(ctx.recorded("box").await?, [""; 0]);
    Ok(())
}
