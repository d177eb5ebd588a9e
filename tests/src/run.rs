//! Running scenarios: those that the measure includes become the trials of a `libtest-mimic` binary, so filters, `--list`,
//! `--exact` and `--test-threads` work as in any Rust test, and only what the chosen ones need is started.
//!
//! On the embedded cluster nearly all of them run at once: plain ones on one cluster, shared ones on one cluster for each
//! executor, the others on a cluster each. A real cluster runs one Boathook at a time: there plain scenarios come first,
//! then the shared ones of each executor, then the others one after the other. Scenarios that measure lateness run one by
//! one at the end, on either.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow, ensure};
use boathook_api::pod_notification::Executor;
use futures::FutureExt;
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::{Builder, Runtime};

use crate::{
    Ctx,
    boathook::{
        ground::{self, Ground},
        installation::Installation,
        role,
        running::Running,
        word,
    },
    cluster::{Choice, Cluster},
    departures::Departures,
    durations,
    measure::{MEASURE_VAR, Measure},
    scenario,
    suite::{Body, Scenario, Scenarios},
};

/// Scenarios mostly wait for the cluster, so more of them than there are cores run at once. An embedded cluster shares the
/// cores of this process; a real one answers later.
fn default_threads(choice: Choice) -> usize {
    match choice {
        Choice::Embedded => 8,
        Choice::Kubeconfig => 16,
    }
}

/// The `main` of a scenario binary. `lantern` is the program of that name, for a cluster in this process.
pub fn main(lantern: &Path, scenarios: &Scenarios) -> ExitCode {
    // Before anything else: in a container this program becomes the container's command.
    boathook_node::container_init::run_if_asked();
    if let Some(code) = role::play() {
        return code;
    }
    match run(lantern, scenarios) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// One scenario of this run.
#[derive(Clone)]
struct Entry {
    name: String,
    scenario: Scenario,
    executor: Option<Executor>,
    in_process: bool,
}

fn entries(scenarios: &Scenarios, measure: Measure, choice: Choice) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (scenario, executor) in scenarios.included(measure, choice) {
        let name = scenario.full_name(executor);
        if scenario.is_in_process_too && choice == Choice::Embedded {
            let name = name.replacen("::", "::in_process::", 1);
            entries.push(Entry { name, scenario, executor, in_process: true });
        }
        entries.push(Entry { name, scenario, executor, in_process: false });
    }
    entries
}

