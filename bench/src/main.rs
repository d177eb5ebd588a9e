//! The figures, each beside a floor or a peer that is measured in the same run: a table on stdout, progress on stderr.

mod bare;
mod client;
mod clusters;
mod counted;
mod folder;
mod hooks;
mod notifications;
mod objects;
mod pods;
mod process;
mod programs;
mod rollouts;
mod system;
mod table;
mod undos;
mod watches;
mod writes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::signal::unix::{SignalKind, signal};

use folder::Folder;
use programs::Programs;
use system::{Kind, System};
use table::{Aim, Row, Unit, median, percentile};

/// Measures Boathook beside a floor or a peer, and prints both in one table
#[derive(Parser)]
#[command(name = "boathook-bench")]
struct Cli {
    /// What is measured
    #[arg(value_enum, default_value_t = Subject::Cluster)]
    subject: Subject,
    /// A second or less for each figure: shows that everything works, and little more
    #[arg(long)]
    quick: bool,
    /// Measures this program instead of building it
    #[arg(long, value_name = "FILE")]
    boathook: Option<PathBuf>,
    /// Where both keep their data meanwhile: a folder on a disk [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// `boathook up` beside etcd + kube-apiserver
    Cluster,
    /// Notifications beside the same execs by a bare program, and by kubectl
    Notifications,
    /// The freeze windows of hooks beside the same execs by a bare program
    Hooks,
    /// How late undos run behind a queue of notifications
    Undos,
    /// Rollouts with hooks beside the same rollouts without, and the hooks' pods by themselves
    Rollouts,
}

/// How long and how often everything is measured.
struct Plan {
    starts: usize,
    /// What begins settles before its memory is looked at.
    settle: Duration,
    rounds: usize,
    writing: Duration,
    objects: usize,
    watched_writes: usize,
}

const FULL: Plan = Plan {
    starts: 5,
    settle: Duration::from_secs(10),
    rounds: 3,
    writing: Duration::from_secs(5),
    objects: 10_000,
    watched_writes: 100,
};
const QUICK: Plan = Plan {
    starts: 1,
    settle: Duration::from_secs(1),
    rounds: 1,
    writing: Duration::from_secs(1),
    objects: 1_000,
    watched_writes: 10,
};

