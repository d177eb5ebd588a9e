//! What the API server asks of a node for `exec`, `attach` and `logs`: streams, not HTTP.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::Shared;
use super::pod::PodExt;
use super::slot::{Live, Slot};
use crate::runtime::container::{Input, Output, Terminal};
use crate::runtime::log::{self, LogOptions};

/// A command's streams and its end.
pub struct Session {
    pub stdin: Option<Input>,
    pub stdout: Output,
    pub stderr: Option<Output>,
    /// To be told of the client's window, when there is a terminal.
    pub terminal: Option<Arc<Terminal>>,
    /// The exit code. The command goes on when this is dropped.
    pub exit: BoxFuture<'static, i32>,
}

/// Why there is no session, in the words and with the HTTP status that a real node has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionError {
    pub code: u16,
    pub message: String,
}

impl SessionError {
    fn bad_request(message: String) -> SessionError {
        SessionError { code: 400, message }
    }

    fn internal(message: String) -> SessionError {
        SessionError { code: 500, message }
    }
}

/// The pods of a node, for the API server. The pod is the stored object, the container one of its names.
pub trait Sessions: Send + Sync {
    fn exec<'a>(
        &'a self,
        pod: &'a Pod,
        container: &'a str,
        command: Vec<String>,
        stdin: bool,
        tty: bool,
    ) -> BoxFuture<'a, Result<Session, SessionError>>;

    fn attach<'a>(
        &'a self,
        pod: &'a Pod,
        container: &'a str,
        stdin: bool,
    ) -> BoxFuture<'a, Result<Session, SessionError>>;

    fn logs(
        &self,
        pod: &Pod,
        container: &str,
        previous: bool,
        options: LogOptions,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, SessionError>;

    /// The command for which CRI's exec gave this token. Each is good once.
    fn redeem(&self, token: &str) -> Option<BoxFuture<'static, Result<Session, SessionError>>>;
}

impl Shared {
    fn running(&self, pod: &Pod, container: &str) -> Result<Live, SessionError> {
        let running = |live: &Live| live.container.running.exit().is_none();
        self.registry.find(pod.uid_text(), container).filter(running).ok_or_else(|| {
            let described = pod.described();
            SessionError::internal(format!("container not found (\"{container}\") in pod {described}"))
        })
    }
}

impl Sessions for Shared {
    fn exec<'a>(
        &'a self,
        pod: &'a Pod,
        container: &'a str,
        command: Vec<String>,
        stdin: bool,
        tty: bool,
    ) -> BoxFuture<'a, Result<Session, SessionError>> {
        async move {
            let live = self.running(pod, container)?;
            exec(&live, command, stdin, tty).await
        }
        .boxed()
    }

    fn attach<'a>(
        &'a self,
        pod: &'a Pod,
        container: &'a str,
        stdin: bool,
    ) -> BoxFuture<'a, Result<Session, SessionError>> {
        async move {
            let live = self.running(pod, container)?;
            let input = match &live.stdin {
                Some(input) if stdin => input.lock().await.take(),
                _ => None,
            };
            let (stdout, stderr) = live.log.attach();
            let running = live.container.running.clone();
            let exit = async move { running.wait().await.code }.boxed();
            Ok(Session { stdin: input, stdout, stderr: Some(stderr), terminal: live.terminal.clone(), exit })
        }
        .boxed()
    }

    fn logs(
        &self,
        pod: &Pod,
        container: &str,
        previous: bool,
        options: LogOptions,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, SessionError> {
        let status = pod.status.as_ref().and_then(|status| {
            let mut all =
                status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
            all.find(|status| status.name == container)
        });
        let (pod_name, described) = (pod.namespaced_name().1, pod.uid_text());
        let instance = instance(status, previous).ok_or_else(|| {
            let name = &pod_name;
            SessionError::bad_request(if previous {
                format!("previous terminated container \"{container}\" in pod \"{name}\" not found")
            } else {
                let waiting = status.and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.clone());
                let reason = waiting.unwrap_or_else(|| "ContainerCreating".to_owned());
                format!("container \"{container}\" in pod \"{name}\" is waiting to start: {reason}")
            })
        })?;
        let path = self.pod_dir(described).join("logs").join(Slot::log_file(container, instance));
        let progress =
            if previous { None } else { self.registry.find(pod.uid_text(), container).map(|live| live.log.progress()) };
        match log::read(path, progress, options) {
            Ok(lines) => Ok(lines.boxed()),
            // A container that never ran wrote nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(futures::stream::empty().boxed()),
            Err(error) => Err(SessionError::internal(error.to_string())),
        }
    }

    fn redeem(&self, token: &str) -> Option<BoxFuture<'static, Result<Session, SessionError>>> {
        self.execs.redeem(token)
    }
}

pub(super) async fn exec(live: &Live, command: Vec<String>, stdin: bool, tty: bool) -> Result<Session, SessionError> {
    let (running, streams) = live.container.exec(command, stdin, tty).await.map_err(|error| {
        let why = format!(
            "error executing command in container: failed to exec in container: failed to start exec: OCI runtime \
             exec failed: exec failed: unable to start container process: {error}: unknown"
        );
        SessionError::internal(why)
    })?;
    let exit = async move { running.wait().await.code }.boxed();
    let terminal = streams.terminal.map(Arc::new);
    Ok(Session { stdin: streams.stdin, stdout: streams.stdout, stderr: streams.stderr, terminal, exit })
}

/// The number of the instance whose log is asked for.
fn instance(status: Option<&ContainerStatus>, previous: bool) -> Option<i32> {
    let status = status?;
    let state = status.state.as_ref()?;
    let ran_before = status.last_state.as_ref().is_some_and(|last| last.terminated.is_some());
    let waits = state.waiting.is_some();
    match (previous, waits) {
        // While a container waits to be started again, the last instance is both.
        (_, true) => ran_before.then_some(status.restart_count),
        (true, false) => ran_before.then_some(status.restart_count - 1),
        (false, false) => Some(status.restart_count),
    }
}
