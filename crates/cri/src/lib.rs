//! The slice of the Container Runtime Interface that is spoken here, both sides of it.
//!
//! `proto/runtime.proto` says which slice; `generated` is made of it by `cargo xtask generate`. What a runtime is asked
//! beyond it is answered with `UNIMPLEMENTED`.

#[rustfmt::skip]
#[allow(clippy::all, unreachable_pub)]
mod generated;

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tonic::transport::{Channel, Endpoint, Server};

pub use generated::*;
pub use runtime_service_client::RuntimeServiceClient;
pub use runtime_service_server::{RuntimeService, RuntimeServiceServer};

/// The labels by which a container or sandbox names what it belongs to.
pub mod labels {
    pub const POD_NAME: &str = "io.kubernetes.pod.name";
    pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
    pub const POD_UID: &str = "io.kubernetes.pod.uid";
    pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
}

/// A client of the runtime that listens on this unix socket. It connects when it is first used, and again when the
/// runtime was restarted.
pub fn client(socket: &Path) -> RuntimeServiceClient<Channel> {
    RuntimeServiceClient::new(connect(socket))
}

/// The same, for whoever speaks more than this slice.
pub fn connect(socket: &Path) -> Channel {
    let socket = socket.to_owned();
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move {
            let (_folder, short) = short(&socket)?;
            io::Result::Ok(TokioIo::new(UnixStream::connect(short).await?))
        }
    });
    // The address is never looked at: there is but one place to connect to.
    Endpoint::from_static("http://cri").connect_with_connector_lazy(connector)
}

/// Listens on a unix socket, which may be there from before.
pub fn listen(socket: &Path) -> io::Result<UnixListener> {
    let (_folder, short) = short(socket)?;
    if let Err(error) = std::fs::remove_file(socket)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let listener = UnixListener::bind(short)?;
    // Whoever can connect can run commands.
    std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves a runtime until it is dropped.
pub async fn serve(listener: UnixListener, runtime: impl RuntimeService) -> Result<(), tonic::transport::Error> {
    let incoming = futures::stream::unfold(listener, async |listener| {
        let accepted = listener.accept().await;
        if accepted.is_err() {
            // Out of file descriptors, say: the next one may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Some((accepted.map(|(stream, _)| stream), listener))
    });
    Server::builder().serve_with_incoming(RuntimeServiceServer::new(runtime), incoming).await
}

/// The same place by a name that is short enough for a socket (108 bytes), while its folder is held.
fn short(socket: &Path) -> io::Result<(File, PathBuf)> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let folder = File::open(folder)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((folder, short))
}
