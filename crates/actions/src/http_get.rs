//! HTTP GET: 200 to 399 is success, redirects are not followed. From wherever the executor runs.
//!
//! What was sent cannot be called back: whoever was asked may act on it long after nobody waits for the answer.

use std::sync::atomic::{AtomicBool, Ordering};

use boathook_api::{
    HttpGetAction,
    action::{HttpHeader, Scheme},
    pod_notification::ErrorType,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, StatusCode,
    body::Incoming,
    client::conn::http1,
    header::{ACCEPT, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use crate::{
    Failure, Outcome,
    instance::Instance,
    outcome::Attempt,
    tail::Tail,
    tcp_socket, tls,
    until::{Stop, Until},
};

/// How much of the body is read: as much as is kept of any output.
const READ: usize = 10 << 10;

const REMAINS: &str = "ProcessMayRemain: the request was sent, and the server may still act on it";

pub(crate) async fn get(action: &HttpGetAction, instance: &Instance, until: &Until) -> Attempt {
    let question = match Question::new(action, instance) {
        Ok(question) => question,
        Err(failure) => return failure.into(),
    };
    let sent = AtomicBool::new(false);
    let unanswered = |attempt| not_answered(attempt, sent.load(Ordering::SeqCst));
    match until.run(question.ask(&sent)).await {
        Ok(Ok((status, output))) if (200..400).contains(&status.as_u16()) => Attempt { output, ..Attempt::succeeded() },
        Ok(Ok((status, output))) => {
            let failed = Attempt::failed(ErrorType::HandlerFailed, format!("GET {question} answered {status}"));
            Attempt { output, ..failed }
        }
        Ok(Err(message)) => Attempt::failed(ErrorType::HandlerFailed, format!("GET {question} failed: {message}")),
        Err(Stop::TimeOver) => unanswered(Attempt::timed_out(&format!("GET {question}"), until)),
        Err(Stop::Cancelled) => unanswered(Attempt::unknown(format!("GET {question} was cancelled before the answer"))),
    }
}

/// The end of the time, or a word to stop, came before the answer.
fn not_answered(attempt: Attempt, sent: bool) -> Attempt {
    let with = |failure: Failure| match sent {
        true => Failure { message: format!("{}; {REMAINS}", failure.message), ..failure },
        false => failure,
    };
    let outcome = match attempt.outcome {
        Outcome::Succeeded => Outcome::Succeeded,
        Outcome::Failed(failure) => Outcome::Failed(with(failure)),
        Outcome::Unknown(failure) => Outcome::Unknown(with(failure)),
    };
    Attempt { outcome, process_may_remain: sent, ..attempt }
}

/// What is asked of whom.
struct Question {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
    headers: HeaderMap,
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.path)
    }
}

impl Question {
    fn new(action: &HttpGetAction, instance: &Instance) -> Result<Self, Failure> {
        let HttpGetAction { port, path, host, scheme, http_headers } = action;
        let (host, port) = (instance.host(host.as_deref())?.to_owned(), instance.port(port)?);
        let path = path.as_deref().unwrap_or("/");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let headers = headers(http_headers.as_deref().unwrap_or_default(), &format!("{host}:{port}"))?;
        Ok(Self { scheme: scheme.unwrap_or_default(), host, port, path, headers })
    }

    /// `sent` is set as soon as the request may be on its way.
    async fn ask(&self, sent: &AtomicBool) -> Result<(StatusCode, String), String> {
        let stream = tcp_socket::open(&self.host, self.port).await?;
        match self.scheme {
            Scheme::Http => self.ask_over(stream, sent).await,
            Scheme::Https => self.ask_over(tls::handshake(stream, &self.host).await?, sent).await,
        }
    }

    async fn ask_over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        sent: &AtomicBool,
    ) -> Result<(StatusCode, String), String> {
        let mut request = Request::get(&self.path).body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        *request.headers_mut() = self.headers.clone();
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        // It ends with this.
        let mut driving = JoinSet::new();
        driving.spawn(connection);
        sent.store(true, Ordering::SeqCst);
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = beginning(answer.into_body()).await.map_err(|error| format!("{status}, then {error}"))?;
        Ok((status, body))
    }
}

