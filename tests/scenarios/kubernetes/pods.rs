//! Pods from their start to their end: what is run, as whom and with what, what happens when it fails, and how it ends.
//!
//! Paths are named from the directory that a container starts in, `/`: on a machine that does not permit namespaces the
//! embedded cluster's containers have a directory, but no root of their own.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boathook_tests::{Ctx, DEADLINE, exec::exec, pods::is_ready, poll::Look};
use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, Pod, Secret};
use kube::api::{DeleteParams, LogParams};
use serde_json::{Value, json};

/// Waits until it is told to end, and does so at once.
const IDLE: &str = "trap 'exit 0' TERM; sleep 2147483647 & wait";

/// Pod `box` with this spec. Its containers get an image with a shell; with a volume `data`, that is at `data` for all.
fn pod(ctx: &Ctx, mut spec: Value) -> Result<Pod> {
    let defaults =
        json!({"automountServiceAccountToken": false, "dnsPolicy": "Default", "terminationGracePeriodSeconds": 1});
    let shared =
        spec["volumes"].as_array().is_some_and(|volumes| volumes.iter().any(|volume| volume["name"] == "data"));
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container["image"] = ctx.images().shell.into();
            container["imagePullPolicy"] = "Never".into();
            if shared && container.get("volumeMounts").is_none() {
                container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
            }
        }
    }
    for (field, value) in defaults.as_object().into_iter().flatten() {
        if spec.get(field).is_none() {
            spec[field] = value.clone();
        }
    }
    Ok(serde_json::from_value(json!({"metadata": {"name": "box"}, "spec": spec}))?)
}

fn shell(script: &str) -> Value {
    json!(["sh", "-c", script])
}

fn data() -> Value {
    json!([{"name": "data", "emptyDir": {}}])
}

/// The status of the container `main`.
fn main(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.iter().find(|status| status.name == "main")
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

async fn ready(ctx: &Ctx) -> Result<Pod> {
    ctx.watch_until(DEADLINE, "box", "is ready", is_ready).await
}

async fn gone(ctx: &Ctx) -> Result<()> {
    let look = async || match ctx.api::<Pod>().get_opt("box").await? {
        None => Ok(Look::Done(())),
        Some(pod) => Ok(Look::NotYet(format!("{:?}", pod.status))),
    };
    ctx.poll_until(DEADLINE, "pod `box` is gone", look).await
}

pub(crate) async fn a_container_that_keeps_failing_backs_off_and_tells_why(ctx: Ctx) -> Result<()> {
    let script = "echo aground; echo the tide >dev/termination-log; exit 3";
    ctx.create(&pod(&ctx, json!({"containers": [{"name": "main", "command": shell(script)}]}))?).await?;
    let backs_off = |pod: &Pod| {
        let reason = main(pod).and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
        reason == Some("CrashLoopBackOff") && main(pod).is_some_and(|status| status.restart_count >= 1)
    };
    let pod = ctx.watch_until(DEADLINE, "box", "backs off", backs_off).await?;
    let status = main(&pod).context("no status")?;
    assert_eq!((phase(&pod), status.ready, status.started), ("Running", false, Some(false)));
    let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref()?.message.as_deref());
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let message = format!("restarting failed container=main pod=box_{}({uid})", ctx.namespace());
    ensure!(waiting.is_some_and(|text| text.starts_with("back-off ") && text.ends_with(&message)), "{waiting:?}");
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref()).context("no last state")?;
    let told = (last.exit_code, last.reason.as_deref(), last.message.as_deref());
    assert_eq!(told, (3, Some("Error"), Some("the tide\n")));
    let previous = LogParams { previous: true, ..LogParams::default() };
    // It goes on failing, and the log of the one before goes when there is a next one.
    ctx.poll_until(DEADLINE, "what it wrote is kept", async || {
        let log = ctx.api::<Pod>().logs("box", &previous).await?;
        Ok(if log == "aground\n" { Look::Done(()) } else { Look::NotYet(log) })
    })
    .await
}

