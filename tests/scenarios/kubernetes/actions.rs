//! Actions in a running pod, carried out from either place: how they end, and what is told of it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boathook_actions::{Outcome, Work};
use boathook_api::{
    HttpGetAction, TcpSocketAction,
    action::Deed,
    pod_notification::{ErrorType, Retry},
};
use boathook_tests::{
    Ctx, DEADLINE,
    images::LANTERN,
    pods::{is_ready, pod},
    work::{self, EITHER, From, command, failure, probed, script},
};
use k8s_openapi::{
    api::core::v1::{ContainerPort, Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;

pub(crate) async fn a_handler_ends_as_its_command_does(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let id = statuses.filter_map(|status| status.container_id.clone()).next().context("no container id")?;
    for from in EITHER {
        let well = ctx.carry_out(from, &pod, &script("echo out; echo err >&2", 60)).await?;
        assert_eq!((&well.outcome, well.exit_code), (&Outcome::Succeeded, Some(0)), "{from:?}: {well:?}");
        ensure!(well.output.contains("out\n") && well.output.contains("err\n"), "{from:?}: {well:?}");
        assert_eq!(well.container_id.as_deref(), Some(id.as_str()), "{from:?}");
        ensure!(well.attempts == 1 && well.started <= well.completed && !well.process_may_remain, "{well:?}");

        let ill = ctx.carry_out(from, &pod, &script("echo why; exit 7", 60)).await?;
        let (kind, message) = failure(&ill)?;
        assert_eq!(
            (kind, ill.exit_code, ill.output.as_str()),
            (ErrorType::HandlerFailed, Some(7), "why\n"),
            "{from:?}"
        );
        ensure!(message.contains("exit code 7"), "{from:?}: {message}");

        // Nothing is expanded, and there is nothing to read.
        let plain = ctx.carry_out(from, &pod, &command(["echo", "$HOME", "a  b", "*"], 60)).await?;
        assert_eq!(plain.output, "$HOME a  b *\n", "{from:?}");
        let silent = ctx.carry_out(from, &pod, &command(["wc", "-c"], 60)).await?;
        assert_eq!(silent.output.trim(), "0", "{from:?}: {silent:?}");

        let missing = ctx.carry_out(from, &pod, &command(["no-such-program"], 60)).await?;
        let (kind, message) = failure(&missing)?;
        assert_eq!(kind, ErrorType::HandlerFailed, "{from:?}");
        ensure!(message.contains("no-such-program"), "{from:?}: {message}");
    }
    Ok(())
}

pub(crate) async fn of_twenty_megabytes_the_end_is_told(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    for from in EITHER {
        let ended = ctx.carry_out(from, &pod, &script("seq 2857142", 120)).await?;
        assert_eq!(ended.outcome, Outcome::Succeeded, "{from:?}: {ended:?}");
        ensure!(ended.output.ends_with("\n2857141\n2857142\n"), "{from:?}: {}", ended.output);
        assert_eq!(ended.output.len(), 10 << 10, "{from:?}");
    }
    Ok(())
}

pub(crate) async fn what_fails_is_tried_again_while_there_is_time(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    for from in EITHER {
        let file = format!("tries-{from:?}");
        let third_time = script(&format!("echo x >> {file}; [ $(wc -l < {file}) -ge 3 ]"), 60);
        let once = ctx.carry_out(from, &pod, &third_time).await?;
        assert_eq!((failure(&once)?.0, once.attempts), (ErrorType::HandlerFailed, 1), "{from:?}");
        let again = ctx.carry_out(from, &pod, &Work { retry: Retry::UntilTimeout, ..third_time }).await?;
        assert_eq!((&again.outcome, again.attempts), (&Outcome::Succeeded, 2), "{from:?}: {again:?}");

        let never = Work { retry: Retry::UntilTimeout, ..script("exit 3", 8) };
        let begun = Instant::now();
        let never = ctx.carry_out(from, &pod, &never).await?;
        // The last attempt may be cut short by the end.
        let kind = failure(&never)?.0;
        ensure!(matches!(kind, ErrorType::HandlerFailed | ErrorType::HandlerTimeout), "{from:?}: {never:?}");
        ensure!(never.attempts > 1 && begun.elapsed() < Duration::from_secs(60), "{from:?}: {never:?}");
    }
    Ok(())
}

pub(crate) async fn a_pod_made_again_under_the_same_name_is_left_alone(ctx: Ctx) -> Result<()> {
    let idle = || pod("box", ctx.images().shell).idle();
    let first = ctx.running(idle()).await?;
    ctx.api::<Pod>().delete("box", &DeleteParams::default()).await?;
    let gone = "is gone";
    let mut watch = ctx.watch::<Pod>("").await?;
    watch.until(DEADLINE, gone, |seen| seen.now.is_empty()).await?;
    let second = ctx.running(idle()).await?;
    ensure!(first.uid() != second.uid(), "it is the same pod");
    for from in EITHER {
        let ended = ctx.carry_out(from, &first, &script("touch ran", 60)).await?;
        assert_eq!(failure(&ended)?.0, ErrorType::PodNotFound, "{from:?}");
        let ran = ctx.carry_out(from, &second, &command(["ls", "ran"], 60)).await?;
        assert_eq!(failure(&ran)?.0, ErrorType::HandlerFailed, "{from:?}: it was run in the wrong pod");
    }
    Ok(())
}

pub(crate) async fn a_container_that_ends_meanwhile_ends_its_handler(ctx: Ctx) -> Result<()> {
    for from in EITHER {
        let name = format!("box-{from:?}").to_lowercase();
        let pod = ctx.running(pod(&name, ctx.images().shell).idle()).await?;
        let ended = ctx.carry_out(from, &pod, &script("kill 1; sleep 600", 120)).await?;
        // The executor asks for the container's state for a few seconds; a busy kubelet reports it later than that.
        let is_late = from == From::ApiServer && ended.exit_code == Some(137);
        let kind = failure(&ended)?.0;
        ensure!(kind == ErrorType::ContainerNotRunning || is_late, "{from:?}: {ended:?}");
        ensure!(!ended.process_may_remain, "{from:?}: {ended:?}");
        let restarted = |pod: &Pod| {
            let mut statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
            is_ready(pod) && statuses.any(|status| status.restart_count > 0)
        };
        let pod = ctx.watch_until(DEADLINE, &name, "was restarted", restarted).await?;
        let after = ctx.carry_out(from, &pod, &script("true", 60)).await?;
        assert_eq!(after.outcome, Outcome::Succeeded, "{from:?}: {after:?}");
        ensure!(after.container_id != ended.container_id, "{from:?}: it is the same instance");
    }
    Ok(())
}

pub(crate) async fn a_probe_decides_whether_a_handler_has_done_its_work(ctx: Ctx) -> Result<()> {
    let pod = ctx.running(pod("box", ctx.images().shell).idle()).await?;
    for from in EITHER {
        let file = format!("done-{from:?}");
        // Done a moment after the handler has ended.
        let handler = script(&format!("(sleep 1; touch {file}) >/dev/null 2>&1 & true"), 120);
        let probe = json!({"exec": {"command": ["test", "-e", file]}, "successThreshold": 2, "timeoutSeconds": 30});
        let begun = Instant::now();
        let passed = ctx.carry_out(from, &pod, &probed(handler, probe)?).await?;
        assert_eq!(passed.outcome, Outcome::Succeeded, "{from:?}: {passed:?}");
        ensure!(begun.elapsed() >= Duration::from_secs(1), "{from:?}: one success was enough");

        let probe = json!({"exec": {"command": ["sh", "-c", "exit 9"]}, "timeoutSeconds": 30});
        let failed = ctx.carry_out(from, &pod, &probed(script("echo said", 8), probe)?).await?;
        let (kind, message) = failure(&failed)?;
        assert_eq!((kind, failed.exit_code), (ErrorType::ProbeFailed, Some(0)), "{from:?}: {failed:?}");
        ensure!(message.contains("exit code 9") && failed.output == "said\n", "{from:?}: {failed:?}");
    }
    Ok(())
}

/// From the node: a real cluster's pods are reached only from there.
pub(crate) async fn a_pod_is_asked_by_http_and_tcp_at_a_port_by_its_name(ctx: Ctx) -> Result<()> {
    const PORT: i32 = 28_417;
    let builder = pod("web", ctx.images().lantern).env_from_field("POD_IP", "status.podIP");
    let mut serving = builder.command([LANTERN, "serve", &format!("$(POD_IP):{PORT}"), "welcome"]).build();
    let main = &mut serving.spec.as_mut().context("no spec")?.containers[0];
    main.ports = Some(vec![ContainerPort { name: Some("web".to_owned()), container_port: PORT, ..Default::default() }]);
    ctx.create(&serving).await?;
    let pod = ctx.watch_until(DEADLINE, "web", "is ready", is_ready).await?;
    let port = IntOrString::String("web".to_owned());
    let get = HttpGetAction { port: port.clone(), path: None, host: None, scheme: None, http_headers: None };
    // It may not listen yet: that is a failure, and tried again.
    let get = Work { retry: Retry::UntilTimeout, ..work::of(Deed::HttpGet(get), 60) };
    let got = ctx.carry_out(From::Node, &pod, &get).await?;
    assert_eq!((&got.outcome, got.output.as_str()), (&Outcome::Succeeded, "welcome"), "{got:?}");
    let open = work::of(Deed::TcpSocket(TcpSocketAction { port, host: None }), 60);
    assert_eq!(ctx.carry_out(From::Node, &pod, &open).await?.outcome, Outcome::Succeeded);
    let unknown = TcpSocketAction { port: IntOrString::String("admin".to_owned()), host: None };
    let unknown = ctx.carry_out(From::Node, &pod, &work::of(Deed::TcpSocket(unknown), 60)).await?;
    assert_eq!(failure(&unknown)?.0, ErrorType::Unsupported);
    Ok(())
}
