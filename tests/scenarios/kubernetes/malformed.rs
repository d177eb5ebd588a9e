//! What no client should send: refused as Kubernetes refuses it, and the server goes on.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use boathook_tests::{
    Ctx, DEADLINE,
    exec::exec,
    pods::{is_ready, pod},
};
use http_body_util::{BodyExt, Limited};
use hyper::{
    Method, Request,
    header::{self, HeaderName},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client, Config,
    api::ListParams,
    client::{Body, ConfigExt},
    config::AuthInfo,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};

/// The requests, and what Kubernetes says of each; `{ns}` is the scenario's namespace.
const CASES: &str = include_str!("malformed.yaml");

/// More than any refusal.
const CAP: usize = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// `METHOD /path?query`.
    request: String,
    /// The body's content type.
    r#type: Option<String>,
    accept: Option<String>,
    #[serde(default)]
    body: String,
    /// The code, and the reason of a refusal.
    answer: String,
    /// The whole message; without it only that there is one: its words are a parser's.
    message: Option<String>,
    /// The warnings, all of them.
    #[serde(default)]
    warnings: Vec<String>,
}

pub(crate) async fn malformed_requests_are_refused_in_kubernetes_words(ctx: Ctx) -> Result<()> {
    let made = ctx.create(&there()).await?;
    let cases: Vec<Case> = serde_saphyr::from_str(CASES).map_err(|error| anyhow::anyhow!("{error}"))?;
    ensure!(!cases.is_empty(), "there are no requests");
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(error) = check(&ctx, case).await {
            wrong.push(format!("{} {:?} {}: {error:#}", case.request, case.r#type, case.body));
        }
    }
    ensure!(wrong.is_empty(), "{} of {} requests:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert_eq!(ctx.api::<ConfigMap>().get("there").await?, made, "none of it changed anything");
    Ok(())
}

async fn check(ctx: &Ctx, case: &Case) -> Result<()> {
    let headers = [(header::CONTENT_TYPE, &case.r#type), (header::ACCEPT, &case.accept)];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect::<Vec<_>>();
    let answer = send(&ctx.client(), ctx, &case.request, &headers, case.body.clone().into_bytes()).await?;
    let said = |field: &str| answer.body[field].as_str().unwrap_or_default();
    let reason = if answer.code < 400 { answer.code_text } else { said("reason") };
    let summary = format!("{} {reason}", answer.code);
    ensure!(summary.trim_end() == case.answer, "the answer is {summary}: {}", answer.body);
    ensure!(answer.warnings == case.warnings, "the warnings are {:?}", answer.warnings);
    match &case.message {
        Some(message) => {
            ensure!(said("message") == message.replace("{ns}", ctx.namespace()), "it says: {}", said("message"));
        }
        None => ensure!(answer.code < 400 || !said("message").is_empty(), "it says nothing"),
    }
    Ok(())
}

pub(crate) async fn objects_too_large_or_too_deep_are_refused(ctx: Ctx) -> Result<()> {
    let maps = "/api/v1/namespaces/{ns}/configmaps";
    let object = |data: &str| {
        let text =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"a": "DATA"}});
        text.to_string().replace("\"DATA\"", data).into_bytes()
    };
    let large = object(&format!("\"{}\"", "x".repeat(5 << 20)));
    let deep = object(&format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)));
    for (form, body, code, reason) in [
        ("application/json", &large, 413, "RequestEntityTooLarge"),
        ("application/yaml", &large, 413, "RequestEntityTooLarge"),
        ("application/json", &deep, 400, "BadRequest"),
        ("application/yaml", &deep, 400, "BadRequest"),
    ] {
        let headers = [(header::CONTENT_TYPE, form.to_owned())];
        let answer = send(&ctx.client(), &ctx, &format!("POST {maps}"), &headers, body.clone()).await?;
        let said = (answer.code, answer.body["reason"].as_str());
        assert_eq!(said, (code, Some(reason)), "{form}, {} bytes: {}", body.len(), answer.body);
    }
    ctx.create(&there()).await.map(drop).context("the server does not go on")
}

pub(crate) async fn who_cannot_be_known_is_refused(ctx: Ctx) -> Result<()> {
    for (token, code) in [
        ("Bearer nope", 401),
        ("bearer nope", 401),
        ("Bearer a b", 401),
        ("Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.AAAA", 401),
        // Nobody: that is somebody, who may do nothing here.
        ("", 403),
        ("Bearer", 403),
        ("Basic YTpi", 403),
    ] {
        let mut config = ctx.config();
        config.auth_info = AuthInfo::default();
        if !token.is_empty() {
            config.headers.push((header::AUTHORIZATION, token.parse()?));
        }
        let client = Client::try_from(config)?;
        for path in ["/api/v1/namespaces/{ns}/configmaps", "/apis/no.such.group/v1/things"] {
            let answer = send(&client, &ctx, &format!("GET {path}"), &[], Vec::new()).await?;
            let reason = if code == 401 { "Unauthorized" } else { "Forbidden" };
            let said = (answer.code, answer.body["reason"].as_str());
            assert_eq!(said, (code, Some(reason)), "`{token}` at {path}: {}", answer.body);
        }
    }
    Ok(())
}

