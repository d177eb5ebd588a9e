//! A container's first process on this host.

use boathook_api::pod_notification::ErrorType;
use boathook_cri::{ContainerState, ContainerStatusRequest};
use boathook_process::Handle;
use serde_json::Value;

use super::{Runtime, RuntimeError};
use crate::Failure;

/// A hold on the first process of a container that runs.
pub(crate) struct FirstProcess {
    pub(crate) handle: Handle,
}

impl FirstProcess {
    pub(crate) fn pid(&self) -> i32 {
        self.handle.identity.pid
    }
}

impl Runtime {
    /// The first process of a running container. Its number is asked for again after it is held: a container that
    /// restarted meanwhile is not confused with whoever got its number.
    pub(crate) async fn first_process(&self, container_id: &str) -> Result<FirstProcess, Failure> {
        let pid = self.pid(container_id).await?;
        let held = Handle::of(pid).map_err(|error| {
            Failure::new(ErrorType::Forbidden, format!("not allowed to open process {pid} of the container: {error}"))
        })?;
        let not_seen = || {
            let message = format!(
                "the agent does not see process {pid} of the container: run the agent in the host's PID namespace"
            );
            Failure::new(ErrorType::Unsupported, message)
        };
        let again = self.pid(container_id).await?;
        match held {
            Some(handle) if again == pid => Ok(FirstProcess { handle }),
            Some(_) => Err(not_running(container_id)),
            None if again == pid => Err(not_seen()),
            None => Err(not_running(container_id)),
        }
    }

    async fn pid(&self, container_id: &str) -> Result<i32, Failure> {
        let asked = ContainerStatusRequest { container_id: container_id.to_owned(), verbose: true };
        let told = self
            .call("return the status of a container", async |mut client| client.container_status(asked).await)
            .await;
        let told = match told {
            Err(RuntimeError::Refused { source, .. }) if source.code() == tonic::Code::NotFound => {
                return Err(not_running(container_id));
            }
            told => told?,
        };
        if told.status.is_none_or(|status| status.state() != ContainerState::ContainerRunning) {
            return Err(not_running(container_id));
        }
        let pid = told.info.get("info").and_then(|info| pid_of(info));
        Ok(pid.ok_or_else(|| RuntimeError::NoProcess { container: container_id.to_owned() })?)
    }
}

fn not_running(container_id: &str) -> Failure {
    Failure::new(ErrorType::ContainerNotRunning, format!("container `{container_id}` is no longer running"))
}

fn pid_of(info: &str) -> Option<i32> {
    let info: Value = serde_json::from_str(info).ok()?;
    i32::try_from(info.get("pid")?.as_i64()?).ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_is_read_from_the_runtimes_info() {
        assert_eq!(pid_of(r#"{"sandboxID": "a", "pid": 4711, "runtimeSpec": {}}"#), Some(4711));
        for none in [r#"{"pid": 0}"#, r#"{"pid": "1"}"#, "{}", ""] {
            assert_eq!(pid_of(none), None, "{none}");
        }
    }
}