pub(crate) async fn a_command_that_failed_is_run_again_until_it_succeeds(ctx: Ctx) -> Result<()> {
    let script = "test -e data/tried && exit 0; touch data/tried; exit 1";
    let spec = json!({
        "restartPolicy": "OnFailure", "volumes": data(), "containers": [{"name": "main", "command": shell(script)}],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    let pod = ctx.watch_until(DEADLINE, "box", "succeeds", |pod: &Pod| phase(pod) == "Succeeded").await?;
    let status = main(&pod).context("no status")?;
    let exit = status.state.as_ref().and_then(|state| state.terminated.as_ref()).map(|ended| ended.exit_code);
    assert_eq!((status.restart_count, exit), (1, Some(0)));
    Ok(())
}

pub(crate) async fn a_pod_that_takes_too_long_has_failed(ctx: Ctx) -> Result<()> {
    let spec = json!({
        "restartPolicy": "OnFailure", "activeDeadlineSeconds": 2, "containers": [{"name": "main", "command": shell(IDLE)}],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    let pod = ctx.watch_until(DEADLINE, "box", "fails", |pod: &Pod| phase(pod) == "Failed").await?;
    let status = pod.status.context("no status")?;
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(status.message.as_deref(), Some("Pod was active on the node longer than the specified deadline"));
    Ok(())
}

pub(crate) async fn init_containers_run_one_after_the_other_before_the_rest(ctx: Ctx) -> Result<()> {
    let spec = json!({
        "volumes": data(),
        "initContainers": [
            {"name": "first", "command": shell("sleep 1; echo first >>data/log")},
            {"name": "second", "command": shell("echo second >>data/log")},
        ],
        "containers": [{"name": "main", "command": shell(&format!("echo main >>data/log; {IDLE}"))}],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    let pod = ready(&ctx).await?;
    let log = exec(["cat", "data/log"]).in_pod(&ctx, "box").await?.success()?;
    assert_eq!(log, "first\nsecond\nmain\n");
    let init = pod.status.and_then(|status| status.init_container_statuses).unwrap_or_default();
    let ends = init.iter().map(|status| status.state.as_ref()?.terminated.as_ref()?.reason.as_deref());
    assert_eq!(ends.collect::<Vec<_>>(), [Some("Completed"), Some("Completed")]);
    Ok(())
}

pub(crate) async fn a_failed_init_container_fails_a_pod_that_never_restarts(ctx: Ctx) -> Result<()> {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "first", "command": shell("exit 4")}],
        "containers": [{"name": "main", "command": shell(IDLE)}],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    let pod = ctx.watch_until(DEADLINE, "box", "fails", |pod: &Pod| phase(pod) == "Failed").await?;
    let waiting = main(&pod).and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    assert_eq!(waiting, Some("PodInitializing"));
    Ok(())
}

pub(crate) async fn a_container_that_is_not_alive_is_restarted(ctx: Ctx) -> Result<()> {
    // Well only when it is started for the second time.
    let script = format!("trap 'exit 0' TERM; test -e data/tried && touch data/well; touch data/tried; {IDLE}");
    // The defaults, and the pod's grace of one second, are too short on a busy machine.
    let probe = json!({
        "exec": {"command": ["test", "-e", "data/well"]}, "periodSeconds": 1, "failureThreshold": 2,
        "timeoutSeconds": 30, "terminationGracePeriodSeconds": 60,
    });
    let spec = json!({
        "volumes": data(), "containers": [{"name": "main", "command": shell(&script), "livenessProbe": probe}],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    let restarted = |pod: &Pod| main(pod).is_some_and(|status| status.restart_count == 1 && status.ready);
    let pod = ctx.watch_until(DEADLINE, "box", "runs again", restarted).await?;
    let last = main(&pod).and_then(|status| status.last_state.as_ref()?.terminated.clone()).context("no last state")?;
    assert_eq!((last.exit_code, last.reason.as_deref()), (0, Some("Completed")), "it was not told to end first");
    Ok(())
}

pub(crate) async fn a_hook_runs_before_the_signal_and_the_grace_is_not_used_up(ctx: Ctx) -> Result<()> {
    // On the machine itself: what is written while the pod ends must still be there afterwards.
    let dir = std::env::temp_dir().join(format!("boathook-{}", ctx.namespace()));
    let script = "trap 'cat data/hook >data/seen; exit 0' TERM; echo ready; sleep 2147483647 & wait";
    let hook = json!({"preStop": {"exec": {"command": shell("echo the anchor is up >data/hook")}}});
    let spec = json!({
        "terminationGracePeriodSeconds": 3600,
        "volumes": [{"name": "data", "hostPath": {"path": dir, "type": "DirectoryOrCreate"}}],
        "containers": [{"name": "main", "command": shell(script), "lifecycle": hook}],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    ready(&ctx).await?;
    ctx.follow_log_until(DEADLINE, "box", "ready").await?;
    ctx.api::<Pod>().delete("box", &DeleteParams::default()).await?;
    gone(&ctx).await?;
    let seen = std::fs::read_to_string(dir.join("seen"));
    std::fs::remove_dir_all(&dir)?;
    assert_eq!(seen?, "the anchor is up\n");
    Ok(())
}

pub(crate) async fn who_does_not_end_is_killed_after_the_grace(ctx: Ctx) -> Result<()> {
    let script = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let spec = json!({
        "terminationGracePeriodSeconds": 3, "containers": [{"name": "main", "command": shell(script)}],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    ready(&ctx).await?;
    ctx.follow_log_until(DEADLINE, "box", "ready").await?;
    let told = Instant::now();
    ctx.api::<Pod>().delete("box", &DeleteParams::default()).await?;
    gone(&ctx).await?;
    ensure!(told.elapsed() >= Duration::from_secs(3), "it was killed after {:?}", told.elapsed());
    Ok(())
}

pub(crate) async fn variables_come_from_maps_secrets_fields_and_each_other(ctx: Ctx) -> Result<()> {
    let map = json!({"metadata": {"name": "chart"}, "data": {"DEPTH": "7"}});
    ctx.create::<ConfigMap>(&serde_json::from_value(map)?).await?;
    let secret = json!({"metadata": {"name": "cargo"}, "stringData": {"RUM": "8 barrels"}});
    ctx.create::<Secret>(&serde_json::from_value(secret)?).await?;
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let env = json!([
        {"name": "PLAIN", "value": "a"},
        {"name": "TWICE", "value": "$(PLAIN)$(PLAIN) $$(PLAIN) $(NOBODY) $(SEA_DEPTH)"},
        {"name": "DEPTH", "value": "own"},
        {"name": "NAME", "valueFrom": field("metadata.name")},
        {"name": "SPACE", "valueFrom": field("metadata.namespace")},
        {"name": "ADDRESS", "valueFrom": field("status.podIP")},
        {"name": "ONE_KEY", "valueFrom": {"secretKeyRef": {"name": "cargo", "key": "RUM"}}},
        {"name": "ABSENT", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": true}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}},
    ]);
    let env_from = json!([
        {"configMapRef": {"name": "chart"}},
        {"configMapRef": {"name": "chart"}, "prefix": "SEA_"},
        {"secretRef": {"name": "cargo"}},
        {"configMapRef": {"name": "none", "optional": true}},
    ]);
    let resources = json!({"requests": {"cpu": "20m"}});
    let container = json!({
        "name": "main", "command": ["sh", "-c", IDLE, "$(PLAIN)"], "env": env, "envFrom": env_from, "resources": resources,
    });
    ctx.create(&pod(&ctx, json!({"containers": [container]}))?).await?;
    let pod = ready(&ctx).await?;
    let told = exec(["env"]).in_pod(&ctx, "box").await?.success()?;
    let told = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let address = pod.status.and_then(|status| status.pod_ip);
    for (name, value) in [
        ("TWICE", Some("aa $(PLAIN) $(NOBODY) 7")),
        ("DEPTH", Some("own")),
        ("SEA_DEPTH", Some("7")),
        ("RUM", Some("8 barrels")),
        ("NAME", Some("box")),
        ("SPACE", Some(ctx.namespace())),
        ("ADDRESS", address.as_deref()),
        ("ONE_KEY", Some("8 barrels")),
        ("ABSENT", None),
        ("CPU", Some("20")),
    ] {
        assert_eq!(told(name), value, "{name}");
    }
    Ok(())
}

pub(crate) async fn a_container_runs_as_the_user_it_names_and_else_the_pods(ctx: Ctx) -> Result<()> {
    let script = format!("echo $(id -u):$(id -g) >data/$NAME; {IDLE}");
    let main = json!({"name": "main", "command": shell(&script), "env": [{"name": "NAME", "value": "main"}]});
    let mut other = main.clone();
    (other["name"], other["env"][0]["value"]) = ("other".into(), "other".into());
    other["securityContext"] = json!({"runAsUser": 4321});
    let spec = json!({
        "securityContext": {"runAsUser": 1234, "runAsGroup": 5678}, "volumes": data(), "containers": [main, other],
    });
    ctx.create(&pod(&ctx, spec)?).await?;
    ready(&ctx).await?;
    let who = "until test -s data/main && test -s data/other; do sleep 0.1; done; cat data/main data/other";
    let told = exec(["sh", "-c", who]).in_container(&ctx, "box", "main").await?.success()?;
    assert_eq!(told, "1234:5678\n4321:5678\n");
    Ok(())
}

pub(crate) async fn a_sub_path_is_a_part_of_its_volume(ctx: Ctx) -> Result<()> {
    let mounts = json!([
        {"name": "data", "mountPath": "/whole"},
        {"name": "data", "mountPath": "/part", "subPath": "deep/down"},
        {"name": "data", "mountPath": "/own", "subPathExpr": "of-$(NAME)"},
    ]);
    let env = json!([{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
    let container = json!({"name": "main", "command": shell(IDLE), "env": env, "volumeMounts": mounts});
    ctx.create(&pod(&ctx, json!({"volumes": data(), "containers": [container]}))?).await?;
    ready(&ctx).await?;
    let script = "echo a >part/file && echo b >own/file && cat whole/deep/down/file whole/of-box/file";
    assert_eq!(exec(["sh", "-c", script]).in_pod(&ctx, "box").await?.success()?, "a\nb\n");
    Ok(())
}
