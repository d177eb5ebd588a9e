//! The machine that the cluster runs on, which is this one: what runs in containers is seen in its `/proc`.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};

/// Seconds to `sleep` that nobody else sleeps: more than a year, and known again in `/proc`.
pub fn a_long_time() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("1{:07}{count:02}", nanos % 10_000_000)
}

/// The command lines of all processes that mention this word.
pub fn processes_with(word: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").context("failed to look at the processes")? {
        let path = entry?.path().join("cmdline");
        // A process that ends while it is looked at is gone; what is no process has no such file.
        let Ok(command) = std::fs::read(&path) else { continue };
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(word) {
            found.push(format!("{}: {command}", path.display()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::Stdio,
    };

    use super::*;

    #[test]
    fn a_process_is_found_by_a_word_of_its_command_line_while_it_runs() {
        let long = a_long_time();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo ready; read line", &long]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Its arguments are there a moment after `spawn` has returned.
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let running = processes_with(&long).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(running.len(), 1, "{running:?}");
        assert!(processes_with(&long).unwrap().is_empty());
    }
}
