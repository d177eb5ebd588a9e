//! Boathook as it runs with one executor: a controller, and the node's agent if that carries notifications out.

use anyhow::Result;
use boathook_api::pod_notification::Executor;

use super::{installation::Installation, process::Process};

/// The processes.
pub struct Running {
    pub controller: Process,
    /// With the executor `agent`.
    pub agent: Option<Process>,
}

impl Running {
    pub async fn start(installation: &Installation, executor: Executor) -> Result<Self> {
        let controller = installation.controller(executor, &[]).await?;
        let agent = match executor {
            Executor::Api => None,
            Executor::Agent => Some(installation.agent().await?),
        };
        Ok(Self { controller, agent })
    }

    /// Kills whoever carries notifications out; the other one goes on.
    pub async fn kill_executor(self, installation: &Installation) -> Result<Option<Process>> {
        match self.agent {
            Some(agent) => {
                agent.kill().await?;
                Ok(Some(self.controller))
            }
            None => {
                self.controller.kill().await?;
                installation.bury_leader().await?;
                Ok(None)
            }
        }
    }

    /// Kills the controller and starts another, which leads at once; the agent goes on.
    pub async fn replace_controller(self, installation: &Installation, executor: Executor) -> Result<Self> {
        self.controller.kill().await?;
        installation.bury_leader().await?;
        Ok(Self { controller: installation.controller(executor, &[]).await?, agent: self.agent })
    }

    /// Starts it again beside what went on.
    pub async fn revive(installation: &Installation, left: Option<Process>) -> Result<Self> {
        match left {
            Some(controller) => Ok(Self { controller, agent: Some(installation.agent().await?) }),
            None => Self::start(installation, Executor::Api).await,
        }
    }

    pub async fn stop(self) -> Result<()> {
        self.controller.stop().await?;
        match self.agent {
            Some(agent) => agent.stop().await,
            None => Ok(()),
        }
    }
}
