//! Probes: asking a container how it is, and when an answer counts.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, ExecAction, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::https;
use crate::runtime::container::Container;

/// What of a command's output is kept, as a kubelet does.
const KEPT_OUTPUT: usize = 10 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Startup,
    Liveness,
    Readiness,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Startup => "Startup",
            Kind::Liveness => "Liveness",
            Kind::Readiness => "Readiness",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Failure(String),
    /// It could not be asked: counts for nothing.
    Unknown(String),
}

/// How many answers of a kind it takes until they count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    success: i32,
    failure: i32,
    last: Option<bool>,
    run: i32,
}

impl Thresholds {
    pub(super) fn new(probe: &Probe) -> Thresholds {
        let (success, failure) = (probe.success_threshold.unwrap_or(1), probe.failure_threshold.unwrap_or(3));
        Thresholds { success, failure, last: None, run: 0 }
    }

    /// Whether the container is now well (or not), once enough answers in a row say so.
    pub(super) fn observe(&mut self, well: bool) -> Option<bool> {
        self.run = if self.last == Some(well) { self.run + 1 } else { 1 };
        self.last = Some(well);
        let enough = if well { self.success } else { self.failure };
        (self.run >= enough).then_some(well)
    }
}

pub(super) fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.filter(|value| *value > 0).map_or(default, |value| u64::from(value.unsigned_abs())))
}

/// Asks once.
pub(super) async fn ask(probe: &Probe, spec: &ContainerSpec, container: &Container, pod_ip: &str) -> Outcome {
    let timeout = seconds(probe.timeout_seconds, 1);
    if let Some(exec) = &probe.exec {
        return ask_command(exec, container, timeout).await;
    }
    if let Some(get) = &probe.http_get {
        return http_get(get, spec, pod_ip, timeout).await;
    }
    if let Some(TCPSocketAction { host, port }) = &probe.tcp_socket {
        let host = host.as_deref().unwrap_or(pod_ip);
        let Some(port) = port_number(port, spec) else {
            return Outcome::Unknown("couldn't find port".to_owned());
        };
        return match connect(host, port, timeout).await {
            Ok(_) => Outcome::Success,
            Err(error) => Outcome::Failure(error),
        };
    }
    Outcome::Unknown("missing probe handler".to_owned())
}

async fn ask_command(exec: &ExecAction, container: &Container, timeout: Duration) -> Outcome {
    let command = exec.command.clone().unwrap_or_default();
    let shown = command.join(" ");
    match run(container, command, timeout).await {
        Err(error) => Outcome::Unknown(error),
        Ok(None) => Outcome::Failure(format!("command timed out: \"{shown}\" timed out after {}s", timeout.as_secs())),
        Ok(Some((0, _))) => Outcome::Success,
        Ok(Some((_, output))) => Outcome::Failure(output),
    }
}

/// Runs a command in a container: its exit code and output, or nothing when it took too long.
pub(super) async fn run(
    container: &Container,
    command: Vec<String>,
    timeout: Duration,
) -> Result<Option<(i32, String)>, String> {
    let (running, outputs) = container.run(command, KEPT_OUTPUT).await.map_err(|error| {
        let why = "failed to exec in container: failed to start exec: OCI runtime exec failed: exec failed: unable to \
                   start container process";
        format!("rpc error: code = Unknown desc = {why}: {error}: unknown")
    })?;
    let ended = async {
        let (mut output, stderr) = outputs.await;
        output.extend(stderr);
        output.truncate(KEPT_OUTPUT);
        (running.wait().await.code, String::from_utf8_lossy(&output).into_owned())
    };
    let ended = tokio::time::timeout(timeout, ended).await.ok();
    if ended.is_none() {
        running.kill();
    }
    Ok(ended)
}

fn port_number(port: &IntOrString, spec: &ContainerSpec) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let named = spec.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())?
        }
    };
    number.try_into().ok()
}

async fn connect(host: &str, port: u16, timeout: Duration) -> Result<TcpStream, String> {
    let address = format!("{host}:{port}");
    match tokio::time::timeout(timeout, TcpStream::connect(&address)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Err(format!("dial tcp {address}: connect: connection refused"))
        }
        Ok(Err(error)) => Err(format!("dial tcp {address}: {error}")),
        Err(_) => Err(format!("dial tcp {address}: i/o timeout")),
    }
}

