//! The phases of a run. Most scenarios run many at once, beside one Boathook with each executor; others need its processes
//! for themselves. On the embedded cluster those have a cluster each, so all of them run at once; another cluster there is
//! only one of, and they follow one after the other. What is about a second has the machine for itself, on either.
//!
//! Filters choose scenarios as in any Rust test, and only what the chosen ones need is started.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow};
use boathook_api::pod_notification::Executor;
use futures::{FutureExt, future::LocalBoxFuture};
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::{Builder, Runtime};

use super::{
    ground::{self, Ground},
    installation::Installation,
    role,
    running::Running,
    word,
};
use crate::{Ctx, cluster::Choice, durations, scenario};

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
#[derive(Clone)]
pub struct Scenarios {
    pub executor: Executor,
    pub common: Vec<Common>,
    pub alone: Vec<Alone>,
    /// Likewise, on the embedded cluster alone: what they are about is Boathook's own, so another one would show no more.
    pub alone_embedded: Vec<Alone>,
    /// Likewise, and a busy machine would make them late.
    pub on_time: Vec<Alone>,
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
    let choice = Choice::of_the_environment()?;
    arguments.test_threads = arguments.test_threads.or(Some(scenario::default_threads(choice)));
    if arguments.list {
        let trials = suite.iter().flat_map(Scenarios::names).map(|name| Trial::test(name, || Ok(()))).collect();
        return Ok(libtest_mimic::run(&arguments, trials).exit_code());
    }
    scenario::remember_panics();
    let runtime = Arc::new(Builder::new_multi_thread().enable_all().build()?);
    let suite_name = std::env::current_exe()?.file_stem().map(|name| name.to_string_lossy().into_owned());
    let name = format!("boathook-{}-{}", suite_name.unwrap_or_default(), std::process::id());
    let dir = std::env::temp_dir().join(name);
    let run = Run { arguments, runtime, choice, lantern: lantern.to_owned(), dir: dir.clone() };
    let passed = run.phases(suite)?;
    eprint!("{}", durations::longest());
    if passed {
        std::fs::remove_dir_all(&dir).with_context(|| format!("failed to remove `{}`", dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("the logs of Boathook's processes are in `{}`", dir.display());
    Ok(ExitCode::FAILURE)
}

impl Scenarios {
    /// None yet.
    pub fn with(executor: Executor) -> Self {
        Self { executor, common: vec![], alone: vec![], alone_embedded: vec![], on_time: vec![] }
    }

    fn names(&self) -> Vec<String> {
        let Self { executor, common, alone, alone_embedded, on_time } = self;
        let alone = alone.iter().chain(alone_embedded).chain(on_time).map(|scenario| scenario.name);
        common.iter().map(|scenario| scenario.name).chain(alone).map(|name| full_name(*executor, name)).collect()
    }
}

fn full_name(executor: Executor, name: &str) -> String {
    format!("{}::{name}", word(executor))
}

struct Run {
    arguments: Arguments,
    runtime: Arc<Runtime>,
    choice: Choice,
    lantern: PathBuf,
    dir: PathBuf,
}

impl Run {
    /// Whether all passed.
    fn phases(&self, suite: &[Scenarios]) -> Result<bool> {
        std::fs::create_dir_all(&self.dir).with_context(|| format!("failed to make `{}`", self.dir.display()))?;
        let (mut passed, mut one_by_one) = (true, Vec::new());
        match self.choice {
            Choice::Embedded => {
                let alone = self.alone(suite, |scenarios| &scenarios.alone);
                let alone_embedded = self.alone(suite, |scenarios| &scenarios.alone_embedded);
                passed &= self.at_once(suite, alone.into_iter().chain(alone_embedded).collect())?;
            }
            Choice::Kubeconfig => {
                for scenarios in suite {
                    passed &= self.at_once(std::slice::from_ref(scenarios), vec![])?;
                }
                one_by_one.extend(self.alone(suite, |scenarios| &scenarios.alone));
            }
        }
        one_by_one.extend(self.alone(suite, |scenarios| &scenarios.on_time));
        let one = Arguments { test_threads: Some(1), ..self.arguments.clone() };
        Ok(self.passed(&one, one_by_one) && passed)
    }

    /// The common scenarios, beside one Boathook with each executor, and others that have what they need. These begin
    /// first: they take longest.
    fn at_once(&self, suite: &[Scenarios], others: Vec<Trial>) -> Result<bool> {
        let (mut trials, mut grounds) = (others, Vec::new());
        for Scenarios { executor, common, .. } in suite {
            let chosen: Vec<_> = common.iter().filter(|scenario| self.is_chosen(*executor, scenario.name)).collect();
            if chosen.is_empty() {
                continue;
            }
            let ground =
                self.runtime.block_on(Ground::new(self.choice, &self.lantern, &self.dir.join(word(*executor))))?;
            let running = self.runtime.block_on(Running::start(&ground.installation, *executor))?;
            trials.extend(chosen.into_iter().map(|scenario| self.common(*executor, scenario, &ground)));
            grounds.push((ground, running));
        }
        let passed = self.passed(&self.arguments, trials);
        for (ground, running) in grounds {
            self.runtime.block_on(running.stop())?;
            self.runtime.block_on(ground.leave())?;
        }
        Ok(passed)
    }

    fn common(&self, executor: Executor, scenario: &Common, ground: &Ground) -> Trial {
        let (name, run) = (full_name(executor, scenario.name), scenario.run);
        let (named, cluster, installation) = (name.clone(), ground.cluster.clone(), ground.installation.clone());
        let run = move || {
            let body = Box::new(move |ctx| run(ctx, executor));
            async move { with_logs(scenario::in_namespace(cluster, &named, body).await, &installation) }.boxed_local()
        };
        scenario::trial(name, &self.runtime, run)
    }

    /// Those of the scenarios with processes of their own that are chosen.
    fn alone(&self, suite: &[Scenarios], which: impl Fn(&Scenarios) -> &Vec<Alone>) -> Vec<Trial> {
        let trials = suite.iter().flat_map(|scenarios| {
            let chosen = which(scenarios).iter().filter(|scenario| self.is_chosen(scenarios.executor, scenario.name));
            chosen.map(|scenario| self.alone_trial(scenarios.executor, *scenario)).collect::<Vec<_>>()
        });
        trials.collect()
    }

    fn alone_trial(&self, executor: Executor, Alone { name, run }: Alone) -> Trial {
        let name = full_name(executor, name);
        let (choice, lantern, dir) = (self.choice, self.lantern.clone(), self.dir.join(name.replace("::", "-")));
        let named = name.clone();
        // The future is made on the thread that it runs on.
        let run = move || {
            let scenario = async move {
                let ground = Ground::new(choice, &lantern, &dir).await?;
                let given = ground.installation.clone();
                let body = Box::new(move |ctx: Ctx| {
                    let (client, namespace) = (ctx.client(), ctx.namespace().to_owned());
                    async move { run(ctx, given, executor).await.and(ground::let_go(&client, &namespace).await) }
                        .boxed_local()
                });
                let outcome = scenario::in_namespace(ground.cluster.clone(), &named, body).await;
                let outcome = with_logs(outcome, &ground.installation);
                outcome.and(ground.leave().await)
            };
            scenario.boxed_local()
        };
        scenario::trial(name, &self.runtime, run)
    }

    fn is_chosen(&self, executor: Executor, name: &str) -> bool {
        !self.arguments.is_filtered_out(&Trial::test(full_name(executor, name), || Ok(())))
    }

    /// Runs them. None is as good as all passed, and not worth a word.
    fn passed(&self, arguments: &Arguments, trials: Vec<Trial>) -> bool {
        trials.is_empty() || !libtest_mimic::run(arguments, trials).has_failed()
    }
}

/// A failure also shows what Boathook's processes said last.
fn with_logs(outcome: Result<()>, installation: &Installation) -> Result<()> {
    outcome.map_err(|error| anyhow!("{}\n{}", scenario::explain(&error), installation.tails().trim_end()))
}
