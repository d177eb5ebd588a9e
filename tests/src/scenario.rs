//! One scenario as a trial: on a thread of its own and in a namespace of its own, which is removed however the scenario
//! ends: passed, failed, panicked or past its deadline. There is no way to skip, ignore or retry one.
//!
//! All scenarios share one runtime.

use std::{
    cell::{Cell, RefCell},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use futures::{FutureExt, future::LocalBoxFuture};
use libtest_mimic::{Failed, Trial};
use tokio::runtime::Runtime;

use crate::{Ctx, cluster::Cluster, departures::Departures, durations, namespace};

/// Past the sum of the waits of any scenario: it stops one that waits without a deadline of its own.
const SCENARIO_DEADLINE: Duration = Duration::from_secs(3600);

/// What a scenario does with what it is given.
pub(crate) type Body = Box<dyn FnOnce(Ctx) -> LocalBoxFuture<'static, Result<()>> + Send>;

/// A scenario as a trial: it runs on a thread of its own.
pub(crate) fn trial(
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

/// Runs a scenario in a namespace of its own, which is deleted in the background afterwards.
pub(crate) async fn in_namespace(cluster: Cluster, scenario: &str, body: Body, departures: &Departures) -> Result<()> {
    let client = cluster.client.clone();
    let name = namespace::create(&client, scenario).await?;
    let ctx = Ctx::new(cluster, name.clone());
    let outcome = attempt(ctx.clone(), body).await;
    if let Err(error) = &outcome {
        // Cleaning up after a failure can take minutes.
        eprintln!("{scenario} failed: {}", explain(error));
    }
    let cleaned = ctx.remove_cluster_scoped().await;
    departures.begin(client, scenario, name);
    sum_up([outcome, cleaned])
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

/// Every failure, the first one first: a failed cleanup must not hide why the scenario failed.
fn sum_up(outcomes: [Result<()>; 2]) -> Result<()> {
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
pub(crate) fn remember_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match RUNS_SCENARIOS.get() {
        true => LAST_PANIC.set(Some(info.to_string())),
        false => print(info),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_cleanup_does_not_hide_why_the_scenario_failed() {
        let error = sum_up([Err(anyhow!("wrong bytes")), Err(anyhow!("role stays"))]).unwrap_err();
        assert_eq!(error.to_string(), "wrong bytes\n\nand afterwards: role stays");
        assert!(sum_up([Ok(()), Ok(())]).is_ok());
    }

    #[test]
    fn a_failure_is_explained_by_its_causes() {
        let error = anyhow!("connection reset").context("failed to list pods");
        assert_eq!(explain(&error), "failed to list pods\n  because: connection reset");
    }
}