/// GET, as far as its status line. Redirects count as success.
pub(super) async fn http_get(get: &HTTPGetAction, spec: &ContainerSpec, pod_ip: &str, timeout: Duration) -> Outcome {
    let host = get.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(pod_ip);
    let Some(port) = port_number(&get.port, spec) else {
        return Outcome::Unknown("couldn't find port".to_owned());
    };
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let path = get.path.as_deref().unwrap_or("/");
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let failed = |error: String| Outcome::Failure(format!("Get \"{scheme}://{host}:{port}{path}\": {error}"));
    let named =
        |wanted: &str| get.http_headers.iter().flatten().find(|header| header.name.eq_ignore_ascii_case(wanted));
    let mut request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    let defaults = [
        ("Host", format!("{host}:{port}")),
        ("User-Agent", "kube-probe/1.35".to_owned()),
        ("Accept", "*/*".to_owned()),
    ];
    for (name, value) in defaults.iter().filter(|(name, _)| named(name).is_none()) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    for header in get.http_headers.iter().flatten() {
        request.push_str(&format!("{}: {}\r\n", header.name, header.value));
    }
    request.push_str("\r\n");
    let answer = async {
        let stream = connect(host, port, timeout).await?;
        match scheme.as_str() {
            "https" => status_code(https::handshake(stream, host).await?, &request).await,
            _ => status_code(stream, &request).await,
        }
    };
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(200..=399)) => Outcome::Success,
        Ok(Ok(code)) => Outcome::Failure(format!("HTTP probe failed with statuscode: {code}")),
        Ok(Err(error)) => failed(error),
        Err(_) => failed("context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned()),
    }
}

async fn status_code(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Result<u16, String> {
    let sent = async {
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await
    };
    sent.await.map_err(|error| error.to_string())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.map_err(|_| "EOF".to_owned())?;
    let code = std::str::from_utf8(&head[9..]).ok().and_then(|code| code.parse().ok());
    code.ok_or_else(|| "malformed HTTP response".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thresholds(success: i32, failure: i32) -> Thresholds {
        let (success_threshold, failure_threshold) = (Some(success), Some(failure));
        Thresholds::new(&Probe { success_threshold, failure_threshold, ..Probe::default() })
    }

    #[test]
    fn answers_count_when_enough_come_in_a_row() {
        let mut probe = thresholds(1, 3);
        let answers: Vec<_> = [false, false, true, false, false, false, false].map(|well| probe.observe(well)).into();
        assert_eq!(answers, [None, None, Some(true), None, None, Some(false), Some(false)]);
        let mut slow = thresholds(2, 1);
        assert_eq!([true, true, false, true].map(|well| slow.observe(well)), [None, Some(true), Some(false), None]);
    }

    #[test]
    fn a_port_is_found_by_its_name() {
        let spec: ContainerSpec = serde_json::from_value(serde_json::json!({
            "name": "a", "ports": [{"name": "web", "containerPort": 8080}]
        }))
        .unwrap();
        assert_eq!(port_number(&IntOrString::String("web".to_owned()), &spec), Some(8080));
        assert_eq!(port_number(&IntOrString::Int(81), &spec), Some(81));
        assert_eq!(port_number(&IntOrString::String("none".to_owned()), &spec), None);
    }

    #[tokio::test]
    async fn an_https_probe_believes_any_certificate() {
        use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = IntOrString::Int(listener.local_addr().unwrap().port().into());
        let made = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(std::sync::Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        tokio::spawn(async move {
            let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
            let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            stream.flush().await.unwrap();
        });
        let get = HTTPGetAction { port, scheme: Some("HTTPS".to_owned()), ..HTTPGetAction::default() };
        let asked = http_get(&get, &ContainerSpec::default(), "127.0.0.1", Duration::from_secs(30)).await;
        assert_eq!(asked, Outcome::Success);
    }

    #[tokio::test]
    async fn an_http_probe_reads_the_status_line() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            for answer in ["HTTP/1.1 302 Found\r\n\r\n", "HTTP/1.1 503 No\r\n\r\n"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                let count = stream.read(&mut request).await.unwrap();
                assert!(request[..count].starts_with(b"GET /healthz HTTP/1.1\r\n"));
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let port = IntOrString::Int(port.into());
        let get = HTTPGetAction { port, path: Some("healthz".to_owned()), ..HTTPGetAction::default() };
        let spec = ContainerSpec::default();
        let ask = || http_get(&get, &spec, "127.0.0.1", Duration::from_secs(30));
        assert_eq!(ask().await, Outcome::Success);
        assert_eq!(ask().await, Outcome::Failure("HTTP probe failed with statuscode: 503".to_owned()));
    }
}
