//! Deployments that are rolled out at once with all hooks that they can have, beside as many without; and the pods of
//! the hooks by themselves: what comes on top of these two is Boathook's own.
//!
//! In turns, so that a noisy moment of the machine meets all.

mod fleet;
mod namespace;
mod writes;

use anyhow::Result;
use boathook_api::words::HOOK_OF_LABEL;

use crate::{
    clusters::{Cluster, NO_EXECUTOR, on_each},
    connect,
    folder::Folder,
    programs::Programs,
    say,
    table::{Unit, markdown, median},
};
use fleet::{Fleet, Strategy};
use namespace::Namespace;

/// How many at once, and how often.
const FULL: (usize, usize) = (50, 3);
const QUICK: (usize, usize) = (3, 1);
/// As many as a small node takes.
const REAL: (usize, usize) = (10, 3);

/// What was seen of one strategy; times are milliseconds of each round.
#[derive(Default)]
struct Seen {
    hooked: Vec<f64>,
    plain: Vec<f64>,
    hooks: Vec<f64>,
    /// Boathook's, of one rollout.
    writes: Vec<f64>,
}

pub(crate) async fn measure(quick: bool, programs: &Programs, folder: &Folder) -> Result<String> {
    on_each(NO_EXECUTOR, programs, folder, async |cluster| {
        let plan = match (quick, cluster.is_real) {
            (true, _) => QUICK,
            (false, true) => REAL,
            (false, false) => FULL,
        };
        one_cluster(&cluster, plan).await
    })
    .await
}

async fn one_cluster(cluster: &Cluster, (count, rounds): (usize, usize)) -> Result<String> {
    let Cluster { title, kubeconfig, image, is_real: _ } = cluster;
    let namespace = Namespace::make(&connect(kubeconfig).await?, image).await?;
    let mut lines = vec![head()];
    for strategy in Strategy::ALL {
        say(&format!("{title}: starting 2 x {count} Deployments, {}", strategy.as_str()));
        let seen = one_strategy(&namespace, strategy, count, rounds).await?;
        lines.push(line(strategy, &seen));
    }
    namespace.remove().await?;
    Ok(format!("{title}, {count} Deployments at once:\n\n{}\n", markdown(&lines)))
}

async fn one_strategy(namespace: &Namespace, strategy: Strategy, count: usize, rounds: usize) -> Result<Seen> {
    let plain = Fleet::plain(namespace, strategy, count).await?;
    let hooked = Fleet::hooked(namespace, strategy, count).await?;
    let mut seen = Seen::default();
    for round in 1..=rounds {
        let mut counted = writes::begin(&namespace.client, &namespace.name).await?;
        let with = hooked.roll_out(round).await?;
        // What is tidied up afterwards is written too.
        namespace.until_no_pods(HOOK_OF_LABEL).await?;
        let by_kind = counted.by_kind().await?.into_iter().map(|writes| writes / count as f64).collect::<Vec<_>>();
        let without = plain.roll_out(round).await?;
        let hooks = namespace.run_hooks(count, strategy.stages().len()).await?;
        say(&format!("round {round}/{rounds}: with hooks {with:.0} ms, without {without:.0} ms, pods {hooks:.0} ms"));
        let told: Vec<_> = writes::KINDS.iter().zip(&by_kind).map(|(kind, each)| format!("{kind} {each:.1}")).collect();
        say(&format!("round {round}/{rounds}: writes each: {}", told.join(", ")));
        seen.hooked.push(with);
        seen.plain.push(without);
        seen.hooks.push(hooks);
        seen.writes.push(by_kind.iter().sum());
    }
    hooked.remove().await?;
    plain.remove().await?;
    Ok(seen)
}

fn head() -> [String; 7] {
    ["strategy", "hooks", "with hooks", "without", "the hooks' pods alone", "ratio to both", "writes each"]
        .map(str::to_owned)
}

fn line(strategy: Strategy, seen: &Seen) -> [String; 7] {
    let [hooked, plain, hooks] = [&seen.hooked, &seen.plain, &seen.hooks].map(|times| median(times));
    let stages: Vec<_> = strategy.stages().iter().map(|stage| stage.as_str()).collect();
    [
        strategy.as_str().to_owned(),
        stages.join(", "),
        Unit::Milliseconds.show(hooked),
        Unit::Milliseconds.show(plain),
        Unit::Milliseconds.show(hooks),
        format!("{:.2}", hooked / (plain + hooks)),
        format!("{:.1}", median(&seen.writes)),
    ]
}
