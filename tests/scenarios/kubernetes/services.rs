//! Services: from a pod to the pods behind a cluster address.

use anyhow::{Context, Result};
use boathook_tests::{
    Ctx, DEADLINE,
    exec::exec,
    images::LANTERN,
    pods::{is_ready, pod},
    poll::Look,
};
use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

const PAGE: &str = "the harbour is open";
const SERVER_PORT: i32 = 8080;
/// Not below 1024: there the embedded cluster of an ordinary user cannot listen.
const SERVICE_PORT: i32 = 8000;

pub(crate) async fn a_service_reaches_its_pod(ctx: Ctx) -> Result<()> {
    let lantern = pod("server", ctx.images().lantern);
    // On its own address only: on a cluster whose pods share a network, servers must not take each other's port.
    let server = lantern
        .command([LANTERN, "serve", &format!("$(POD_IP):{SERVER_PORT}"), PAGE])
        .env_from_field("POD_IP", "status.podIP")
        .label("app", "server")
        .ready_when_http_answers("/", SERVER_PORT);
    ctx.create(&server.build()).await?;
    ctx.create(&pod("guest", ctx.images().lantern).build()).await?;
    let address = ctx.create(&service()).await?.spec.and_then(|spec| spec.cluster_ip).context("no cluster IP")?;
    ctx.watch_until(DEADLINE, "server", "is ready", is_ready).await?;
    ctx.watch_until(DEADLINE, "guest", "is ready", is_ready).await?;

    // The node's proxy follows the endpoints in its own time and tells nobody.
    let url = format!("http://{address}:{SERVICE_PORT}/");
    let what = format!("pod `guest` gets a page from {url}");
    let get = async || {
        let outcome = exec([LANTERN, "get", &url]).in_pod(&ctx, "guest").await?;
        Ok(match outcome.exit_code()? {
            0 => Look::Done(outcome.success()?),
            _ => Look::NotYet(outcome.to_string()),
        })
    };
    assert_eq!(ctx.poll_until(DEADLINE, &what, get).await?.trim_end(), PAGE);
    Ok(())
}

fn service() -> Service {
    let port =
        ServicePort { port: SERVICE_PORT, target_port: Some(IntOrString::Int(SERVER_PORT)), ..ServicePort::default() };
    let selector = [("app".to_owned(), "server".to_owned())].into();
    Service {
        metadata: ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() },
        spec: Some(ServiceSpec { selector: Some(selector), ports: Some(vec![port]), ..ServiceSpec::default() }),
        status: None,
    }
}
