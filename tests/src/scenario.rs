//! Running scenarios: a list of them becomes the trials of a `libtest-mimic` binary, so filters, `--list`, `--exact`
//! and `--test-threads` work as in any Rust test.
//!
//! All scenarios share one runtime and one client; what controllers are built from also runs with the client that an
//! embedded cluster has in its own process, without a socket. Each runs on its own thread and in its own namespace, which is
//! removed however the scenario ends: passed, failed, panicked or past its deadline. There is no way to skip, ignore
//! or retry one.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    panic::AssertUnwindSafe,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use futures::{FutureExt, future::LocalBoxFuture};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

use crate::{
    Ctx,
    cluster::{Choice, Cluster},
    durations, namespace,
};

/// Scenarios mostly wait for the cluster, so more of them than there are cores run at once: an embedded one shares this
/// process' cores, and whoever uses another one waits the longer for it.
pub fn default_threads(choice: Choice) -> usize {
    match choice {
        Choice::Embedded => 8,
        Choice::Kubeconfig => 16,
    }
}

/// Past the sum of the waits of any scenario: it stops one that waits without a deadline of its own.
const SCENARIO_DEADLINE: Duration = Duration::from_secs(3600);

/// One scenario. Made by [`scenarios!`](crate::scenarios), which takes the name from the function.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    pub run: fn(Ctx) -> LocalBoxFuture<'static, Result<()>>,
}

/// The list of scenarios from their functions: `scenarios![exec::exit_codes_come_back, ...]`.
#[macro_export]
macro_rules! scenarios {
    ($($module:ident::$name:ident),* $(,)?) => {
        vec![$($crate::Scenario { name: stringify!($name), run: |ctx| Box::pin($module::$name(ctx)) }),*]
    };
}

