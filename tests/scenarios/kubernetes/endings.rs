//! Handlers that do not end by themselves: from the node nothing of them is left running, through the API server they are
//! at least not waited for.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use boathook_actions::{Cancel, Outcome};
use boathook_api::pod_notification::ErrorType;
use boathook_tests::{
    Ctx, DEADLINE,
    images::LANTERN,
    pods::pod,
    poll::Look,
    work::{EITHER, From, command, failure, own_seconds, script, sleepers},
};

/// How late an ending may be on a busy machine: far less than the handlers would take.
const LATE: Duration = Duration::from_secs(60);

/// Handlers that outlast any timeout, each in its own way; `N` stands for seconds.
const ENDLESS: &[(&str, &str)] = &[
    ("hangs", "sleep N"),
    ("prints without end", "sleep N & while :; do echo more; done"),
    ("ignores TERM", "trap '' TERM; sleep N; sleep N"),
    ("leaves a child that holds its outputs", "sleep N & exit 0"),
    ("leaves a daemon in a session of its own", "(setsid sh -c 'sleep N & sleep N' &) & exit 0"),
    ("leaves a daemon without its environment", "(setsid env -i PATH=\"$PATH\" sleep N &) ; sleep 0.3; exit 0"),
];

pub(crate) async fn nothing_is_left_of_a_handler_that_was_ended_on_its_node(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    for (number, (what, text)) in ENDLESS.iter().enumerate() {
        let seconds = own_seconds(number.try_into()?);
        let begun = Instant::now();
        let ended = ctx.carry_out(From::Node, &pod, &script(&text.replace('N', &seconds), 2)).await?;
        assert_eq!(failure(&ended)?.0, ErrorType::HandlerTimeout, "{what}: {ended:?}");
        ensure!(begun.elapsed() < LATE && !ended.process_may_remain, "{what}: {ended:?}");
        assert_eq!(sleepers(&seconds)?, [] as [i32; 0], "{what}: {ended:?}");
    }
    Ok(())
}

pub(crate) async fn through_the_api_server_an_endless_handler_is_left_on_time_and_told_of(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    for (number, (what, text)) in ENDLESS.iter().enumerate() {
        let seconds = own_seconds(100 + u32::try_from(number)?);
        let begun = Instant::now();
        let ended = ctx.carry_out(From::ApiServer, &pod, &script(&text.replace('N', &seconds), 2)).await?;
        let (kind, message) = failure(&ended)?;
        assert_eq!(kind, ErrorType::HandlerTimeout, "{what}: {ended:?}");
        ensure!(message.contains("ProcessMayRemain") && ended.process_may_remain, "{what}: {ended:?}");
        ensure!(begun.elapsed() < LATE, "{what}: {ended:?}");
    }
    Ok(())
}

pub(crate) async fn a_cancelled_handler_has_an_unknown_outcome(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    for (number, from) in [200, 201].into_iter().zip(EITHER) {
        let seconds = own_seconds(number);
        let cancel = Cancel::new();
        let endless = script(&format!("exec sleep {seconds}"), 600);
        let stop_when_it_runs = async {
            let runs =
                async || Ok(if sleepers(&seconds)?.is_empty() { Look::NotYet(String::new()) } else { Look::Done(()) });
            let waited = ctx.poll_until(DEADLINE, "the handler runs", runs).await;
            cancel.cancel();
            waited
        };
        let (ended, waited) =
            tokio::join!(ctx.carry_out_unless(from, &pod, &endless, cancel.clone()), stop_when_it_runs);
        waited?;
        let ended = ended?;
        ensure!(matches!(ended.outcome, Outcome::Unknown(_)), "{from:?}: {ended:?}");
        assert_eq!(ended.process_may_remain, from == From::ApiServer, "{from:?}: {ended:?}");
        if from == From::Node {
            assert_eq!(sleepers(&seconds)?, [] as [i32; 0]);
        }
    }
    Ok(())
}

pub(crate) async fn what_a_successful_handler_leaves_behind_stays(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    let seconds = own_seconds(300);
    let daemon = script(&format!("sleep {seconds} >/dev/null 2>&1 & exit 0"), 60);
    let ended = ctx.carry_out(From::Node, &pod, &daemon).await?;
    assert_eq!(ended.outcome, Outcome::Succeeded, "{ended:?}");
    assert_eq!(sleepers(&seconds)?.len(), 1);
    Ok(())
}

pub(crate) async fn a_handler_in_an_image_without_a_shell_ends_too(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("lantern", ctx.images().lantern)).await?;
    for from in EITHER {
        let seven = ctx.carry_out(from, &pod, &command([LANTERN, "exit", "7"], 60)).await?;
        assert_eq!((failure(&seven)?.0, seven.exit_code), (ErrorType::HandlerFailed, Some(7)), "{from:?}: {seven:?}");
        let missing = ctx.carry_out(from, &pod, &command(["/no-such-program"], 60)).await?;
        let (kind, message) = failure(&missing)?;
        ensure!(kind == ErrorType::HandlerFailed && message.contains("no-such-program"), "{from:?}: {message}");
    }
    let own = format!("lantern of {}", own_seconds(400));
    let (endless, cancel) = (command([LANTERN, "serve", "127.0.0.1:0", &own], 600), Cancel::new());
    // Without a shell the executor knows a command only by its process, which a busy machine starts late.
    let stop_when_it_runs = async {
        let looking = ctx.poll_until(DEADLINE, "the handler runs", async || {
            let process = boathook_process::find_by_argument(&own, &[].into())?;
            Ok(if process.is_some() { Look::Done(()) } else { Look::NotYet(String::new()) })
        });
        let waited = looking.await;
        cancel.cancel();
        waited
    };
    let ending = ctx.carry_out_unless(From::Node, &pod, &endless, cancel.clone());
    let (ended, waited) = tokio::join!(ending, stop_when_it_runs);
    waited?;
    let ended = ended?;
    ensure!(matches!(ended.outcome, Outcome::Unknown(_)) && !ended.process_may_remain, "{ended:?}");
    assert_eq!(boathook_process::find_by_argument(&own, &[].into())?, None);
    Ok(())
}
