//! Puts the commit that is built into `BOATHOOK_COMMIT`, for `boathook --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A commit moves HEAD's log; a checkout without one (a source archive) has nothing to follow.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "no commit".to_owned());
    println!("cargo::rustc-env=BOATHOOK_COMMIT={commit}");
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
