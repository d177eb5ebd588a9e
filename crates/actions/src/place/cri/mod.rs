//! Through the container runtime of this node: what was started can be ended, and signals can be sent.
//!
//! Needs the runtime's socket, the address of its streaming server (on the node's loopback), the host's pid namespace,
//! and CAP_KILL.

mod container;
mod exec;
mod gate;
mod held;
mod hold;
mod notes;
mod sandbox;
mod stream;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use boathook_api::{Signal, pod_notification::ErrorType};
use boathook_cri::{RuntimeServiceClient, VersionRequest};
use snafu::Snafu;
use tokio::sync::OnceCell;
use tonic::transport::Channel;

use crate::Failure;

pub(super) use exec::Running;
pub use notes::Notes;
pub use sandbox::{Sandbox, SandboxContainer};

/// Far more than a runtime takes for any of these calls; a runtime that hangs holds up nobody for longer.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The container runtime behind one socket. Clones share a connection.
#[derive(Clone)]
pub struct Runtime {
    client: RuntimeServiceClient<Channel>,
    socket: Arc<PathBuf>,
    options: Arc<Options>,
    name: Arc<OnceCell<String>>,
}

/// What this node's operator permits, and where is noted what runs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Of the guarded signals, those that may be sent.
    pub allow_signals: BTreeSet<Signal>,
    /// Without it, what runs when this process dies goes on.
    pub notes: Option<Notes>,
}

/// The runtime did not do what it was asked.
#[derive(Debug, Snafu)]
pub enum RuntimeError {
    #[snafu(display("the container runtime at `{}` did not {what}: {}", socket.display(), source.message()))]
    Refused {
        what: &'static str,
        socket: PathBuf,
        #[snafu(source(from(tonic::Status, Box::new)))]
        source: Box<tonic::Status>,
    },
    #[snafu(display("the container runtime at `{}` did not {what} within {within:?}", socket.display()))]
    Late { what: &'static str, socket: PathBuf, within: Duration },
    #[snafu(display("the container runtime does not report the first process of container `{container}`"))]
    NoProcess { container: String },
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        Self::new(ErrorType::HandlerFailed, format!("{error}; the action was not run"))
    }
}

impl Runtime {
    /// It connects when it is first used, and again when the runtime was restarted.
    pub fn new(socket: &Path, options: Options) -> Self {
        Self {
            client: boathook_cri::client(socket),
            socket: Arc::new(socket.to_owned()),
            options: Arc::new(options),
            name: Arc::default(),
        }
    }

    /// Whether a signal may be sent here at all.
    pub(crate) fn allows(&self, signal: Signal) -> bool {
        !signal.is_guarded() || self.options.allow_signals.contains(&signal)
    }

    /// One call, within its time. `what` says what the runtime is to do.
    async fn call<T>(
        &self,
        what: &'static str,
        call: impl AsyncFnOnce(RuntimeServiceClient<Channel>) -> Result<tonic::Response<T>, tonic::Status>,
    ) -> Result<T, RuntimeError> {
        self.call_within(CALL_DEADLINE, what, call).await
    }

    async fn call_within<T>(
        &self,
        within: Duration,
        what: &'static str,
        call: impl AsyncFnOnce(RuntimeServiceClient<Channel>) -> Result<tonic::Response<T>, tonic::Status>,
    ) -> Result<T, RuntimeError> {
        let socket = || self.socket.as_path().to_owned();
        match tokio::time::timeout(within, call(self.client.clone())).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(RuntimeError::Refused { what, socket: socket(), source: Box::new(status) }),
            Err(_) => Err(RuntimeError::Late { what, socket: socket(), within }),
        }
    }

    /// Whether it answers within this time.
    pub async fn answers(&self, within: Duration) -> Result<(), RuntimeError> {
        let asked = VersionRequest::default();
        let version = async |mut client: RuntimeServiceClient<Channel>| client.version(asked).await;
        self.call_within(within, "return its version", version).await.map(drop)
    }

    /// By this name a pod's status begins the ids of its containers.
    async fn name(&self) -> Result<&str, RuntimeError> {
        let ask = async || {
            let asked = VersionRequest::default();
            let told = self.call("return its version", async |mut client| client.version(asked).await).await?;
            Ok(told.runtime_name)
        };
        self.name.get_or_try_init(ask).await.map(String::as_str)
    }
}
