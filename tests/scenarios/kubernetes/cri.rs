//! A node's container runtime, asked as an agent asks it: containerd and the embedded node answer alike.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, Result, ensure};
use boathook_cri::{
    ContainerFilter, ContainerState, ContainerStateValue, ContainerStatusRequest, ExecRequest, ExecSyncRequest,
    ListContainersRequest, ListPodSandboxRequest, PodSandboxFilter, PodSandboxState, PodSandboxStatusRequest,
    RuntimeServiceClient, VersionRequest, labels,
};
use boathook_tests::{
    Ctx, DEADLINE,
    pods::{is_ready, pod},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tonic::{Code, transport::Channel};

/// A running pod, the runtime of its node, and the id of its only container.
async fn running_box(ctx: &Ctx) -> Result<(Pod, RuntimeServiceClient<Channel>, String)> {
    let mut idle = pod("box", ctx.images().shell).idle().label("app", "box").build();
    idle.annotations_mut().insert("example.com/declared".to_owned(), "before".to_owned());
    ctx.create(&idle).await?;
    let pod: Pod = ctx.watch_until(DEADLINE, "box", "is ready", is_ready).await?;
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let id = statuses.filter_map(|status| status.container_id.as_deref()).next().context("no container id")?;
    let id = id.split_once("://").context("a container id begins with its runtime")?.1.to_owned();
    let runtime = ctx.runtime_of(&pod).await?;
    Ok((pod, runtime, id))
}

fn exec_sync(id: &str, script: &str, timeout: i64) -> ExecSyncRequest {
    ExecSyncRequest { container_id: id.to_owned(), cmd: ["sh", "-c", script].map(str::to_owned).into(), timeout }
}

pub(crate) async fn a_container_and_its_process_are_found_by_the_pods_uid(ctx: Ctx) -> Result<()> {
    let (pod, mut runtime, id) = running_box(&ctx).await?;
    let version = runtime.version(VersionRequest::default()).await?.into_inner();
    assert_eq!((version.version.as_str(), version.runtime_api_version.as_str()), ("0.1.0", "v1"));

    // What is declared later must not reach who reads the sandbox.
    let later = json!({"metadata": {"annotations": {"example.com/declared": "after"}}});
    ctx.api::<Pod>().patch("box", &PatchParams::default(), &Patch::Merge(later)).await?;
    let of_pod: HashMap<String, String> = [(labels::POD_UID.to_owned(), pod.uid().context("no uid")?)].into();
    let filter = PodSandboxFilter { label_selector: of_pod.clone(), ..PodSandboxFilter::default() };
    let listed = runtime.list_pod_sandbox(ListPodSandboxRequest { filter: Some(filter) }).await?.into_inner().items;
    let [sandbox] = listed.as_slice() else { anyhow::bail!("not one sandbox: {listed:?}") };
    assert_eq!(sandbox.state(), PodSandboxState::SandboxReady);
    assert_eq!(sandbox.annotations["example.com/declared"], "before");
    for (key, value) in [("app", "box"), (labels::POD_NAME, "box"), (labels::POD_NAMESPACE, ctx.namespace())] {
        assert_eq!(sandbox.labels[key], value);
    }
    let asked = PodSandboxStatusRequest { pod_sandbox_id: sandbox.id.clone(), verbose: false };
    let status = runtime.pod_sandbox_status(asked).await?.into_inner().status.context("no status")?;
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
    assert_eq!(status.network.as_ref().map(|network| network.ip.as_str()), address);
    assert_eq!((&status.metadata, &status.labels), (&sandbox.metadata, &sandbox.labels));

    let state = Some(ContainerStateValue { state: ContainerState::ContainerRunning.into() });
    let (pod_sandbox_id, label_selector) = (sandbox.id.clone(), of_pod);
    let filter = ContainerFilter { state, pod_sandbox_id, label_selector, ..ContainerFilter::default() };
    let request = ListContainersRequest { filter: Some(filter.clone()) };
    let listed = runtime.list_containers(request).await?.into_inner().containers;
    let [container] = listed.as_slice() else { anyhow::bail!("not one container: {listed:?}") };
    assert_eq!((&container.id, &container.pod_sandbox_id), (&id, &sandbox.id));
    assert_eq!(container.labels[labels::CONTAINER_NAME], "main");
    let ended = Some(ContainerStateValue { state: ContainerState::ContainerExited.into() });
    let none = ListContainersRequest { filter: Some(ContainerFilter { state: ended, ..filter }) };
    assert_eq!(runtime.list_containers(none).await?.into_inner().containers, []);

    let asked = ContainerStatusRequest { container_id: id.clone(), verbose: true };
    let told = runtime.container_status(asked).await?.into_inner();
    let status = told.status.context("no status")?;
    assert_eq!((status.state(), &status.metadata), (ContainerState::ContainerRunning, &container.metadata));
    let info: serde_json::Value = serde_json::from_str(&told.info["info"])?;
    let command = std::fs::read_to_string(format!("/proc/{}/cmdline", info["pid"]))?;
    ensure!(command.starts_with("sh\0-c\0trap"), "process {} is {command:?}, not the container's", info["pid"]);
    Ok(())
}

pub(crate) async fn a_command_has_its_outputs_its_exit_code_and_its_time(ctx: Ctx) -> Result<()> {
    let (_, mut runtime, id) = running_box(&ctx).await?;
    let ended = runtime.exec_sync(exec_sync(&id, "echo out; echo err >&2; exit 7", 60)).await?.into_inner();
    assert_eq!((ended.exit_code, ended.stdout.as_slice(), ended.stderr.as_slice()), (7, &b"out\n"[..], &b"err\n"[..]));
    let killed = runtime.exec_sync(exec_sync(&id, "kill -9 $$", 60)).await?.into_inner();
    assert_eq!(killed.exit_code, 137);
    // More than fits into a pipe.
    let much = runtime.exec_sync(exec_sync(&id, "seq 100000 >&2; seq 100000", 60)).await?.into_inner();
    assert_eq!((much.stdout.len(), much.stderr.len()), (588_895, 588_895));

    let begun = std::time::Instant::now();
    let late = runtime.exec_sync(exec_sync(&id, "exec sleep 600", 1)).await.err().context("it was not refused")?;
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
    ensure!(begun.elapsed() < Duration::from_secs(300), "the timeout did not end it");

    let missing = ExecSyncRequest { container_id: id.clone(), cmd: vec!["no-such-program".to_owned()], timeout: 60 };
    let refused = runtime.exec_sync(missing).await.err().context("it was not refused")?;
    assert_eq!(refused.code(), Code::Unknown);
    ensure!(refused.message().contains("no-such-program"), "{refused}");
    Ok(())
}

pub(crate) async fn an_exec_is_offered_where_only_the_node_reaches_it(ctx: Ctx) -> Result<()> {
    let (_, mut runtime, id) = running_box(&ctx).await?;
    let cmd = vec!["cat".to_owned()];
    let wanted = ExecRequest { container_id: id, cmd, stdin: true, stdout: true, stderr: true, tty: false };
    let url = runtime.exec(wanted.clone()).await?.into_inner().url;
    let token =
        url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split_once("/exec/")).map(|(_, token)| token);
    ensure!(token.is_some_and(|token| token.len() >= 8), "{url}");
    ensure!(runtime.exec(wanted.clone()).await?.into_inner().url != url, "two commands have one place");

    let both = runtime.exec(ExecRequest { tty: true, ..wanted.clone() }).await.err().context("it was not refused")?;
    assert_eq!((both.code(), both.message()), (Code::InvalidArgument, "tty and stderr cannot both be true"));
    let nothing = ExecRequest { stdin: false, stdout: false, stderr: false, ..wanted };
    let nothing = runtime.exec(nothing).await.err().context("it was not refused")?;
    assert_eq!(
        (nothing.code(), nothing.message()),
        (Code::InvalidArgument, "one of stdin, stdout, or stderr must be set")
    );
    Ok(())
}

pub(crate) async fn an_unknown_container_is_not_found(ctx: Ctx) -> Result<()> {
    let (_, mut runtime, _) = running_box(&ctx).await?;
    let container_id = "0".repeat(64);
    let asked = ContainerStatusRequest { container_id: container_id.clone(), verbose: true };
    let exec = ExecRequest { container_id: container_id.clone(), stdout: true, ..ExecRequest::default() };
    let sandbox = PodSandboxStatusRequest { pod_sandbox_id: container_id.clone(), verbose: false };
    for refused in [
        runtime.container_status(asked).await.err().context("it was not refused")?,
        runtime.exec(exec).await.err().context("it was not refused")?,
        runtime.exec_sync(exec_sync(&container_id, "true", 1)).await.err().context("it was not refused")?,
        runtime.pod_sandbox_status(sandbox).await.err().context("it was not refused")?,
    ] {
        assert_eq!(refused.code(), Code::NotFound, "{refused}");
    }
    Ok(())
}
