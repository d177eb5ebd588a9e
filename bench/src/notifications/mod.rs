//! A thousand notifications to fifty pods, beside the same execs by a bare program and by kubectl.
//!
//! All three run one command in the same pods, as many at once as the others; in turns, so that a noisy moment of the
//! machine meets each.

mod kubectl;
mod told;

use std::time::Instant;

use anyhow::Result;

use crate::{
    bare,
    clusters::{Cluster, EITHER_EXECUTOR, on_each},
    connect,
    folder::Folder,
    pods,
    programs::Programs,
    say,
    table::{Unit, markdown, median, percentile},
};

/// How much is told, to how many, how often.
struct Plan {
    notifications: usize,
    pods: usize,
    rounds: usize,
    /// kubectl takes a process each: fewer of them say as much.
    kubectl: usize,
}

const FULL: Plan = Plan { notifications: 1000, pods: 50, rounds: 3, kubectl: 200 };
const QUICK: Plan = Plan { notifications: 50, pods: 5, rounds: 1, kubectl: 10 };
/// As many as a small node takes.
const REAL: Plan = Plan { notifications: 200, pods: 10, rounds: 3, kubectl: 50 };

/// How many are under way at once, in each of the three ways.
const AT_ONCE: usize = 64;

/// One way of running the command, measured.
#[derive(Default)]
struct Way {
    per_second: Vec<f64>,
    /// Milliseconds from asking to the end, each.
    latencies: Vec<f64>,
}

impl Way {
    fn add(&mut self, begun: Instant, latencies: Vec<f64>) -> f64 {
        let rate = latencies.len() as f64 / begun.elapsed().as_secs_f64();
        self.per_second.push(rate);
        self.latencies.extend(latencies);
        rate
    }
}

pub(crate) async fn measure(quick: bool, programs: &Programs, folder: &Folder) -> Result<String> {
    on_each(EITHER_EXECUTOR, programs, folder, async |cluster| {
        let plan = match (quick, cluster.is_real) {
            (true, _) => QUICK,
            (false, true) => REAL,
            (false, false) => FULL,
        };
        one_cluster(&cluster, &plan, programs).await
    })
    .await
}

async fn one_cluster(cluster: &Cluster, plan: &Plan, programs: &Programs) -> Result<String> {
    let Cluster { title, kubeconfig, image, is_real: _ } = cluster;
    say(&format!("{title}: starting {} pods", plan.pods));
    let place = pods::Place::make(&connect(kubeconfig).await?, image, plan.pods).await?;
    let (mut told, mut bare, mut by_kubectl) = (Way::default(), Way::default(), Way::default());
    let mut writes = Vec::new();
    for round in 1..=plan.rounds {
        let begun = Instant::now();
        let seen = told::tell(&place, plan.notifications, round).await?;
        writes.push(seen.writes_each);
        let rate = told.add(begun, seen.latencies);
        say(&format!("round {round}/{}: notifications {rate:.0}/s", plan.rounds));
        let begun = Instant::now();
        let rate = bare.add(begun, bare::exec(&place, plan.notifications, AT_ONCE).await?);
        say(&format!("round {round}/{}: bare execs {rate:.0}/s", plan.rounds));
        let begun = Instant::now();
        let rate = by_kubectl.add(begun, kubectl::exec(&place, programs, kubeconfig, plan.kubectl).await?);
        say(&format!("round {round}/{}: kubectl exec {rate:.0}/s", plan.rounds));
    }
    place.remove().await?;
    Ok(format!(
        "{title}, {} notifications to {} pods:\n\n{}\n",
        plan.notifications,
        plan.pods,
        table(&told, &bare, &by_kubectl, &writes)
    ))
}

fn table(told: &Way, bare: &Way, by_kubectl: &Way, writes: &[f64]) -> String {
    let ways = [told, bare, by_kubectl];
    let line = |what: &str, figures: [String; 3], ratio: String| {
        let [told, bare, by_kubectl] = figures;
        [what.to_owned(), told, bare, by_kubectl, ratio]
    };
    let rates = ways.map(|way| median(&way.per_second));
    let of = |part| ways.map(|way| percentile(&way.latencies, part));
    let shown = |unit: Unit, figures: [f64; 3]| figures.map(|figure| unit.show(figure));
    let ratio = |figures: [f64; 3]| format!("{:.2}", figures[0] / figures[1]);
    let head = ["what", "notifications", "bare execs", "kubectl exec, xargs", "ratio to bare"].map(str::to_owned);
    let each = [format!("{:.1}", median(writes)), "0".to_owned(), "0".to_owned()];
    markdown(&[
        head,
        line("each second", shown(Unit::PerSecond, rates), ratio(rates)),
        line("asked to ended, median", shown(Unit::Milliseconds, of(0.5)), ratio(of(0.5))),
        line("asked to ended, p99", shown(Unit::Milliseconds, of(0.99)), ratio(of(0.99))),
        line("API writes each, without the create (aim: 3)", each, String::new()),
    ])
}
