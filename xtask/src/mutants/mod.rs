//! `cargo xtask mutants`: breaks one promise at a time in a scratch copy of the workspace, and checks that a test of
//! the named crate fails. A mutant that survives is a promise without a fast test.

mod list;
mod scratch;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::say::seconds;
use list::Mutant;
use scratch::{Outcome, Scratch};

/// Runs the mutants whose promise, file or crate contains `filter`; fails if one of them survives.
pub(crate) fn run(filter: Option<&str>) -> Result<ExitCode> {
    let root = checkout()?;
    let mut mutants = list::read(&root)?;
    mutants.retain(|mutant| filter.is_none_or(|filter| mutant.matches(filter)));
    if mutants.is_empty() {
        bail!("no mutant of `{}` contains `{}`", list::FILE, filter.unwrap_or_default());
    }
    // Mutants of one file follow each other: then the least is built again.
    mutants.sort_by(|one, other| (&one.tests, &one.file).cmp(&(&other.tests, &other.file)));
    let scratch = Scratch::copy(&root)?;
    for package in mutants.iter().map(|mutant| mutant.tests.as_str()).collect::<BTreeSet<_>>() {
        match scratch.test(package)? {
            Outcome::Passed => {}
            Outcome::Failed(tests) => bail!("`{package}` fails without a mutant: {}", tests.join(", ")),
            Outcome::TimedOut => bail!("`{package}` takes longer than {:?} without a mutant", scratch::DEADLINE),
        }
    }
    let mut survivors = 0;
    for mutant in &mutants {
        let begun = Instant::now();
        let outcome = break_and_test(&root, &scratch, mutant)?;
        survivors += usize::from(word(&outcome) != KILLED);
        println!("{:<8} {:>7}  {}", word(&outcome), seconds(begun.elapsed()), mutant.promise);
        println!("{:18}{}: {}", "", mutant.tests, detail(&outcome));
    }
    println!("{} of {} mutants killed", mutants.len() - survivors, mutants.len());
    Ok(if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn break_and_test(root: &Path, scratch: &Scratch, mutant: &Mutant) -> Result<Outcome> {
    let path = root.join(&mutant.file);
    let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
    scratch.write(&mutant.file, &mutant.applied_to(&text)?)?;
    let outcome = scratch.test(&mutant.tests).with_context(|| format!("mutant of `{}`", mutant.promise));
    scratch.write(&mutant.file, &text)?;
    outcome
}

const KILLED: &str = "killed";

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        // A crash may be the machine's: no test has noticed the mutant.
        Outcome::Failed(tests) if tests.is_empty() => "CRASHED",
        Outcome::Failed(_) => KILLED,
        Outcome::Passed | Outcome::TimedOut => "SURVIVED",
    }
}

fn detail(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => "no test failed".to_owned(),
        Outcome::TimedOut => format!("no test failed within {:?}", scratch::DEADLINE),
        Outcome::Failed(tests) => match tests.as_slice() {
            [] => "the test program crashed".to_owned(),
            [only] => only.clone(),
            [first, others @ ..] => format!("{first} and {} more", others.len()),
        },
    }
}

/// As cargo names it now: with a shared target folder this program may have been built in another checkout.
fn checkout() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Ok(Path::new(&package).parent().context("xtask lies in the checkout")?.to_owned())
}
