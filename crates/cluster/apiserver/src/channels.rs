//! Kubernetes' streams over one WebSocket: each message begins with the number of its channel.

use futures::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use crate::answer::Body;
use crate::sessions::{Opening, Session};
use crate::status::{Result, Status};

/// The protocol that everyone speaks. It cannot close a single stream.
pub(crate) const V4: &str = "v4.channel.k8s.io";

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// v5: the next byte names a channel that the client has closed.
const CLOSE: u8 = 255;

/// How much of an output is sent in one message.
const CHUNK: usize = 32 * 1024;
/// Messages on their way to the client: a slow one slows the command.
const QUEUE: usize = 8;

/// The protocols that a client offers.
pub(crate) fn offered(headers: &HeaderMap) -> Vec<String> {
    let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
    offered.unwrap_or_default().split(',').map(|protocol| protocol.trim().to_owned()).collect()
}

/// The first of those served that the client offers.
pub(crate) fn choose(served: &[&'static str], offered: &[String]) -> Option<&'static str> {
    served.iter().copied().find(|known| offered.iter().any(|offered| offered == known))
}

/// The key of a client's handshake: 16 bytes in base64; anything else is no WebSocket.
pub(crate) fn key(headers: &HeaderMap) -> Option<String> {
    use base64::Engine as _;
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?.to_str().ok()?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(key).ok()?;
    (bytes.len() == 16).then(|| key.to_owned())
}

/// The answer that turns a connection into a WebSocket, which then carries the session.
pub(crate) fn switch(
    upgrade: OnUpgrade,
    key: &str,
    protocol: &'static str,
    opening: Opening,
) -> Result<Response<Body>> {
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        carry(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await, opening).await;
    });
    let mut response = Response::new(http_body_util::Empty::new().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    let accept = derive_accept_key(key.as_bytes());
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.parse().map_err(Status::internal)?);
    Ok(response)
}

/// Carries a session until it or its client ends. A client that goes leaves the command to itself, as a node does.
async fn carry<S>(socket: WebSocketStream<S>, opening: Opening)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sink, mut stream) = socket.split();
    let session = match opening.await {
        Ok(session) => session,
        Err(status) => {
            let _ = sink.send(message(ERROR, status.body().to_string().as_bytes())).await;
            let _ = sink.send(goodbye()).await;
            return;
        }
    };
    let Session { stdin, stdout, stderr, resize, exit } = session;
    let (sender, mut outgoing) = mpsc::channel::<Message>(QUEUE);
    let writer = tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            if sink.send(message).await.is_err() {
                return;
            }
        }
        let _ = sink.send(goodbye()).await;
    });
    let reader = tokio::spawn(async move {
        let mut stdin = stdin;
        while let Some(Ok(received)) = stream.next().await {
            let Message::Binary(bytes) = received else { continue };
            match bytes.split_first() {
                Some((&STDIN, data)) => {
                    let Some(input) = &mut stdin else { continue };
                    if input.write_all(data).await.is_err() || input.flush().await.is_err() {
                        stdin = None;
                    }
                }
                Some((&CLOSE, [STDIN])) => stdin = None,
                Some((&RESIZE, data)) => {
                    if let (Some(resize), Some((columns, rows))) = (&resize, size(data)) {
                        resize(columns, rows);
                    }
                }
                _ => {}
            }
        }
    });
    let outputs = async {
        let errors = async {
            if let Some(stderr) = stderr {
                pump(stderr, STDERR, &sender).await;
            }
        };
        tokio::join!(pump(stdout, STDOUT, &sender), errors);
        let code = exit.await;
        let _ = sender.send(message(ERROR, outcome(code).to_string().as_bytes())).await;
    };
    outputs.await;
    drop(sender);
    // The last messages are still on their way.
    let _ = writer.await;
    reader.abort();
}

async fn pump(mut from: impl AsyncRead + Unpin, channel: u8, to: &mpsc::Sender<Message>) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if to.send(message(channel, &buffer[..count])).await.is_err() {
            return;
        }
    }
}

fn message(channel: u8, data: &[u8]) -> Message {
    let mut bytes = Vec::with_capacity(data.len() + 1);
    bytes.push(channel);
    bytes.extend_from_slice(data);
    Message::Binary(bytes.into())
}

/// A close without a code is an error to kubectl.
fn goodbye() -> Message {
    Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }))
}

fn outcome(code: i32) -> Value {
    match code {
        0 => json!({"metadata": {}, "status": "Success"}),
        code => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
    }
}

fn size(data: &[u8]) -> Option<(u16, u16)> {
    let size: Value = serde_json::from_slice(data).ok()?;
    let number = |name: &str| size.get(name)?.as_u64().and_then(|value| u16::try_from(value).ok());
    Some((number("Width")?, number("Height")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_tells_its_exit_code_as_a_cause() {
        assert_eq!(outcome(7)["details"]["causes"][0], json!({"reason": "ExitCode", "message": "7"}));
        assert_eq!(outcome(0)["status"], "Success");
    }

    #[test]
    fn a_window_has_two_numbers() {
        assert_eq!(size(br#"{"Width":80,"Height":24}"#), Some((80, 24)));
        assert_eq!(size(b"{}"), None);
        assert_eq!(size(b"not json"), None);
    }
}
