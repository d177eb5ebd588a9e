//! The service account that a pod acts for: its token in the pod, and what that token may do.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use boathook_tests::{
    Ctx, DEADLINE,
    exec::exec,
    pods::{is_ready, pod},
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{Api, Client, ResourceExt, api::ListParams, config::AuthInfo};
use serde_json::json;

/// A pod of this account that says nothing of tokens.
fn pod_of(ctx: &Ctx, account: Option<&str>) -> Result<Pod> {
    let mut pod = pod("box", ctx.images().shell).idle().build();
    let spec = pod.spec.as_mut().context("a built pod has a spec")?;
    spec.automount_service_account_token = None;
    spec.service_account_name = account.map(str::to_owned);
    Ok(pod)
}

pub(crate) async fn a_pod_finds_a_token_by_which_the_api_server_knows_it(ctx: Ctx) -> Result<()> {
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "sailor"}}))?;
    ctx.create(&account).await?;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    ctx.create::<Role>(&serde_json::from_value(json!({"metadata": {"name": "lookout"}, "rules": rules}))?).await?;
    let binding = json!({
        "metadata": {"name": "lookout"},
        "subjects": [{"kind": "ServiceAccount", "name": "sailor"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lookout"},
    });
    ctx.create::<RoleBinding>(&serde_json::from_value(binding)?).await?;
    ctx.create(&pod_of(&ctx, Some("sailor"))?).await?;
    ctx.watch_until(DEADLINE, "box", "is ready", is_ready).await?;

    // Named from the directory that a container starts in, which is all the root that a plain process has.
    let read = async |name: &str| {
        exec(["cat", &format!("var/run/secrets/kubernetes.io/serviceaccount/{name}")])
            .in_pod(&ctx, "box")
            .await?
            .success()
    };
    assert_eq!(read("namespace").await?, ctx.namespace());
    let bundle = ctx.api::<ConfigMap>().get("kube-root-ca.crt").await?;
    assert_eq!(bundle.data.and_then(|mut data| data.remove("ca.crt")), Some(read("ca.crt").await?));

    let mut config = ctx.config();
    config.auth_info = AuthInfo { token: Some(read("token").await?.into()), ..AuthInfo::default() };
    let client = Client::try_from(config)?;
    let pods = Api::<Pod>::namespaced(client.clone(), ctx.namespace()).list(&ListParams::default()).await?;
    assert_eq!(pods.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["box"]);
    let maps = Api::<ConfigMap>::namespaced(client, ctx.namespace()).list(&ListParams::default()).await;
    let user = format!("User \"system:serviceaccount:{}:sailor\" cannot list", ctx.namespace());
    ensure!(maps.as_ref().is_err_and(|error| error.to_string().contains(&user)), "{maps:?}");
    Ok(())
}

pub(crate) async fn a_pod_is_told_where_the_api_server_is(ctx: Ctx) -> Result<()> {
    ctx.create(&pod_of(&ctx, None)?).await?;
    let made: Pod = ctx.watch_until(DEADLINE, "box", "is ready", is_ready).await?;
    assert_eq!(made.spec.and_then(|spec| spec.service_account_name).as_deref(), Some("default"));
    let told = exec(["env"]).in_pod(&ctx, "box").await?.success()?;
    let told: BTreeMap<&str, &str> = told.lines().filter_map(|line| line.split_once('=')).collect();
    let service = Api::<Service>::namespaced(ctx.client(), "default").get("kubernetes").await?;
    let spec = service.spec.context("a Service has a spec")?;
    let (address, port) = (spec.cluster_ip.unwrap_or_default(), spec.ports.context("no ports")?[0].port.to_string());
    let url = format!("tcp://{address}:{port}");
    for (name, value) in [
        ("KUBERNETES_SERVICE_HOST".to_owned(), &address),
        ("KUBERNETES_SERVICE_PORT".to_owned(), &port),
        ("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), &port),
        ("KUBERNETES_PORT".to_owned(), &url),
        (format!("KUBERNETES_PORT_{port}_TCP"), &url),
        (format!("KUBERNETES_PORT_{port}_TCP_ADDR"), &address),
        (format!("KUBERNETES_PORT_{port}_TCP_PORT"), &port),
        (format!("KUBERNETES_PORT_{port}_TCP_PROTO"), &"tcp".to_owned()),
    ] {
        assert_eq!(told.get(name.as_str()), Some(&value.as_str()), "{name}");
    }
    Ok(())
}

pub(crate) async fn a_pod_of_an_account_that_is_not_there_is_forbidden(ctx: Ctx) -> Result<()> {
    let refused = ctx.create(&pod_of(&ctx, Some("nobody"))?).await.err().context("it was not refused")?;
    let why = format!(
        "pods \"box\" is forbidden: error looking up service account {}/nobody: serviceaccount \"nobody\" not found",
        ctx.namespace()
    );
    ensure!(format!("{refused:#}").contains(&why), "{refused:#}");
    Ok(())
}
