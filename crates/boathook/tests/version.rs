//! What `boathook --version` and a bare `boathook` say.

use std::process::Command;

#[test]
fn version_names_the_release_and_the_commit() {
    let output = Command::new(env!("CARGO_BIN_EXE_boathook")).arg("--version").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let rest = text.strip_prefix(concat!("boathook ", env!("CARGO_PKG_VERSION"), " (")).unwrap();
    let commit = rest.trim_end().strip_suffix(')').unwrap();
    // A source archive has no commit, and no git to ask.
    let git = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let head =
        git.ok().filter(|output| output.status.success()).map(|output| String::from_utf8(output.stdout).unwrap());
    assert_eq!(commit, head.as_deref().map_or("no commit", str::trim_end));
}

#[test]
fn a_bare_call_shows_the_help_and_fails() {
    let output = Command::new(env!("CARGO_BIN_EXE_boathook")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("Usage: boathook"));
}