async fn beginning(mut body: Incoming) -> Result<String, hyper::Error> {
    let (mut kept, mut read) = (Tail::default(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame?.into_data() else { continue };
        kept.push(&bytes[..bytes.len().min(READ - read)]);
        read += bytes.len();
        if read >= READ {
            break;
        }
    }
    Ok(kept.into_text())
}

/// A kubelet's, and those that are written: they replace them.
fn headers(written: &[HttpHeader], host: &str) -> Result<HeaderMap, Failure> {
    let wrong = |what: &str| {
        Failure::new(ErrorType::Unsupported, format!("httpHeaders: `{what}` is not a valid header: fix it"))
    };
    let mut headers = HeaderMap::new();
    headers.insert(HOST, host.parse().map_err(|_| wrong(host))?);
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("boathook/", env!("CARGO_PKG_VERSION"))));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut parsed = HeaderMap::new();
    for HttpHeader { name, value } in written {
        let name: HeaderName = name.parse().map_err(|_| wrong(name))?;
        parsed.append(name, value.parse().map_err(|_| wrong(value))?);
    }
    for name in parsed.keys() {
        headers.remove(name);
    }
    headers.extend(parsed);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::Cancel;

    /// Answers one request with this text, and returns what was asked.
    async fn answer(listener: &TcpListener, text: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let count = stream.read(&mut request).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&request[..count]).into_owned()
    }

    async fn asked(listener: &TcpListener, answered: &str) -> (Attempt, String) {
        let port = IntOrString::Int(listener.local_addr().unwrap().port().into());
        let headers = vec![HttpHeader { name: "Accept".to_owned(), value: "text/plain".to_owned() }];
        let action = HttpGetAction {
            port,
            path: Some("healthz?full".to_owned()),
            host: Some("127.0.0.1".to_owned()),
            scheme: None,
            http_headers: Some(headers),
        };
        let until = Until::within(Duration::from_secs(60), Cancel::new());
        let instance = Instance::default();
        tokio::join!(get(&action, &instance, &until), answer(listener, answered))
    }

    #[tokio::test]
    async fn the_status_decides_and_the_body_is_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (well, request) = asked(&listener, "HTTP/1.1 302 Found\r\nContent-Length: 4\r\n\r\nthis").await;
        assert_eq!(well, Attempt { output: "this".to_owned(), ..Attempt::succeeded() });
        assert!(request.starts_with("GET /healthz?full HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("accept: text/plain\r\n") && !request.contains("*/*"), "{request}");

        let (ill, _) = asked(&listener, "HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nwhy").await;
        let Outcome::Failed(failure) = &ill.outcome else { panic!("{ill:?}") };
        assert!(failure.message.contains("503") && ill.output == "why", "{ill:?}");
    }

    #[tokio::test]
    async fn of_a_long_body_the_beginning_is_enough() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // More is announced than ever comes.
        let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{}", "a".repeat(READ + 10));
        let (attempt, _) = asked(&listener, &long).await;
        assert_eq!((attempt.outcome, attempt.output.len()), (Outcome::Succeeded, READ));
    }

    /// Asks whoever listens there, for so long.
    async fn ask(listener: &TcpListener, until: &Until) -> Attempt {
        let port = IntOrString::Int(listener.local_addr().unwrap().port().into());
        let host = Some("127.0.0.1".to_owned());
        let action = HttpGetAction { port, path: None, host, scheme: None, http_headers: None };
        get(&action, &Instance::default(), until).await
    }

    #[tokio::test]
    async fn what_was_sent_and_not_answered_in_time_may_still_be_acted_on() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Long enough to connect and send, on a busy machine.
        let attempt = ask(&listener, &Until::within(Duration::from_secs(2), Cancel::new())).await;
        assert!(attempt.process_may_remain, "{attempt:?}");
        let Outcome::Failed(failure) = attempt.outcome else { panic!("{:?}", attempt.outcome) };
        assert_eq!(failure.kind, ErrorType::HandlerTimeout);
        assert!(failure.message.contains("ProcessMayRemain"), "{}", failure.message);
    }

    #[tokio::test]
    async fn what_was_sent_and_then_cancelled_may_still_be_acted_on_and_what_was_not_sent_cannot() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cancel = Cancel::new();
        let until = Until::within(Duration::from_secs(60), cancel.clone());
        let cancelling = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            cancel.cancel();
        };
        let (attempt, ()) = tokio::join!(ask(&listener, &until), cancelling);
        assert!(attempt.process_may_remain && matches!(attempt.outcome, Outcome::Unknown(_)), "{attempt:?}");
        let attempt = ask(&listener, &until).await;
        assert!(!attempt.process_may_remain && matches!(attempt.outcome, Outcome::Unknown(_)), "{attempt:?}");
    }

    #[tokio::test]
    async fn an_https_answer_is_believed_whoever_gives_it() {
        use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = IntOrString::Int(listener.local_addr().unwrap().port().into());
        let made = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(std::sync::Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let serving = async move {
            let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
            let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            stream.flush().await.unwrap();
        };
        let action = HttpGetAction { port, path: None, host: None, scheme: Some(Scheme::Https), http_headers: None };
        let instance = Instance { address: Some("127.0.0.1".to_owned()), ..Instance::default() };
        let until = Until::within(Duration::from_secs(60), Cancel::new());
        let (attempt, ()) = tokio::join!(get(&action, &instance, &until), serving);
        assert_eq!(attempt, Attempt::succeeded());
    }
}