pub(crate) async fn half_a_request_is_in_nobodys_way(ctx: Ctx) -> Result<()> {
    let body =
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"kind\"";
    let mut open = Vec::new();
    for _ in 0..20 {
        let mut plain = connect_plain(&ctx.config()).await?;
        plain.write_all(&[0x16, 0x03, 0x01, 0x02]).await?;
        let mut headers = connect(&ctx.config()).await?;
        headers.write_all(b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAcc").await?;
        let mut half = connect(&ctx.config()).await?;
        half.write_all(body.as_bytes()).await?;
        open.push((plain, headers, half));
    }
    ctx.api::<ConfigMap>().list(&ListParams::default()).await.context("half requests keep others from being served")?;
    drop(open);
    let mut garbage = connect(&ctx.config()).await?;
    garbage.write_all(b"\x00\x01garbage\r\n\r\n").await?;
    let mut answer = Vec::new();
    timeout(DEADLINE, garbage.take(1 << 16).read_to_end(&mut answer)).await.context("garbage is never answered")??;
    let answer = String::from_utf8_lossy(&answer);
    ensure!(answer.starts_with("HTTP/1.1 400 "), "garbage is answered by {answer:?}");
    ctx.api::<ConfigMap>().list(&ListParams::default()).await.context("the server does not go on").map(drop)
}

pub(crate) async fn broken_frames_end_an_exec_and_nothing_else(ctx: Ctx) -> Result<()> {
    ctx.create(&pod("box", ctx.images().shell).idle().build()).await?;
    ctx.watch_until(DEADLINE, "box", "is ready", is_ready).await?;
    let mask = [1, 2, 3, 4];
    let frames: [&[u8]; 6] = [
        // No frame at all.
        &[0xff; 64],
        // 1,000 bytes are announced, three come.
        &[&[0x82, 0xfe, 0x03, 0xe8], &mask[..], b"abc"].concat(),
        // More is announced than fits into memory.
        &[&[0x82, 0xff], &[0x7f; 8][..], &mask[..]].concat(),
        // A client must mask.
        &[0x82, 0x03, 0, b'h', b'i'],
        // No channel has this number.
        &[&[0x82, 0x82], &mask[..], &[9 ^ 1, b'x' ^ 2]].concat(),
        // An empty message has no channel.
        &[&[0x82, 0x80], &mask[..]].concat(),
    ];
    for frame in frames {
        let mut stream = open_exec(&ctx).await?;
        stream.write_all(frame).await?;
        // The other side may have closed already.
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let ended = timeout(DEADLINE, stream.take(CAP as u64).read_to_end(&mut rest)).await;
        ensure!(ended.is_ok(), "an exec goes on after the frame {frame:02x?}");
        let said = exec(["echo", "ahoy"]).in_pod(&ctx, "box").await?.success()?;
        assert_eq!(said, "ahoy\n", "after the frame {frame:02x?}");
    }
    Ok(())
}

/// A `cat` in the pod `box`, over a WebSocket that nobody speaks yet.
async fn open_exec(ctx: &Ctx) -> Result<TlsStream<TcpStream>> {
    let config = ctx.config();
    let token = serde_json::to_value(&config.auth_info)?["token"].as_str().map(str::to_owned);
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let path = format!("/api/v1/namespaces/{}/pods/box/exec?command=cat&stdin=true&stdout=true", ctx.namespace());
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n{authorization}\r\n"
    );
    let mut stream = connect(&config).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    let reading = async {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
            ensure!(head.len() < 1 << 16, "the answer's head does not end");
        }
        Ok(())
    };
    timeout(DEADLINE, reading).await.context("the exec does not open")??;
    let head = String::from_utf8_lossy(&head);
    ensure!(head.starts_with("HTTP/1.1 101 "), "the exec is answered by {head}");
    Ok(stream)
}

async fn connect_plain(config: &Config) -> Result<TcpStream> {
    let url = &config.cluster_url;
    let host = url.host().context("the cluster's URL has no host")?;
    Ok(timeout(DEADLINE, TcpStream::connect((host, url.port_u16().unwrap_or(443)))).await??)
}

async fn connect(config: &Config) -> Result<TlsStream<TcpStream>> {
    let host = config.cluster_url.host().context("the cluster's URL has no host")?;
    let name = ServerName::try_from(config.tls_server_name.as_deref().unwrap_or(host).to_owned())?;
    let connector = TlsConnector::from(Arc::new(config.rustls_client_config()?));
    Ok(timeout(DEADLINE, connector.connect(name, connect_plain(config).await?)).await??)
}

struct Answer {
    code: u16,
    /// `OK`, `Created`.
    code_text: &'static str,
    /// `Null` if it is no JSON.
    body: Value,
    warnings: Vec<String>,
}

async fn send(
    client: &Client,
    ctx: &Ctx,
    request: &str,
    headers: &[(HeaderName, String)],
    body: Vec<u8>,
) -> Result<Answer> {
    let Some((method, path)) = request.split_once(' ') else { bail!("`{request}` is not `METHOD /path`") };
    let method = Method::from_bytes(method.as_bytes())?;
    let mut request = Request::builder().method(method).uri(path.replace("{ns}", ctx.namespace()));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = timeout(DEADLINE, client.send(request.body(Body::from(body))?)).await.context("no answer came")??;
    let warnings = answer.headers().get_all(header::WARNING).iter();
    let warnings = warnings.map(|warning| Ok(warning.to_str()?.to_owned())).collect::<Result<_>>()?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), CAP).collect();
    let body = timeout(DEADLINE, body).await.context("the answer does not end")?.map_err(anyhow::Error::from_boxed)?;
    let body = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    Ok(Answer { code: status.as_u16(), code_text: status.canonical_reason().unwrap_or_default(), body, warnings })
}

fn there() -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("there".to_owned());
    map.data = Some([("a".to_owned(), "1".to_owned())].into());
    map
}
