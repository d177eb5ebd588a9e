//! A client in a pod, with nothing but what every pod is given.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, PostParams};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use rustix::process::Signal;
use tokio::io::AsyncReadExt;

use super::{Cluster, DEADLINE, own_seconds, running, sleeper};

/// What a shell in the sleeper prints, as soon as it runs: after a restart the API server still tells of the last run.
async fn printed(pods: &Api<Pod>, script: &str) -> String {
    let printing = async {
        loop {
            let command = ["sh", "-c", script];
            let mut process = pods.exec("sleeper", command, &AttachParams::default().stderr(false)).await.unwrap();
            let ended = process.take_status().unwrap();
            let mut text = String::new();
            process.stdout().unwrap().read_to_string(&mut text).await.unwrap();
            if ended.await.and_then(|status| status.status).as_deref() == Some("Success") {
                return text;
            }
        }
    };
    tokio::time::timeout(DEADLINE, printing).await.expect("the pod does not run")
}

#[tokio::test]
async fn a_client_in_a_pod_reaches_the_api_server_again_after_its_restart() {
    let mut cluster = Cluster::new("inside");
    for start in ["first", "second"] {
        cluster.up();
        let client = cluster.client().await;
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        if start == "first" {
            pods.create(&PostParams::default(), &sleeper(&own_seconds())).await.unwrap();
        }
        running(&client).await;
        let url = printed(&pods, "echo https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT").await;
        let mut config = Config::new(url.trim().parse().unwrap());
        let file = |name: &str| format!("cat var/run/secrets/kubernetes.io/serviceaccount/{name}");
        let authority = printed(&pods, &file("ca.crt")).await;
        config.root_cert = Some(vec![pem_contents(&authority)]);
        let token = printed(&pods, &file("token")).await;
        config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
        let inside = Client::try_from(config).unwrap();
        let refused = Api::<Pod>::default_namespaced(inside).get("sleeper").await.unwrap_err().to_string();
        assert!(refused.contains("User \"system:serviceaccount:default:default\" cannot get"), "{start}: {refused}");
        assert_eq!(cluster.end(Signal::TERM), Some(0));
    }
}

fn pem_contents(pem: &str) -> Vec<u8> {
    use base64::Engine as _;
    let lines: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    base64::engine::general_purpose::STANDARD.decode(lines).unwrap()
}
