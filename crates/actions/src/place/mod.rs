//! The places that actions are carried out from.

pub mod api_server;
mod streams;

use boathook_api::action::Deed;

use crate::{
    Failure, Target, http_get,
    instance::Instance,
    outcome::Attempt,
    tcp_socket,
    until::{Stop, Until},
};
use api_server::ApiServer;

/// Where an action is carried out from.
#[derive(Clone)]
pub enum Place {
    /// The API server: reaches every node, and can end nothing that it started.
    Api(ApiServer),
}

impl Place {
    /// Does it once. The probe and further attempts are the caller's.
    pub(crate) async fn attempt(&self, target: &Target, deed: &Deed, until: &Until) -> Attempt {
        let instance = match until.run(self.find(target)).await {
            Ok(Ok(instance)) => instance,
            Ok(Err(failure)) => return failure.into(),
            Err(Stop::TimeOver) => return Attempt::timed_out("looking for the container (nothing was run)", until),
            Err(Stop::Cancelled) => return Attempt::revoked(),
        };
        let attempt = match deed {
            Deed::Exec(exec) => self.exec(target, &instance, &exec.command, until).await,
            Deed::Signal(signal) => match self {
                Self::Api(_) => api_server::no_signals(*signal),
            },
            Deed::HttpGet(get) => http_get::get(get, &instance, until).await,
            Deed::TcpSocket(socket) => tcp_socket::connect(socket, &instance, until).await,
        };
        Attempt { container_id: Some(instance.container_id), ..attempt }
    }

    async fn find(&self, target: &Target) -> Result<Instance, Failure> {
        match self {
            Self::Api(api_server) => api_server.find(target).await,
        }
    }

    async fn exec(&self, target: &Target, instance: &Instance, command: &[String], until: &Until) -> Attempt {
        match self {
            Self::Api(api_server) => api_server.exec(target, instance, command, until).await,
        }
    }
}
