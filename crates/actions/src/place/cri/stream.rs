//! A command's streams over CRI: a WebSocket with `v4.channel.k8s.io`, at an address that is good once.
//!
//! Each binary message begins with its channel. The protocol cannot end stdin alone: a command's input ends with a line
//! that it waits for, or with the connection.

use boathook_cri::ExecRequest;
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        http::{HeaderValue, header::SEC_WEBSOCKET_PROTOCOL},
        protocol::WebSocketConfig,
    },
};

use super::{Runtime, RuntimeError};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

const PROTOCOL: HeaderValue = HeaderValue::from_static("v4.channel.k8s.io");
/// Runtimes send what one read of a pipe gave: a few tens of kilobytes.
const LARGEST_MESSAGE: usize = 1 << 20;

/// Why there are no streams.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// Nothing was started.
    Refused(String),
    /// The connection broke off where the command may have been started.
    Lost(String),
}

/// What came.
#[derive(Debug)]
pub(super) enum Event {
    Stdout(Bytes),
    Stderr(Bytes),
    Ended(Box<Status>),
    /// It ended without a status.
    Lost,
}

/// The streams of one command. Dropping it closes them, which ends nothing but its input.
pub(super) struct Stream(WebSocketStream<TcpStream>);

impl Stream {
    pub(super) async fn open(
        runtime: &Runtime,
        container_id: &str,
        command: Vec<String>,
        stdin: bool,
    ) -> Result<Self, NotOpened> {
        let container_id = container_id.to_owned();
        let request = ExecRequest { container_id, cmd: command, tty: false, stdin, stdout: true, stderr: true };
        let offered = runtime.call("start an exec", async |mut client| client.exec(request).await).await;
        let url = offered.map_err(|error| NotOpened::Refused(words(&error)))?.url;
        Self::connect(&url).await
    }

    async fn connect(url: &str) -> Result<Self, NotOpened> {
        let wrong = || {
            NotOpened::Refused(format!(
                "the container runtime returned the address `{url}`, which is not http://HOST:PORT/PATH"
            ))
        };
        let address = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).ok_or_else(wrong)?;
        let mut request = url.replacen("http", "ws", 1).into_client_request().map_err(|_| wrong())?;
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, PROTOCOL);
        let connected = TcpStream::connect(address).await;
        let connected = connected.map_err(|error| {
            NotOpened::Refused(format!(
                "failed to reach the streaming server of the container runtime at {address}: {error}"
            ))
        })?;
        let limits =
            WebSocketConfig::default().max_message_size(Some(LARGEST_MESSAGE)).max_frame_size(Some(LARGEST_MESSAGE));
        match client_async_with_config(request, connected, Some(limits)).await {
            Ok((stream, _)) => Ok(Self(stream)),
            Err(Error::Http(answer)) => {
                let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                Err(NotOpened::Refused(format!("{}: {}", answer.status(), body.trim_end())))
            }
            Err(error) => Err(NotOpened::Lost(error.to_string())),
        }
    }

    /// What comes next. It can be dropped and asked for again without losing anything.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            let message = match self.0.next().await {
                Some(Ok(Message::Binary(message))) => message,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Event::Lost,
                // Pings are answered by the library.
                Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            };
            if let Some(event) = parse(message) {
                return event;
            }
        }
    }

    pub(super) async fn write_stdin(&mut self, line: &str) -> Result<(), Error> {
        self.0.send(Message::binary([&[STDIN], line.as_bytes()].concat())).await
    }
}

/// A message without contents opens its channel, and says nothing.
fn parse(message: Bytes) -> Option<Event> {
    let channel = *message.first()?;
    let contents = message.slice(1..);
    match channel {
        _ if contents.is_empty() => None,
        STDOUT => Some(Event::Stdout(contents)),
        STDERR => Some(Event::Stderr(contents)),
        STATUS => Some(serde_json::from_slice(&contents).map_or(Event::Lost, |status| Event::Ended(Box::new(status)))),
        _ => None,
    }
}

/// In the runtime's own words, if it has any.
fn words(error: &RuntimeError) -> String {
    match error {
        RuntimeError::Refused { source, .. } => source.message().to_owned(),
        RuntimeError::Late { .. } | RuntimeError::NoProcess { .. } => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_with_its_channel() {
        let parsed = |bytes: &'static [u8]| parse(Bytes::from_static(bytes));
        assert!(matches!(parsed(b"\x01out"), Some(Event::Stdout(out)) if out == "out"));
        assert!(matches!(parsed(b"\x02err"), Some(Event::Stderr(err)) if err == "err"));
        assert!(matches!(parsed(b"\x03{\"status\":\"Success\"}"), Some(Event::Ended(_))));
        // A status that cannot be read is none.
        assert!(matches!(parsed(b"\x03{"), Some(Event::Lost)));
        for nothing in [&b""[..], b"\x01", b"\x03", b"\x09x"] {
            assert!(parse(Bytes::from_static(nothing)).is_none(), "{nothing:?}");
        }
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_refused() {
        for url in ["https://127.0.0.1:1/exec/a", "127.0.0.1:1", "http://127.0.0.1:0/exec/a"] {
            assert!(matches!(Stream::connect(url).await, Err(NotOpened::Refused(_))), "{url}");
        }
    }
}
