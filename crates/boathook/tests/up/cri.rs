//! The node's CRI socket, where the scenarios (which also ask containerd) do not reach: the streams of an exec, what is
//! not served, and the socket itself.

use std::path::Path;

use boathook_cri::{
    ContainerStatusRequest, ExecRequest, ListContainersRequest, RuntimeServiceClient, VersionRequest, VersionResponse,
};
use futures::{SinkExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tonic::Code;
use tonic::transport::Channel;

use super::{Cluster, DEADLINE, looking, own_seconds, running, sleeper};

type Runtime = RuntimeServiceClient<Channel>;

async fn only_container(runtime: &mut Runtime) -> String {
    let listed = runtime.list_containers(ListContainersRequest::default()).await.unwrap().into_inner().containers;
    assert_eq!(listed.len(), 1, "{listed:?}");
    listed[0].id.clone()
}

/// Where the streams of this script can be fetched.
async fn offered(runtime: &mut Runtime, container_id: &str, script: &str) -> String {
    let cmd = ["sh", "-c", script].map(str::to_owned).into();
    let request =
        ExecRequest { container_id: container_id.to_owned(), cmd, stdin: true, stdout: true, stderr: true, tty: false };
    runtime.exec(request).await.unwrap().into_inner().url
}

async fn connect(url: &str, protocol: &str) -> Result<WebSocketStream<TcpStream>, Error> {
    let mut request = url.replacen("http://", "ws://", 1).into_client_request()?;
    let address = format!("{}:{}", request.uri().host().unwrap(), request.uri().port_u16().unwrap());
    request.headers_mut().insert("sec-websocket-protocol", protocol.parse().unwrap());
    Ok(client_async(request, TcpStream::connect(address).await?).await?.0)
}

/// The HTTP status with which a WebSocket was refused.
async fn refusal(url: &str, protocol: &str) -> u16 {
    match connect(url, protocol).await {
        Err(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_exec_over_cri_has_streams_that_are_fetched_once() {
    tokio::time::timeout(DEADLINE, async {
        let mut cluster = Cluster::new("streams");
        cluster.up();
        let client = cluster.client().await;
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        pods.create(&PostParams::default(), &sleeper(&own_seconds())).await.unwrap();
        running(&client).await;
        let mut runtime = boathook_cri::client(&cluster.dir.join("node/cri.sock"));
        let id = only_container(&mut runtime).await;

        let url = offered(&mut runtime, &id, "read line; echo got $line; echo err >&2; exit 3").await;
        assert_eq!(refusal(&url, "v5.channel.k8s.io").await, 403);
        let mut socket = connect(&url, "v4.channel.k8s.io").await.unwrap();
        socket.send(Message::Binary(b"\x00ahoy\n".to_vec().into())).await.unwrap();
        let (mut out, mut err, mut status) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(Ok(Message::Binary(bytes))) = socket.next().await {
            let channel = match bytes[0] {
                1 => &mut out,
                2 => &mut err,
                3 => &mut status,
                other => panic!("nothing was asked for on channel {other}"),
            };
            channel.extend_from_slice(&bytes[1..]);
        }
        assert_eq!((out.as_slice(), err.as_slice()), (&b"got ahoy\n"[..], &b"err\n"[..]));
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
        assert_eq!(status["details"]["causes"][0]["message"], "3");
        assert_eq!(refusal(&url, "v4.channel.k8s.io").await, 404);

        // A container that has ended, with its pod, is gone.
        pods.delete("sleeper", &DeleteParams::default().grace_period(0)).await.unwrap();
        let asked = ContainerStatusRequest { container_id: id.clone(), verbose: false };
        let gone = async || {
            let answer = runtime.container_status(asked.clone()).await;
            answer.is_err_and(|error| error.code() == Code::NotFound)
        };
        looking::until("the container is gone", gone).await;
        assert_eq!(cluster.end(Signal::TERM), Some(0));
        runtime.version(VersionRequest::default()).await.unwrap_err();
        // The same client finds the next runtime at the same place.
        cluster.up();
        runtime.version(VersionRequest::default()).await.unwrap();
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_of_cri_is_not_served_is_unimplemented() {
    // Too long a path for a socket's name.
    let mut cluster = Cluster::new(&"long-".repeat(25));
    cluster.up();
    let socket: &Path = &cluster.dir.join("node/cri.sock");
    assert!(socket.as_os_str().len() > 108);
    boathook_cri::client(socket).version(VersionRequest::default()).await.unwrap();
    let channel = boathook_cri::connect(socket);
    let mut grpc = tonic::client::Grpc::new(channel);
    for method in ["/runtime.v1.RuntimeService/StopContainer", "/runtime.v1.ImageService/ListImages"] {
        grpc.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<VersionRequest, VersionResponse>::default();
        let asked = tonic::Request::new(VersionRequest::default());
        let answer = grpc.unary(asked, method.parse().unwrap(), codec).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unimplemented, "{method}");
    }
}
