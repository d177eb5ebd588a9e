//! The differential suite: every case in `cases/`, played on the real cluster that the environment names and on an
//! embedded one started here. See `boathook_tests::differential`.

use std::{collections::BTreeSet, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, anyhow, bail};
use boathook_tests::{
    cluster::{Choice, Cluster},
    departures::Departures,
    differential::{
        case::{self, Case, Variables},
        compare::{Differences, keep_named},
        play::{Played, Player},
        webhook,
    },
    namespace,
};
use kube::{Client, config::AuthInfo};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// Cases mostly wait for the real cluster to take their namespaces away.
const DEFAULT_THREADS: usize = 16;

fn main() -> ExitCode {
    // Before anything else: in a container of the embedded cluster this program becomes the container's command.
    boathook_node::container_init::run_if_asked();
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Both clusters and what the cases share.
struct Bench {
    real: Cluster,
    embedded: Cluster,
    variables: Variables,
    differences: Differences,
    departures: Departures,
}

fn run() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(DEFAULT_THREADS));
    // Cargo runs tests in the folder of their package.
    let folder = Path::new("differential");
    let cases = read_cases(&folder.join("cases"))?;
    if arguments.list {
        let trials = cases.into_iter().map(|case| Trial::test(case.name, || Ok(()))).collect();
        return Ok(libtest_mimic::run(&arguments, trials).exit_code());
    }
    let differences = Differences::read(&read(&folder.join("differences.yaml"))?).context("differences.yaml")?;

    let runtime = Arc::new(Builder::new_multi_thread().enable_all().build()?);
    if Choice::of_the_environment()? == Choice::Embedded {
        bail!("the real cluster is needed too: `cargo xtask cluster up`, then `eval \"$(cargo xtask cluster env)\"`");
    }
    let (running, hooks, bench) = runtime.block_on(async {
        let lantern = Path::new(env!("CARGO_BIN_EXE_lantern"));
        let (real, _) = Cluster::connect(Choice::Kubeconfig, lantern).await?;
        let (embedded, running) = Cluster::connect(Choice::Embedded, lantern).await?;
        let hooks = webhook::start().await?;
        let door = hooks.client_config("");
        let mut variables = Variables::default();
        variables.set("webhook", json!(door.url));
        variables.set("ca", json!(door.ca_bundle));
        anyhow::Ok((
            running,
            hooks,
            Bench { real, embedded, variables, differences, departures: Departures::default() },
        ))
    })?;
    let bench = Arc::new(bench);

    let trials = cases.into_iter().map(|case| trial(&runtime, &bench, case)).collect();
    let whole = arguments.filter.is_none() && arguments.skip.is_empty();
    let conclusion = libtest_mimic::run(&arguments, trials);
    runtime.block_on(bench.departures.all_gone())?;
    drop(hooks);
    if let Some(running) = running {
        runtime.block_on(running.stop())?;
    }
    let unused = bench.differences.unused();
    if whole && !unused.is_empty() && !conclusion.has_failed() {
        bail!("differences.yaml lists what does not differ any more; remove it:\n  {}", unused.join("\n  "));
    }
    Ok(conclusion.exit_code())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("failed to read `{}`", path.display()))
}

/// The cases of every file, named `file: sentence`.
fn read_cases(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("failed to list `{}`", folder.display()))? {
        let path = entry?.path();
        let subject = path.file_stem().and_then(|stem| stem.to_str()).context("a file's name is not text")?.to_owned();
        let read = case::read(&read(&path)?).with_context(|| format!("failed to read `{}`", path.display()))?;
        cases.extend(read.into_iter().map(|case| Case { name: format!("{subject}: {}", case.name), ..case }));
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    match names.len() == cases.len() {
        true => Ok(cases),
        false => bail!("two cases have the same name"),
    }
}

fn trial(runtime: &Arc<Runtime>, bench: &Arc<Bench>, case: Case) -> Trial {
    let (runtime, bench) = (Arc::clone(runtime), Arc::clone(bench));
    Trial::test(case.name.clone(), move || {
        runtime.block_on(compare(&bench, &case)).map_err(|error| Failed::from(format!("{error:#}")))
    })
}

/// Plays the case on both clusters at once and holds what they showed against each other.
async fn compare(bench: &Bench, case: &Case) -> Result<()> {
    let (real, embedded) = tokio::join!(
        play("the real cluster", &bench.real, bench, case),
        play("the embedded cluster", &bench.embedded, bench, case)
    );
    let (real, embedded) = match (real, embedded) {
        (Ok(real), Ok(embedded)) => (real, embedded),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => return Err(error),
        (Err(one), Err(other)) => bail!("{one:#}\n\nand: {other:#}"),
    };
    let mut found = Vec::new();
    for (mut real, embedded) in real.shown.into_iter().zip(embedded.shown) {
        if real.named_only {
            keep_named(&mut real.outcome, &embedded.outcome);
        }
        let differences = bench.differences.between(&case.name, &real.outcome, &embedded.outcome);
        found.extend(differences.into_iter().map(|difference| format!("{}, at {difference}", real.step)));
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(anyhow!("{}", found.join("\n"))),
    }
}

async fn play(which: &'static str, cluster: &Cluster, bench: &Bench, case: &Case) -> Result<Played> {
    let client = &cluster.client;
    let name = namespace::create(client, "differential").await.context(which)?;
    let mut nobody = cluster.config.clone();
    nobody.auth_info = AuthInfo::default();
    let nobody = Client::try_from(nobody)?;
    let mut player = Player::new(client.clone(), nobody, &name, cluster.images.shell, bench.variables.clone());
    let played = match player.settle().await {
        Ok(()) => player.play(case).await,
        Err(error) => Err(error),
    };
    let cleaned = player.clean_up(case).await;
    bench.departures.begin(client.clone(), &case.name, name);
    let played = played.context(which)?;
    cleaned.context("failed to clean up").context(which)?;
    Ok(played)
}
