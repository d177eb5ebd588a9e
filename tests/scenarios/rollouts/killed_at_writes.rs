//! The controller is killed at its writes while a version is rolled out, and another one goes on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boathook_api::pod_notification::Executor;
use boathook_tests::{
    Ctx,
    boathook::{
        api_proxy::{ApiProxy, Cut, Fate},
        installation::Installation,
        lifecycles::passes,
        process::Process,
        rollouts::{Web, web},
    },
    measure::Measure,
    random::Random,
};
use serde_json::json;

use crate::rollouts::faults::end;

/// Far more than a rollout takes: whoever comes here writes without end.
const MOST_WRITES: usize = 100;

/// Nothing is written for this long when everything is done; and, in the end, for that long.
const QUIET: Duration = Duration::from_millis(500);
const LONG_QUIET: Duration = Duration::from_secs(5);

/// A controller, and the proxy that it writes through.
type Watched = (Process, ApiProxy);

/// Every other time it was to write something, and never did; and every other time it did write, and never knew.
pub(crate) async fn killed_at_any_write_each_hook_runs_once(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let mut watched = installation.controller_behind_proxy(executor).await?;
    let hooks = json!({"pre": passes(), "mid": passes(), "post": passes()});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), hooks).await?;
    watched.1.quiet_for(QUIET).await?;
    let whole = writes_of_a_whole_run(&mut web, &watched.1).await?;
    // The model of `boathook-decide` loses every write; a sample of them is enough here. The last run is undisturbed.
    let mut writes = Random::of_the_environment()?.some_up_to(whole, Measure::from_environment()?.writes());
    let chosen = writes.len();
    writes.push(MOST_WRITES);
    let (mut undisturbed, mut killed, mut expected) = (false, 0, rolled("whole").to_vec());
    for at in writes {
        let (begun, version) = (Instant::now(), format!("at-{at}"));
        let fate = if at % 2 == 0 { Fate::NeverArrives } else { Fate::AnswerLost };
        watched.1.cut(Cut { of: "", at, fate });
        web.roll_to(&version).await?;
        undisturbed = tokio::select! {
            made = watched.1.cut_made() => made.map(|()| false)?,
            ended = comes_to_its_end(&web, &watched.1) => ended.map(|()| true)?,
        };
        let writes = watched.1.writes();
        match undisturbed {
            true => watched.1.count(),
            false => watched = replace(&installation, executor, watched).await?,
        }
        killed += usize::from(!undisturbed);
        let ended = comes_to_its_end(&web, &watched.1).await;
        ended.with_context(|| format!("killed at the last of these writes: {writes:#?}"))?;
        eprintln!("{at} {}: {:?}", writes.last().map_or("", String::as_str), begun.elapsed());
        expected.extend(rolled(&version));
    }
    let (controller, proxy) = watched;
    ensure!(undisturbed, "it writes without end: {:#?}", proxy.writes());
    // A run that waits for pods has more writes than one that does not: some of the chosen ones may not be reached.
    ensure!(2 * killed >= chosen, "of {chosen} chosen writes it was killed at {killed}");
    // What came after the last status is written by then.
    proxy.quiet_for(LONG_QUIET).await?;
    proxy.count();
    proxy.quiet_for(LONG_QUIET).await?;
    ensure!(proxy.writes().is_empty(), "there was nothing to write: {:#?}", proxy.writes());
    assert_eq!(web.finish().await?.runs(), expected);
    end(&ctx, controller).await
}

/// How many writes a rollout takes without a fault.
async fn writes_of_a_whole_run(web: &mut Web, proxy: &ApiProxy) -> Result<usize> {
    proxy.count();
    web.roll_to("whole").await?;
    comes_to_its_end(web, proxy).await?;
    Ok(proxy.writes().len())
}

/// What its hooks record of a version.
fn rolled(version: &str) -> [String; 3] {
    ["pre", "mid", "post"].map(|stage| format!("{stage} {version}"))
}

async fn comes_to_its_end(web: &Web, proxy: &ApiProxy) -> Result<()> {
    web.completed().await?;
    proxy.quiet_for(QUIET).await
}

async fn replace(installation: &Installation, executor: Executor, (killed, proxy): Watched) -> Result<Watched> {
    killed.kill().await?;
    drop(proxy);
    installation.bury_leader().await?;
    installation.controller_behind_proxy(executor).await
}
