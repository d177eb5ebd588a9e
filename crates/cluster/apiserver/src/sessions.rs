//! What the API server asks of a node: a command in a container, its streams, its log. The node gives it in this
//! process; there is no HTTP in between.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::status::Status;

/// A command that runs in a container.
pub struct Session {
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Told of the client's window: columns and rows.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send>>,
    /// Its exit code.
    pub exit: BoxFuture<'static, i32>,
}

/// A command on its way: what comes of it is known when it runs.
pub type Opening = BoxFuture<'static, Result<Session, Status>>;

/// What is to run, and with what.
#[derive(Clone, Debug)]
pub struct Command {
    /// Empty: attach to what runs already.
    pub argv: Vec<String>,
    pub stdin: bool,
    pub tty: bool,
}

/// Which part of a log.
#[derive(Clone, Debug, Default)]
pub struct LogRange {
    pub previous: bool,
    pub follow: bool,
    pub timestamps: bool,
    pub since: Option<jiff::Timestamp>,
    pub tail: Option<usize>,
    pub limit_bytes: Option<usize>,
}

/// The containers of the cluster, wherever they run. `pod` is the stored object.
pub trait Sessions: Send + Sync {
    fn open(&self, pod: &Value, container: &str, command: Command) -> Opening;

    fn log(&self, pod: &Value, container: &str, range: LogRange) -> Result<BoxStream<'static, Bytes>, Status>;
}
