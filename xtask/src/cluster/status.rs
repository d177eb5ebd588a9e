//! `cluster status` and `cluster env`: what a person or a script asks of a cluster.

use std::process::ExitCode;

use anyhow::{Context, Result};

use super::components;
use super::layout::Layout;
use super::processes::Record;
use super::site::Description;

/// Prints each component. Success means that all of them run.
pub(super) fn status(layout: &Layout) -> Result<ExitCode> {
    let Some(description) = Description::read(layout)? else {
        println!("no cluster is up; `cargo xtask cluster up` starts one");
        return Ok(ExitCode::FAILURE);
    };
    println!("Kubernetes {} at https://127.0.0.1:{}\n", description.version, description.port);
    println!("{:<25}{:<10}{:>8}", "COMPONENT", "PROCESS", "MEMORY");
    let (mut memory, mut all_run) = (0, true);
    for name in components::names() {
        let Some(record) = Record::running(layout, name) else {
            all_run = false;
            println!("{name:<25}down      `cargo xtask cluster up` starts it; log: {}", layout.log(name).display());
            continue;
        };
        let own = record.memory_kib().unwrap_or_default();
        memory += own;
        println!("{name:<25}{:<10}{:>5} MB", record.id, own / 1024);
    }
    println!("{:<35}{:>5} MB", "in all", memory / 1024);
    Ok(if all_run { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints what a shell needs: `eval "$(cargo xtask cluster env)"`.
pub(super) fn env(layout: &Layout) -> Result<()> {
    let description = Description::read(layout)?.context("no cluster is up; `cargo xtask cluster up` starts one")?;
    println!("export KUBECONFIG='{}'", layout.admin_kubeconfig().display());
    println!("export PATH='{}':\"$PATH\"", description.programs.display());
    println!("export BOATHOOK_TEST_CLUSTER=kubeconfig");
    Ok(())
}
