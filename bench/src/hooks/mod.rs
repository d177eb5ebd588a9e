//! The freeze window of hooks on 1 to 100 containers, beside the same two rounds of execs by a bare program.
//!
//! Both run one command in every container, all at once, then another one; in turns, so that a noisy moment of the
//! machine meets both.

mod hook;

use std::time::Instant;

use anyhow::Result;

use crate::{
    bare,
    clusters::{Cluster, EITHER_EXECUTOR, on_each},
    connect,
    folder::Folder,
    pods::Place,
    programs::Programs,
    say,
    table::{Unit, markdown, median},
};
use hook::{Seen, Writes};

const FULL: (&[usize], usize) = (&[1, 10, 50, 100], 3);
const QUICK: (&[usize], usize) = (&[1, 5], 1);
/// As many as a small node takes.
const REAL: (&[usize], usize) = (&[1, 10], 3);

/// What was seen of one number of containers.
#[derive(Default)]
struct Size {
    hooks: Vec<Seen>,
    /// Milliseconds from the first exec's start to the last one's end, of both rounds.
    bare: Vec<f64>,
}

pub(crate) async fn measure(quick: bool, programs: &Programs, folder: &Folder) -> Result<String> {
    on_each(EITHER_EXECUTOR, programs, folder, async |cluster| {
        let plan = match (quick, cluster.is_real) {
            (true, _) => QUICK,
            (false, true) => REAL,
            (false, false) => FULL,
        };
        one_cluster(&cluster, plan).await
    })
    .await
}

async fn one_cluster(cluster: &Cluster, (sizes, rounds): (&[usize], usize)) -> Result<String> {
    let Cluster { title, kubeconfig, image, is_real: _ } = cluster;
    let most = sizes.iter().copied().max().unwrap_or_default();
    say(&format!("{title}: starting {most} pods"));
    let place = Place::make(&connect(kubeconfig).await?, image, most).await?;
    let mut lines = vec![head()];
    for &size in sizes {
        let mut seen = Size::default();
        for round in 1..=rounds {
            let hook = hook::freeze_and_thaw(&place, size, round).await?;
            say(&format!("{size} containers, round {round}/{rounds}: hook {:.0} ms", hook.window));
            seen.hooks.push(hook);
            let begun = Instant::now();
            for _ in ["freeze", "thaw"] {
                bare::exec(&place, size, size).await?;
            }
            seen.bare.push(begun.elapsed().as_secs_f64() * 1000.0);
            say(&format!("{size} containers, round {round}/{rounds}: bare {:.0} ms", median(&seen.bare)));
        }
        let writes = hook::count_writes(&place, size).await?;
        lines.push(line(size, &seen, &writes));
    }
    place.remove().await?;
    Ok(format!("{title}:\n\n{}\n", markdown(&lines)))
}

fn head() -> [String; 7] {
    [
        "containers",
        "freeze window",
        "bare execs",
        "ratio (aim: 1.3)",
        "skew",
        "writes to freeze (aim: 5)",
        "to thaw (aim: 5)",
    ]
    .map(str::to_owned)
}

fn line(size: usize, seen: &Size, writes: &Writes) -> [String; 7] {
    let of = |figure: fn(&Seen) -> f64| median(&seen.hooks.iter().map(figure).collect::<Vec<_>>());
    let (window, bare) = (of(|hook| hook.window), median(&seen.bare));
    [
        size.to_string(),
        Unit::Milliseconds.show(window),
        Unit::Milliseconds.show(bare),
        format!("{:.2}", window / bare),
        Unit::Milliseconds.show(of(|hook| hook.skew)),
        format!("{:.1}", writes.to_freeze),
        format!("{:.1}", writes.to_thaw),
    ]
}
