//! The places that actions are carried out from.

pub mod api_server;
pub mod cri;
pub(crate) mod held;
mod streams;

use std::time::Duration;

use boathook_api::{ExecAction, action::Deed, pod_notification::ErrorType};

use crate::{
    Failure, Outcome, Session, Target, http_get,
    instance::Instance,
    outcome::Attempt,
    session::Held,
    signal, tcp_socket,
    until::{Stop, Until},
};
use api_server::ApiServer;
use cri::Runtime;
use held::Streams;

/// The exit code of who was killed, as everyone in a container is when it ends.
const KILLED: i32 = 137;

/// After a command broke off: how long a word that its container has ended is waited for, and how often it is looked
/// for.
const WORD_OF_THE_END: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Where an action is carried out from.
#[derive(Clone)]
pub enum Place {
    /// The API server: reaches every node, and can end nothing that it started.
    Api(ApiServer),
    /// The container runtime of this node.
    Cri(Runtime),
}

impl Place {
    /// Does it once. The probe and further attempts are the caller's.
    pub(crate) async fn attempt(&self, target: &Target, deed: &Deed, until: &Until) -> Attempt {
        let instance = match until.before_more().run(self.find(target)).await {
            Ok(Ok(instance)) => instance,
            Ok(Err(failure)) => return failure.into(),
            Err(stop) => return not_looked_for(stop, until),
        };
        let attempt = match deed {
            Deed::Exec(exec) => self.exec(target, &instance, &exec.command, until).await,
            Deed::Signal(signal) => match self {
                Self::Api(_) => signal::unsupported(*signal),
                Self::Cri(runtime) => signal::send(runtime, instance.bare_id(), *signal, until).await,
            },
            Deed::HttpGet(get) => http_get::get(get, &instance, until).await,
            Deed::TcpSocket(socket) => tcp_socket::connect(socket, &instance, until).await,
        };
        Attempt { container_id: Some(instance.container_id), ..attempt }
    }

    /// Begins a command whose session is held; there is one if it has succeeded, which is when it is ready.
    pub(crate) async fn begin(&self, target: &Target, deed: &Deed, until: &Until) -> (Attempt, Option<Session>) {
        let Deed::Exec(ExecAction { command, hold: _ }) = deed else {
            return (Attempt::failed(ErrorType::Unsupported, "only a command can hold its session: remove hold"), None);
        };
        let instance = match until.before_more().run(self.find(target)).await {
            Ok(Ok(instance)) => instance,
            Ok(Err(failure)) => return (failure.into(), None),
            Err(stop) => return (not_looked_for(stop, until), None),
        };
        let streams = match self {
            Self::Api(api_server) => api_server.begin(target, command, until).await.map(Streams::Api),
            Self::Cri(runtime) => runtime.begin(instance.bare_id(), command, true, until).await.map(Streams::Cri),
        };
        let container_id = instance.container_id.clone();
        let held = Held { command: command.clone(), container_id: container_id.clone() };
        let begun = match streams {
            Ok(streams) => Session::begin(streams, held, until).await,
            Err(attempt) => Err(attempt),
        };
        let (attempt, session) = match begun {
            Ok(session) => (Attempt::succeeded(), Some(session)),
            Err(attempt) if may_have_ended_with_its_container(&attempt) => {
                (self.with_the_containers_end(attempt, target, &instance, until).await, None)
            }
            Err(attempt) => (attempt, None),
        };
        (Attempt { container_id: Some(container_id), ..attempt }, session)
    }

    async fn find(&self, target: &Target) -> Result<Instance, Failure> {
        match self {
            Self::Api(api_server) => api_server.find(target).await,
            Self::Cri(runtime) => runtime.find(target).await,
        }
    }

    async fn exec(&self, target: &Target, instance: &Instance, command: &[String], until: &Until) -> Attempt {
        let attempt = match self {
            Self::Api(api_server) => api_server.exec(target, command, until).await,
            Self::Cri(runtime) => runtime.exec(instance.bare_id(), command, until).await,
        };
        match may_have_ended_with_its_container(&attempt) {
            true => self.with_the_containers_end(attempt, target, instance, until).await,
            false => attempt,
        }
    }

    /// The same attempt, or the container's end if that is what ended it.
    async fn with_the_containers_end(
        &self,
        attempt: Attempt,
        target: &Target,
        instance: &Instance,
        until: &Until,
    ) -> Attempt {
        let until = until.at_most(WORD_OF_THE_END);
        loop {
            let ended = match until.run(self.find(target)).await {
                Ok(Err(failure)) => match failure.kind {
                    ErrorType::ContainerNotRunning | ErrorType::PodNotFound => Some(failure),
                    // It could not be looked at.
                    _ => None,
                },
                Ok(Ok(now)) if now.container_id != instance.container_id => {
                    let message = format!("container `{}` restarted meanwhile", target.container);
                    Some(Failure::new(ErrorType::ContainerNotRunning, message))
                }
                Ok(Ok(_)) => None,
                Err(_) => return attempt,
            };
            if let Some(Failure { kind, message }) = ended {
                let failure = Failure::new(kind, format!("the command ended with its container: {message}"));
                // Nothing outlives its container.
                return Attempt { outcome: Outcome::Failed(failure), process_may_remain: false, ..attempt };
            }
            if until.pause(LOOK_AGAIN).await.is_err() {
                return attempt;
            }
        }
    }
}

fn not_looked_for(stop: Stop, until: &Until) -> Attempt {
    match stop {
        Stop::TimeOver => Attempt::timed_out("the search for the container (the action was not run)", until),
        Stop::Cancelled => Attempt::revoked(),
    }
}

fn may_have_ended_with_its_container(attempt: &Attempt) -> bool {
    match &attempt.outcome {
        Outcome::Failed(_) => attempt.exit_code == Some(KILLED),
        Outcome::Unknown(_) => true,
        Outcome::Succeeded => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_or_unknown_command_may_have_ended_with_its_container() {
        let killed = |code| Attempt { exit_code: Some(code), ..Attempt::failed(ErrorType::HandlerFailed, "") };
        assert!(may_have_ended_with_its_container(&killed(137)));
        assert!(may_have_ended_with_its_container(&Attempt::unknown("")));
        assert!(!may_have_ended_with_its_container(&killed(1)));
        assert!(!may_have_ended_with_its_container(&Attempt::succeeded()));
    }
}
