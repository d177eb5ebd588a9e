//! The phases of a run: the same scenarios with each executor, many at once beside one Boathook; then those that need
//! its processes for themselves, one after the other.
//!
//! Filters choose scenarios as in any Rust test, and only what the chosen ones need is started.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result};
use boathook_api::pod_notification::Executor;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Client;
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::{Builder, Runtime};

use super::{installation::Installation, process::Process, role, word};
use crate::{
    Ctx,
    cluster::{Choice, Cluster},
    namespace,
    scenario::{self, Body},
};

/// Beside a Boathook that serves others too.
#[derive(Clone, Copy)]
pub struct Common {
    pub name: &'static str,
    pub run: fn(Ctx, Executor) -> LocalBoxFuture<'static, Result<()>>,
}

/// With no process of Boathook but those that it starts itself.
#[derive(Clone, Copy)]
pub struct Alone {
    pub name: &'static str,
    pub run: fn(Ctx, Installation, Executor) -> LocalBoxFuture<'static, Result<()>>,
}

/// What is run with one executor.
pub struct Scenarios {
    pub executor: Executor,
    pub common: Vec<Common>,
    pub alone: Vec<Alone>,
}

/// A list of [`Common`] from their functions.
#[macro_export]
macro_rules! common {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$($crate::boathook::phases::Common {
            name: stringify!($name),
            run: |ctx, executor| Box::pin($module::$name(ctx, executor)),
        }),*]
    };
}

/// A list of [`Alone`] from their functions.
#[macro_export]
macro_rules! alone {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$($crate::boathook::phases::Alone {
            name: stringify!($name),
            run: |ctx, installation, executor| Box::pin($module::$name(ctx, installation, executor)),
        }),*]
    };
}

/// The `main` of the suite. `lantern` is the program of that name, for a cluster in this process.
pub fn main(lantern: &Path, suite: &[Scenarios]) -> ExitCode {
    // Before anything else: in a container this program becomes the container's command.
    boathook_node::container_init::run_if_asked();
    if let Some(code) = role::play() {
        return code;
    }
    match run_all(lantern, suite) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(lantern: &Path, suite: &[Scenarios]) -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(scenario::DEFAULT_THREADS));
    let choice = Choice::of_the_environment()?;
    if arguments.list {
        let trials = suite.iter().flat_map(Scenarios::names).map(|name| Trial::test(name, || Ok(()))).collect();
        return Ok(libtest_mimic::run(&arguments, trials).exit_code());
    }
    scenario::remember_panics();
    let runtime = Arc::new(Builder::new_multi_thread().enable_all().build()?);
    let (cluster, embedded) = runtime.block_on(Cluster::connect(choice, lantern))?;
    let suite_name = std::env::current_exe()?.file_stem().map(|name| name.to_string_lossy().into_owned());
    let name = format!("boathook-{}-{}", suite_name.unwrap_or_default(), std::process::id());
    let dir = std::env::temp_dir().join(name);
    let run = Run { arguments, runtime: Arc::clone(&runtime), cluster, dir: dir.clone() };
    let passed = run.phases(suite);
    if let Some(embedded) = embedded {
        runtime.block_on(embedded.stop())?;
    }
    if passed? {
        std::fs::remove_dir_all(&dir).with_context(|| format!("failed to remove `{}`", dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("the logs of Boathook's processes are in `{}`", dir.display());
    Ok(ExitCode::FAILURE)
}

impl Scenarios {
    fn names(&self) -> Vec<String> {
        let names = self.common.iter().map(|scenario| scenario.name).chain(self.alone.iter().map(|alone| alone.name));
        names.map(|name| full_name(self.executor, name)).collect()
    }
}

fn full_name(executor: Executor, name: &str) -> String {
    format!("{}::{name}", word(executor))
}

struct Run {
    arguments: Arguments,
    runtime: Arc<Runtime>,
    cluster: Cluster,
    dir: PathBuf,
}

impl Run {
    /// Whether all passed.
    fn phases(&self, suite: &[Scenarios]) -> Result<bool> {
        std::fs::create_dir_all(&self.dir).with_context(|| format!("failed to make `{}`", self.dir.display()))?;
        let mut passed = true;
        for Scenarios { executor, common, .. } in suite {
            passed &= self.common(*executor, common)?;
        }
        for Scenarios { executor, alone, .. } in suite {
            passed &= self.alone(*executor, alone)?;
        }
        self.runtime.block_on(remove_webhooks(&self.cluster.client))?;
        Ok(passed)
    }

    /// One phase of scenarios beside one Boathook.
    fn common(&self, executor: Executor, scenarios: &[Common]) -> Result<bool> {
        let name = |scenario: &Common| full_name(executor, scenario.name);
        let Some(chosen) = self.chosen(scenarios, name) else { return Ok(true) };
        let installation = self.install(word(executor))?;
        let processes = self.runtime.block_on(start(&installation, executor))?;
        let trial = |scenario: &Common| {
            let run = scenario.run;
            self.trial(name(scenario), &installation, Box::new(move |ctx| run(ctx, executor)))
        };
        let passed = !libtest_mimic::run(&self.arguments, chosen.iter().map(trial).collect()).has_failed();
        for process in processes {
            self.runtime.block_on(process.stop())?;
        }
        Ok(passed)
    }

    /// Scenarios one after the other, each with processes of its own.
    fn alone(&self, executor: Executor, scenarios: &[Alone]) -> Result<bool> {
        let name = |scenario: &Alone| full_name(executor, scenario.name);
        let Some(chosen) = self.chosen(scenarios, name) else { return Ok(true) };
        let mut trials = Vec::new();
        for scenario in chosen {
            let installation = self.install(&name(&scenario).replace("::", "-"))?;
            let (run, given) = (scenario.run, installation.clone());
            trials.push(self.trial(name(&scenario), &installation, Box::new(move |ctx| run(ctx, given, executor))));
        }
        let one_by_one = Arguments { test_threads: Some(1), ..self.arguments.clone() };
        Ok(!libtest_mimic::run(&one_by_one, trials).has_failed())
    }

    /// Those that the filters choose; nothing if that is none.
    fn chosen<S: Copy>(&self, scenarios: &[S], name: impl Fn(&S) -> String) -> Option<Vec<S>> {
        let is_chosen = |scenario: &&S| {
            let as_trial = Trial::test(name(scenario), || Ok(()));
            !self.arguments.is_filtered_out(&as_trial)
        };
        let chosen: Vec<_> = scenarios.iter().filter(is_chosen).copied().collect();
        Some(chosen).filter(|chosen| !chosen.is_empty())
    }

    fn install(&self, part: &str) -> Result<Installation> {
        self.runtime.block_on(Installation::of(self.cluster.clone(), &self.dir.join(part)))
    }

    /// A failure also shows what Boathook's processes said last.
    fn trial(&self, name: String, installation: &Installation, body: Body) -> Trial {
        let installation = installation.clone();
        scenario::trial(name, &self.runtime, &self.cluster, body, move || installation.tails())
    }
}

/// Takes the webhooks out of the way of whoever uses the cluster next.
async fn remove_webhooks(client: &Client) -> Result<()> {
    let name = boathook_install::webhooks::NAME.to_owned();
    namespace::remove::<ValidatingWebhookConfiguration>(client.clone(), name).await
}

async fn start(installation: &Installation, executor: Executor) -> Result<Vec<Process>> {
    let mut processes = vec![installation.controller(executor, &[]).await?];
    if executor == Executor::Agent {
        processes.push(installation.agent().await?);
    }
    Ok(processes)
}
