//! `boathook demo`: the main job in one command, on a cluster that lives as long as it.
//!
//! The cluster and the node's agent are in this process; the controller is a process of its own, to be killed. However
//! it ends, all of it ends first.

mod controller;
mod database;
mod notifications;
mod objects;
mod rollouts;
mod snapshots;
mod telling;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use boathook_agent::Agent;
use boathook_api::ApplicationSnapshot;
use kube::Client;

use crate::{
    embedded::{self, Embedded, Options},
    output::{self, Screen},
    timeline,
};
use controller::Controller;
use telling::Teller;

/// Ended by Ctrl-C, as a shell says it.
const INTERRUPTED: u8 = 130;

/// How often the database is asked again: nothing tells when it changes.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long the kinds may take to be served.
const INSTALL_DEADLINE: Duration = Duration::from_secs(600);

/// What the steps play on, and how they are told.
pub(crate) struct Story {
    teller: Teller,
    client: Client,
    kubeconfig: PathBuf,
    agent_options: boathook_agent::Options,
    agent: Option<Agent>,
    controller: Option<Controller>,
    /// The snapshot with hooks, once it is over.
    taken: Option<ApplicationSnapshot>,
    /// Whether everything was verified, after the last step.
    verified: Option<bool>,
}

/// Plays it, until its end or until `stopped`. Kept, it goes on after its end until `stopped`.
pub(crate) async fn play(keep: bool, stopped: impl Future<Output = ()>) -> Result<ExitCode> {
    let options = Options { ephemeral: true, ..Options::default() };
    let mut cluster = Embedded::start(options).await.context("failed to start a cluster")?;
    let mut story = Story::on(&cluster);
    let played = tokio::select! {
        () = stopped => Ok(()),
        died = cluster.died() => Err(died),
        told = story.tell(keep) => told,
    };
    let code = match story.verified {
        None => ExitCode::from(INTERRUPTED),
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
    };
    story.end().await;
    cluster.stop().await;
    played.map(|()| code)
}

impl Story {
    fn on(cluster: &Embedded) -> Self {
        let agent_options = boathook_agent::Options {
            node: embedded::NODE.to_owned(),
            cri_socket: cluster.cri_socket(),
            state_dir: cluster.agent_state_dir(),
            allow_signals: [].into(),
            limit: 100,
        };
        Self {
            teller: Teller::new(Screen::new()),
            client: cluster.client(),
            kubeconfig: cluster.kubeconfig().to_owned(),
            agent_options,
            agent: None,
            controller: None,
            taken: None,
            verified: None,
        }
    }

    /// Step by step, to the first that fails. Kept, it never returns.
    async fn tell(&mut self, keep: bool) -> Result<()> {
        let verified = self.step("A small Kubernetes, inside this process", boathook).await?
            && self.step("A database under load", database_under_load).await?
            && self.step("A snapshot without hooks", snapshots::without_hooks).await?
            && self.step("A snapshot with hooks", snapshots::with_hooks).await?
            && self.step("A notification", notifications::told).await?
            && self.step("Rollouts with hooks", rollouts::with_hooks).await?
            && self.step("A controller killed while frozen", snapshots::killed_controller).await?;
        if let Some(taken) = &self.taken {
            // Its hooks have told it everything.
            let timeline = timeline::of_snapshot(taken, &[], jiff::Timestamp::now());
            let title =
                format!("The freeze around the cut of `{}`, as `boathook timeline` draws it", snapshots::WITH_HOOKS);
            self.teller.draw(&title, &timeline)?;
        }
        self.teller.summary(verified)?;
        self.verified = Some(verified);
        if keep {
            self.say_how_to_look()?;
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn step(&mut self, title: &'static str, play: impl AsyncFnOnce(&mut Self) -> Result<String>) -> Result<bool> {
        let begun = self.teller.step(title)?;
        let found = play(self).await.map_err(|error| output::said_once(&error));
        let is_found = found.is_ok();
        self.teller.end(title, begun, found)?;
        Ok(is_found)
    }

    fn say_how_to_look(&mut self) -> Result<()> {
        let database = database::NAME;
        self.teller.aside(&format!(
            "
It goes on until Ctrl-C. To look at it, in another terminal:
  kubectl get pods,pvc,volumesnapshots,applicationsnapshots,executionhooks,podnotifications
  kubectl describe applicationsnapshot {}
  kubectl logs {database} --timestamps
  kubectl exec {database} -- ./boathook logbook status {}
  kubectl describe deploymentlifecycle {}
ready: export KUBECONFIG={}",
            snapshots::WITH_HOOKS,
            database::CLAIM,
            rollouts::NAME,
            self.kubeconfig.display(),
        ))?;
        Ok(())
    }

    fn client(&self) -> Client {
        self.client.clone()
    }

    fn start_controller(&mut self) -> Result<&mut Controller> {
        Ok(self.controller.insert(Controller::start(&self.kubeconfig)?))
    }

    async fn controller_leads(&mut self) -> Result<()> {
        let controller = self.controller.as_mut().context("there is no controller")?;
        self.teller.wait("waiting until the controller leads", controller.ready()).await
    }

    /// Kills it where it stands, and says which process that was.
    async fn kill_controller(&mut self) -> Result<String> {
        let controller = self.controller.take().context("there is no controller")?;
        let pid = controller.pid().to_string();
        controller.kill().await.map(|()| pid)
    }

    /// Ends what was started, each letting what it runs end first.
    async fn end(self) {
        if let Some(controller) = self.controller {
            controller.stop().await;
        }
        if let Some(agent) = self.agent {
            agent.stop().await;
        }
    }
}

async fn boathook(story: &mut Story) -> Result<String> {
    let client = story.client();
    let install = boathook_install::apply(&client, boathook_install::NAMESPACE, INSTALL_DEADLINE);
    story.teller.wait("installing Boathook's kinds", async { Ok(install.await?) }).await?;
    let agent = Agent::start(client, story.agent_options.clone(), Arc::default());
    story.agent = Some(story.teller.wait("starting the node's agent", async { Ok(agent.await?) }).await?);
    let pid = story.start_controller()?.pid();
    story.controller_leads().await?;
    Ok(format!("it serves, with the node's agent and a controller (process {pid})"))
}

async fn database_under_load(story: &mut Story) -> Result<String> {
    let client = story.client();
    story.teller.say("pod `logbook` writes to claim `data`: records in one file, where they are in another")?;
    let status = story.teller.wait("starting the database", database::start(&client)).await?;
    Ok(format!("it writes, {} records by now", status.records))
}
