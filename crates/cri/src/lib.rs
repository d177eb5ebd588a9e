//! The slice of the Container Runtime Interface that is spoken here, both sides of it.
//!
//! `proto/runtime.proto` says which slice; `generated` is made of it by `cargo xtask generate`. What a runtime is asked
//! beyond it is answered with `UNIMPLEMENTED`.

#[rustfmt::skip]
#[allow(clippy::all, unreachable_pub)]
mod generated;

use std::path::Path;

use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};

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
    let socket = socket.to_owned();
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(tokio::net::UnixStream::connect(socket).await?)) }
    });
    // The address is never looked at: there is but one place to connect to.
    RuntimeServiceClient::new(Endpoint::from_static("http://cri").connect_with_connector_lazy(connector))
}
