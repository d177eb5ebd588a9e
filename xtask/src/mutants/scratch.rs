//! A copy of the workspace that may be broken, with a target folder of its own. Artefacts of a mutant must never be
//! taken for those of the checkout, so the two share nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::say::Step;

/// How long one test program may run: many times what the slowest takes on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);

pub(super) struct Scratch {
    workspace: PathBuf,
    target: PathBuf,
    output: PathBuf,
}

/// What the tests of a crate said.
pub(super) enum Outcome {
    Passed,
    /// The names of the tests that failed.
    Failed(Vec<String>),
    TimedOut,
}

impl Scratch {
    /// Brings the copy up to date. Files that are as they were keep their times, so that nothing is built again.
    pub(super) fn copy(root: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("failed to find this program")?;
        let target = program.ancestors().nth(2).context("this program lies in a target folder")?;
        let dir = target.join("mutants");
        let scratch = Self { workspace: dir.join("workspace"), target: dir.join("target"), output: dir.join("output") };
        let files = listed(root)?;
        for file in &files {
            let text =
                std::fs::read(root.join(file)).with_context(|| format!("failed to read `{}`", file.display()))?;
            scratch.write(file, &text)?;
        }
        scratch.remove_others(&files)?;
        Ok(scratch)
    }

    /// Writes one file, if it differs.
    pub(super) fn write(&self, file: &Path, text: impl AsRef<[u8]>) -> Result<()> {
        let (path, text) = (self.workspace.join(file), text.as_ref());
        if std::fs::read(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        let folder = path.parent().context("every file is in a folder")?;
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("failed to write `{}`", path.display()))
    }

    /// Removes files that the checkout no longer has: cargo would find a test or a binary in them.
    fn remove_others(&self, files: &BTreeSet<PathBuf>) -> Result<()> {
        let mut folders = vec![self.workspace.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).with_context(|| format!("failed to list `{}`", folder.display()))? {
                let path = entry?.path();
                let known = path.strip_prefix(&self.workspace).is_ok_and(|file| files.contains(file));
                match path.is_dir() {
                    true => folders.push(path),
                    false if known => {}
                    false => std::fs::remove_file(&path)?,
                }
            }
        }
        Ok(())
    }

    /// Builds and runs the tests of one crate.
    pub(super) fn test(&self, package: &str) -> Result<Outcome> {
        for program in self.build(package)? {
            match self.run(package, &program)? {
                Outcome::Passed => {}
                outcome @ (Outcome::Failed(_) | Outcome::TimedOut) => return Ok(outcome),
            }
        }
        Ok(Outcome::Passed)
    }

    /// The test programs of the crate.
    fn build(&self, package: &str) -> Result<Vec<PathBuf>> {
        let step = Step::start(format!("build the tests of {package}"));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["test", "--quiet", "--locked", "--no-run", "--package", package])
            .arg("--message-format=json-render-diagnostics")
            .env("CARGO_TARGET_DIR", &self.target)
            .current_dir(&self.workspace)
            .output()
            .context("failed to start cargo")?;
        drop(step);
        if !built.status.success() {
            bail!("`{package}` does not build:\n{}", String::from_utf8_lossy(&built.stderr));
        }
        let text = String::from_utf8(built.stdout).context("cargo prints JSON")?;
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let tests = messages.filter(|message| message["profile"]["test"] == true);
        Ok(tests.filter_map(|test| test["executable"].as_str().map(PathBuf::from)).collect())
    }

    fn run(&self, package: &str, program: &Path) -> Result<Outcome> {
        let output = File::create(&self.output).context("failed to create the file of a test's output")?;
        let _step = Step::start(format!("test {package}"));
        let mut command = Command::new(program);
        // The soak's seed and counts are not for mutants: their tests take seconds by the defaults.
        for variable in ["PROPTEST_CASES", "PROPTEST_RNG_SEED", "BOATHOOK_TEST_MEASURE", "BOATHOOK_TEST_SEED"] {
            command.env_remove(variable);
        }
        let mut tests = command
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()
            .with_context(|| format!("failed to start `{}`", program.display()))?;
        let (ended, wait) = mpsc::channel();
        let pid = rustix::process::Pid::from_child(&tests);
        let waiting = std::thread::spawn(move || {
            let status = tests.wait();
            // The receiver is gone after the deadline.
            let _ = ended.send(());
            status
        });
        let timed_out = wait.recv_timeout(DEADLINE).is_err();
        if timed_out {
            // The thread still waits for it, so the number is that of the test program.
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).or_else(unless_gone)?;
        }
        let status = waiting.join().expect("the thread only waits")?;
        match status.success() {
            _ if timed_out => Ok(Outcome::TimedOut),
            true => Ok(Outcome::Passed),
            false => Ok(Outcome::Failed(failed(&std::fs::read_to_string(&self.output)?))),
        }
    }
}

fn unless_gone(error: rustix::io::Errno) -> rustix::io::Result<()> {
    if error == rustix::io::Errno::SRCH { Ok(()) } else { Err(error) }
}

/// The files of the checkout as they are now, committed or not.
fn listed(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("failed to start git")?;
    if !listed.status.success() {
        bail!("git does not list the files: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let names = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let files = names.split_terminator('\0').map(PathBuf::from);
    let is_file = |file: &PathBuf| match std::fs::symlink_metadata(root.join(file)) {
        Ok(metadata) => metadata.is_file(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    Ok(files.filter(is_file).collect())
}

/// The tests that failed, as the test program prints them.
fn failed(output: &str) -> Vec<String> {
    let named = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    named.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_found_in_the_output() {
        let output = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest d ... ignored\n";
        assert_eq!(failed(output), ["a::c"]);
    }
}
