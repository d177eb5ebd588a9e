//! The node's sessions as the API server asks for them: two crates that know nothing of each other meet here.

use std::sync::Arc;

use boathook_apiserver::sessions::{Command, LogRange, Opening, Session, Sessions};
use boathook_apiserver::status::Status;
use boathook_node::kubelet::{self, SessionError, Sessions as OfNode};
use boathook_node::runtime::log::LogOptions;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

pub(super) struct NodeSessions(pub(super) Arc<dyn OfNode>);

impl NodeSessions {
    /// The command behind a token of CRI's exec.
    pub(super) fn redeem(&self, token: &str) -> Option<Opening> {
        let opening = self.0.redeem(token)?;
        Some(opening.map(|opened| opened.map(converted).map_err(refusal)).boxed())
    }
}

impl Sessions for NodeSessions {
    fn open(&self, pod: &Value, container: &str, command: Command) -> Opening {
        let (node, pod, container) = (Arc::clone(&self.0), typed(pod), container.to_owned());
        Box::pin(async move {
            let pod = pod?;
            let Command { argv, stdin, tty } = command;
            let opened = match argv.is_empty() {
                true => node.attach(&pod, &container, stdin).await,
                false => node.exec(&pod, &container, argv, stdin, tty).await,
            };
            opened.map(converted).map_err(refusal)
        })
    }

    fn log(&self, pod: &Value, container: &str, range: LogRange) -> Result<BoxStream<'static, Bytes>, Status> {
        let LogRange { previous, follow, timestamps, since, tail, limit_bytes } = range;
        let options = LogOptions { follow, timestamps, since, tail, limit_bytes };
        let lines = self.0.logs(&typed(pod)?, container, previous, options).map_err(refusal)?;
        // A log that breaks off ends there: the client sees what there was.
        Ok(lines
            .take_while(|line| std::future::ready(line.is_ok()))
            .filter_map(|line| std::future::ready(line.ok()))
            .boxed())
    }
}

fn converted(session: kubelet::Session) -> Session {
    let resize = session.terminal.map(|terminal| {
        // A window that cannot be told of leaves the old size.
        Box::new(move |columns, rows| drop(terminal.resize(columns, rows))) as Box<dyn Fn(u16, u16) + Send>
    });
    let (stdin, stdout, stderr) = (session.stdin, session.stdout, session.stderr);
    Session { stdin, stdout, stderr, resize, exit: session.exit }
}

fn typed(pod: &Value) -> Result<Pod, Status> {
    serde_json::from_value(pod.clone()).map_err(Status::internal)
}

fn refusal(error: SessionError) -> Status {
    let SessionError { code, message } = error;
    match code {
        400 => Status::bad_request(message),
        _ => Status::internal(message),
    }
}