fn run(lantern: &Path, scenarios: &Scenarios) -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    let (choice, measure) = (Choice::of_the_environment()?, Measure::from_environment()?);
    let names: BTreeSet<_> = scenarios.iter().map(|scenario| scenario.full_name(None)).collect();
    ensure!(names.len() == scenarios.iter().count(), "two scenarios of one suite have the same name");
    arguments.test_threads = arguments.test_threads.or(Some(default_threads(choice)));
    let entries = entries(scenarios, measure, choice);
    if arguments.list {
        let trials = entries.iter().map(|entry| Trial::test(&entry.name, || Ok(()))).collect();
        return Ok(libtest_mimic::run(&arguments, trials).exit_code());
    }
    scenario::remember_panics();
    let runtime = Arc::new(Builder::new_multi_thread().enable_all().build()?);
    let dir = std::env::temp_dir().join(format!("boathook-tests-{}", std::process::id()));
    let chosen: Vec<_> = entries.into_iter().filter(|entry| is_chosen(&arguments, &entry.name)).collect();
    if chosen.is_empty() {
        let message =
            format!("no scenario of measure `{}` has such a name; {MEASURE_VAR}=soak includes all", measure.name());
        // `cargo test NAME` filters this program like every other; CI selects what must exist.
        ensure!(measure == Measure::Sample, message);
        eprintln!("{message}");
    }
    let run = Run { arguments, runtime, choice, lantern: lantern.to_owned(), dir: dir.clone() };
    let passed = run.phases(&chosen)?;
    eprint!("{}", durations::longest(measure.longest_wait()));
    durations::save()?;
    if passed {
        std::fs::remove_dir_all(&dir).with_context(|| format!("failed to remove `{}`", dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("the logs of Boathook's processes are in `{}`", dir.display());
    Ok(ExitCode::FAILURE)
}

fn is_chosen(arguments: &Arguments, name: &str) -> bool {
    !arguments.is_filtered_out(&Trial::test(name, || Ok(())))
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
    fn phases(&self, chosen: &[Entry]) -> Result<bool> {
        // Left by a failed run whose process had the same number.
        let _ = std::fs::remove_dir_all(&self.dir);
        std::fs::create_dir_all(&self.dir).with_context(|| format!("failed to make `{}`", self.dir.display()))?;
        let of = |is_in: &dyn Fn(&Entry) -> bool| -> Vec<Entry> {
            chosen.iter().filter(|entry| is_in(entry)).cloned().collect()
        };
        let is_alone = |entry: &Entry| matches!(entry.scenario.body, Body::Alone(_));
        let (at_once, one_by_one) = match self.choice {
            Choice::Embedded => (vec![of(&|entry| !entry.scenario.is_on_time)], of(&|entry| entry.scenario.is_on_time)),
            Choice::Kubeconfig => {
                let phases = [None, Some(Executor::Api), Some(Executor::Agent)];
                let at_once = phases.map(|executor| of(&|entry| !is_alone(entry) && entry.executor == executor));
                (at_once.to_vec(), of(&is_alone))
            }
        };
        let mut passed = true;
        for entries in at_once {
            passed &= self.at_once(&entries)?;
        }
        let one = Arguments { test_threads: Some(1), ..self.arguments.clone() };
        let trials = one_by_one.iter().map(|entry| self.alone(entry)).collect::<Result<_>>()?;
        Ok(passed_all(&one, trials) && passed)
    }

    fn at_once(&self, entries: &[Entry]) -> Result<bool> {
        let departures = Departures::default();
        let (mut shared, mut plain) = (Vec::new(), None);
        for executor in [Executor::Api, Executor::Agent] {
            let is_used =
                |entry: &Entry| matches!(entry.scenario.body, Body::Shared(_)) && entry.executor == Some(executor);
            if entries.iter().any(is_used) {
                let dir = self.dir.join(word(executor));
                let ground = self.runtime.block_on(Ground::new(self.choice, &self.lantern, &dir))?;
                let running = self.runtime.block_on(Running::start(&ground.installation, executor))?;
                shared.push((executor, ground, running));
            }
        }
        if entries.iter().any(|entry| matches!(entry.scenario.body, Body::Plain(_))) {
            plain = Some(self.runtime.block_on(Cluster::connect(self.choice, &self.lantern))?);
        }
        let mut trials = Vec::new();
        for entry in entries {
            trials.push(match entry.scenario.body {
                Body::Plain(run) => {
                    let (cluster, embedded) = plain.as_ref().context("no cluster for plain scenarios")?;
                    let mut cluster = cluster.clone();
                    if let Some(embedded) = embedded.as_ref().filter(|_| entry.in_process) {
                        cluster.client = embedded.in_process();
                    }
                    self.beside_others(entry, cluster, None, &departures, Box::new(run))
                }
                Body::Shared(run) => {
                    let ground = shared.iter().find(|(executor, ..)| Some(*executor) == entry.executor);
                    let (executor, ground, _) = ground.context("no Boathook for this executor")?;
                    let (executor, installation) = (*executor, ground.installation.clone());
                    let body = Box::new(move |ctx| run(ctx, executor));
                    self.beside_others(entry, ground.cluster.clone(), Some(installation), &departures, body)
                }
                Body::Alone(_) => self.alone(entry)?,
            });
        }
        let mut passed = passed_all(&self.arguments, trials);
        // Before Boathook stops: it removes the finalizers.
        passed &= self.runtime.block_on(departures.report());
        for (_, ground, running) in shared {
            self.runtime.block_on(running.stop())?;
            self.runtime.block_on(ground.leave())?;
        }
        if let Some((_, Some(embedded))) = plain {
            self.runtime.block_on(embedded.stop())?;
        }
        Ok(passed)
    }

    fn beside_others(
        &self,
        entry: &Entry,
        cluster: Cluster,
        installation: Option<Installation>,
        departures: &Departures,
        body: scenario::Body,
    ) -> Trial {
        let (name, departures) = (entry.name.clone(), departures.clone());
        let run = move || {
            async move {
                let outcome = scenario::in_namespace(cluster, &name, body, &departures).await;
                match installation {
                    Some(installation) => with_logs(outcome, &installation),
                    None => outcome,
                }
            }
            .boxed_local()
        };
        scenario::trial(entry.name.clone(), &self.runtime, run)
    }

    /// With a cluster of its own if that is an embedded one.
    fn alone(&self, entry: &Entry) -> Result<Trial> {
        let Body::Alone(run) = entry.scenario.body else {
            return Err(anyhow!("`{}` shares its Boathook and cannot measure lateness", entry.name));
        };
        let executor = entry.executor.context("a scenario with Boathook's processes has an executor")?;
        let (name, choice, lantern) = (entry.name.clone(), self.choice, self.lantern.clone());
        let dir = self.dir.join(name.replace("::", "-"));
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
                let departures = Departures::default();
                let outcome = scenario::in_namespace(ground.cluster.clone(), &name, body, &departures).await;
                let outcome = with_logs(outcome, &ground.installation);
                // The next scenario must not see what this one left.
                outcome.and(departures.all_gone().await).and(ground.leave().await)
            };
            scenario.boxed_local()
        };
        Ok(scenario::trial(entry.name.clone(), &self.runtime, run))
    }
}

/// Runs the trials. An empty list passes and prints nothing.
fn passed_all(arguments: &Arguments, trials: Vec<Trial>) -> bool {
    trials.is_empty() || !libtest_mimic::run(arguments, trials).has_failed()
}

/// Adds the last log lines of Boathook's processes to a failure.
fn with_logs(outcome: Result<()>, installation: &Installation) -> Result<()> {
    outcome.map_err(|error| anyhow!("{}\n{}", scenario::explain(&error), installation.tails().trim_end()))
}