const FEW: usize = 1;
const MANY: usize = 64;
const WATCHERS: usize = 100;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    // On this very thread: what it starts ends with it, and other threads end earlier.
    let done = runtime.context("failed to start").and_then(|runtime| runtime.block_on(run(cli)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to wait for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to wait for signals")?;
    // Whichever way this ends, what was started is dropped, and ends with it.
    let table = tokio::select! {
        table = measure(cli) => table?,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    };
    print!("{table}");
    Ok(())
}

async fn measure(cli: Cli) -> Result<String> {
    if cfg!(debug_assertions) {
        say("this is a debug build, whose clients are slow: measure with `cargo run --release -p boathook-bench`");
    }
    let begun = Instant::now();
    let folder = Folder::make(cli.dir.as_deref())?;
    let programs = Programs::find(cli.boathook)?;
    let table = match cli.subject {
        Subject::Cluster => table::render(&cluster(&if cli.quick { QUICK } else { FULL }, &programs, &folder).await?),
        Subject::Notifications => notifications::measure(cli.quick, &programs, &folder).await?,
        Subject::Hooks => hooks::measure(cli.quick, &programs, &folder).await?,
        Subject::Undos => undos::measure(cli.quick, &programs, &folder).await?,
        Subject::Rollouts => rollouts::measure(cli.quick, &programs, &folder).await?,
    };
    say(&format!("done in {} s", begun.elapsed().as_secs()));
    Ok(table)
}

async fn cluster(plan: &Plan, programs: &Programs, folder: &Folder) -> Result<Vec<Row>> {
    let (ready, pair) = starts(plan, programs, folder).await?;
    let (idle, full) = memory(plan, &pair).await?;
    let latencies = latencies(plan, &pair).await?;
    let few = writes_per_second(plan, &pair, FEW).await?;
    let many = writes_per_second(plan, &pair, MANY).await?;

    let as_good = Some(Aim::AtLeastThePeer);
    let count = plan.objects;
    let [middle, slowest] = [0.5, 0.99].map(|part| latencies.each_ref().map(|all| percentile(all, part)));
    Ok(vec![
        Row::new("ready".to_owned(), Unit::Milliseconds, ready, Some(Aim::AtMost(300.0))),
        Row::new("durable writes, 1 client".to_owned(), Unit::PerSecond, few, as_good),
        Row::new(format!("durable writes, {MANY} clients"), Unit::PerSecond, many, as_good),
        Row::new(format!("write to event, {WATCHERS} watchers, median"), Unit::Milliseconds, middle, None),
        Row::new(format!("write to event, {WATCHERS} watchers, p99"), Unit::Milliseconds, slowest, None),
        Row::new("memory, idle".to_owned(), Unit::Megabytes, idle, Some(Aim::AtMost(60.0))),
        Row::new(format!("memory, {count} objects of 2 KiB"), Unit::Megabytes, full, None),
    ])
}

/// Starts both anew again and again. The last two stay for what follows.
async fn starts(plan: &Plan, programs: &Programs, folder: &Folder) -> Result<([f64; 2], [System; 2])> {
    let mut times = [Vec::new(), Vec::new()];
    let mut pair = Vec::new();
    for round in 1..=plan.starts {
        pair.clear();
        for (kind, times) in Kind::BOTH.into_iter().zip(&mut times) {
            let dir = folder.path().join(format!("{}-{round}", kind.short()));
            let (system, time) = System::start(kind, programs, &dir).await?;
            progress("ready", round, plan.starts, kind, &format!("{} ms", time.as_millis()));
            times.push(time.as_secs_f64() * 1000.0);
            pair.push(system);
        }
    }
    let pair = pair.try_into().ok().context("nothing was started")?;
    Ok((times.map(|times| median(&times)), pair))
}

/// What both take when nothing happens, and with many objects.
async fn memory(plan: &Plan, pair: &[System; 2]) -> Result<([f64; 2], [f64; 2])> {
    tokio::time::sleep(plan.settle).await;
    let idle = look_at_memory("memory, idle", pair)?;
    for system in pair {
        objects::make_namespace(system.target()).await?;
        progress("memory", 1, 1, system.kind(), &format!("writing {} objects", plan.objects));
        writes::exactly(system.target(), plan.objects).await?;
    }
    tokio::time::sleep(plan.settle).await;
    Ok((idle, look_at_memory("memory, with objects", pair)?))
}

fn look_at_memory(what: &str, pair: &[System; 2]) -> Result<[f64; 2]> {
    let mut taken = [0.0; 2];
    for (system, taken) in pair.iter().zip(&mut taken) {
        *taken = system.memory()? as f64 / 1e6;
        progress(what, 1, 1, system.kind(), &format!("{taken:.0} MB"));
    }
    Ok(taken)
}

/// In turns, so that a noisy moment of the machine meets both.
async fn writes_per_second(plan: &Plan, pair: &[System; 2], clients: usize) -> Result<[f64; 2]> {
    let mut rates = [Vec::new(), Vec::new()];
    for round in 1..=plan.rounds {
        for (system, rates) in pair.iter().zip(&mut rates) {
            let rate = writes::per_second(system.target(), clients, plan.writing, round).await?;
            progress(&format!("writes, {clients} clients"), round, plan.rounds, system.kind(), &format!("{rate:.0}/s"));
            rates.push(rate);
        }
    }
    Ok(rates.map(|rates| median(&rates)))
}

/// Milliseconds from sending a write until a watcher has the event, of all watchers and writes.
async fn latencies(plan: &Plan, pair: &[System; 2]) -> Result<[Vec<f64>; 2]> {
    let mut all = [Vec::new(), Vec::new()];
    for round in 1..=plan.rounds {
        for (system, all) in pair.iter().zip(&mut all) {
            let seen = watches::latencies(system.target(), WATCHERS, plan.watched_writes, round).await?;
            progress("watch", round, plan.rounds, system.kind(), &format!("median {:.1} ms", median(&seen)));
            all.extend(seen);
        }
    }
    Ok(all)
}

fn progress(what: &str, round: usize, rounds: usize, kind: Kind, how: &str) {
    let of = if rounds > 1 { format!(" {round}/{rounds}") } else { String::new() };
    say(&format!("{what}{of}: {}: {how}", kind.name()));
}

/// A client of the cluster that this kubeconfig names.
async fn connect(file: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(file).with_context(|| format!("failed to read `{}`", file.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn say(text: &str) {
    eprintln!("  {text}");
}