/// The `main` of a scenario binary. `lantern` is the program of that name, for a cluster in this process; the second
/// list runs again with the client that such a cluster has in process.
pub fn main(lantern: &Path, once: Vec<Scenario>, also_in_process: Vec<Scenario>) -> ExitCode {
    // Before anything else: in a container this program becomes the container's command.
    boathook_node::container_init::run_if_asked();
    match run_all(lantern, &[once, also_in_process.clone()].concat(), &also_in_process) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(lantern: &Path, scenarios: &[Scenario], in_process: &[Scenario]) -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    let names: BTreeSet<_> = scenarios.iter().map(|scenario| scenario.name).collect();
    assert_eq!(names.len(), scenarios.len(), "two scenarios have the same name");
    let choice = Choice::of_the_environment()?;
    arguments.test_threads = arguments.test_threads.or(Some(default_threads(choice)));
    let in_process = if choice == Choice::Embedded { in_process } else { &[] };
    let in_process_name = |scenario: &Scenario| format!("in_process::{}", scenario.name);
    if arguments.list {
        // Needs no cluster.
        let names =
            scenarios.iter().map(|scenario| scenario.name.to_owned()).chain(in_process.iter().map(in_process_name));
        let trials = names.map(|name| Trial::test(name, || Ok(()))).collect();
        return Ok(libtest_mimic::run(&arguments, trials).exit_code());
    }
    remember_panics();
    let runtime = Arc::new(Builder::new_multi_thread().enable_all().build()?);
    let (cluster, embedded) = runtime.block_on(Cluster::connect(choice, lantern))?;
    let trial = |name: String, cluster: &Cluster, scenario: &Scenario| {
        let (cluster, named, body) = (cluster.clone(), name.clone(), scenario.run);
        let run = move || async move { in_namespace(cluster, &named, Box::new(body)).await }.boxed_local();
        trial(name, &runtime, run)
    };
    let mut trials: Vec<_> =
        scenarios.iter().map(|scenario| trial(scenario.name.to_owned(), &cluster, scenario)).collect();
    if let Some(embedded) = &embedded {
        let cluster = Cluster { client: embedded.in_process(), ..cluster };
        trials.extend(in_process.iter().map(|scenario| trial(in_process_name(scenario), &cluster, scenario)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    eprint!("{}", durations::longest());
    if let Some(embedded) = embedded {
        runtime.block_on(embedded.stop())?;
    }
    Ok(conclusion.exit_code())
}

/// What a scenario does with what it is given.
pub type Body = Box<dyn FnOnce(Ctx) -> LocalBoxFuture<'static, Result<()>> + Send>;

/// A scenario as a trial: it runs on a thread of its own.
pub fn trial(
    name: String,
    runtime: &Arc<Runtime>,
    run: impl FnOnce() -> LocalBoxFuture<'static, Result<()>> + Send + 'static,
) -> Trial {
    let (runtime, scenario) = (Arc::clone(runtime), name.clone());
    Trial::test(name, move || {
        RUNS_SCENARIOS.set(true);
        let begun = Instant::now();
        let outcome = runtime.block_on(run());
        durations::note(scenario, begun.elapsed());
        outcome.map_err(|error| Failed::from(explain(&error)))
    })
}

/// Runs a scenario in a namespace of its own, which goes with it.
pub async fn in_namespace(cluster: Cluster, scenario: &str, body: Body) -> Result<()> {
    let client = cluster.client.clone();
    let name = namespace::create(&client, scenario).await?;
    let ctx = Ctx::new(cluster, name.clone());
    let outcome = attempt(ctx.clone(), body).await;
    if let Err(error) = &outcome {
        // Cleaning up after a failure can take minutes.
        eprintln!("{scenario} failed: {}", explain(error));
    }
    let cleaned = ctx.remove_cluster_scoped().await;
    let destroyed = namespace::destroy(&client, &name).await;
    sum_up([outcome, cleaned, destroyed])
}

/// Runs the scenario itself; a panic or a missed deadline becomes its error.
async fn attempt(ctx: Ctx, body: Body) -> Result<()> {
    let scenario = async {
        namespace::usable(&ctx).await?;
        body(ctx).await
    };
    let bounded = tokio::time::timeout(SCENARIO_DEADLINE, scenario);
    match AssertUnwindSafe(bounded).catch_unwind().await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(anyhow!("the scenario did not end within {SCENARIO_DEADLINE:?}")),
        Err(_) => Err(anyhow!(LAST_PANIC.take().unwrap_or_else(|| "panicked".to_owned()))),
    }
}

/// Every failure, the first one first: that the namespace stayed must not hide why the scenario failed.
fn sum_up(outcomes: [Result<()>; 3]) -> Result<()> {
    let errors: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    match errors.len() {
        0 => Ok(()),
        1 => errors.into_iter().try_for_each(Err),
        _ => {
            let texts: Vec<_> = errors.iter().map(explain).collect();
            Err(anyhow!(texts.join("\n\nand afterwards: ")))
        }
    }
}

/// The error and its causes, a line or more each. (anyhow's own form adds a backtrace when `RUST_BACKTRACE` is set: of
/// the runtime, mostly, and never of the cluster.)
pub(crate) fn explain(error: &anyhow::Error) -> String {
    let lines: Vec<_> = error.chain().map(ToString::to_string).collect();
    lines.join("\n  because: ")
}

thread_local! {
    /// Message and place of the last panic of a thread that runs scenarios. Only the hook sees the place; a scenario
    /// is polled, and its panic caught, on one thread.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static RUNS_SCENARIOS: Cell<bool> = const { Cell::new(false) };
}

/// A scenario's panic is told once, with its failure; any other as always.
pub fn remember_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match RUNS_SCENARIOS.get() {
        true => LAST_PANIC.set(Some(info.to_string())),
        false => print(info),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    mod listed {
        use super::*;

        pub(super) async fn a_listed_scenario(_: Ctx) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_scenario_has_the_name_of_its_function() {
        let scenarios = crate::scenarios![listed::a_listed_scenario];
        assert_eq!(scenarios[0].name, "a_listed_scenario");
    }

    #[test]
    fn a_failed_cleanup_does_not_hide_why_the_scenario_failed() {
        let error = sum_up([Err(anyhow!("wrong bytes")), Ok(()), Err(anyhow!("namespace stays"))]).unwrap_err();
        assert_eq!(error.to_string(), "wrong bytes\n\nand afterwards: namespace stays");
        assert!(sum_up([Ok(()), Ok(()), Ok(())]).is_ok());
    }

    #[test]
    fn a_failure_is_explained_by_its_causes() {
        let error = anyhow!("connection reset").context("failed to list pods");
        assert_eq!(explain(&error), "failed to list pods\n  because: connection reset");
    }
}
