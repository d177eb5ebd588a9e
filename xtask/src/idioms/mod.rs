//! `cargo xtask idioms`: finds the phrases that the style guide rules out, in documentation, messages and comments.
//!
//! Each file of documentation or messages, and the comments of each crate, has a ceiling in `xtask/idioms.yaml`: how many
//! phrases are left there. A count above its ceiling fails, and so does one below it, until the ceiling is lowered.

mod ceilings;
mod list;
mod places;
mod rust;
mod text;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use ceilings::Ceilings;
use text::Piece;

/// What is checked apart, because a reader meets it elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Pages for users.
    Docs,
    /// String literals of the crates, and comments that become `--help` or descriptions of fields.
    Messages,
    /// Other comments.
    Comments,
}

/// One phrase that is to be replaced.
#[derive(Debug)]
struct Finding {
    kind: Kind,
    /// From the root of the checkout.
    file: String,
    line: usize,
    phrase: String,
    instead: &'static str,
}

impl Finding {
    /// Where it counts: docs and messages by file, comments by crate.
    fn place(&self) -> String {
        match self.kind {
            Kind::Docs | Kind::Messages => self.file.clone(),
            Kind::Comments => places::package(&self.file),
        }
    }

    fn line(&self) -> String {
        format!("{}:{}: `{}`: write {}", self.file, self.line, self.phrase, self.instead)
    }
}

/// Lists every finding, or lowers the ceilings to the counts; fails if a count is not at its ceiling.
pub(crate) fn run(lower: bool) -> Result<ExitCode> {
    let root = root()?;
    let findings = findings(root)?;
    let mut ceilings = Ceilings::read(root)?;
    if lower {
        ceilings.lower(&counts(&findings));
        ceilings.write(root)?;
    } else {
        findings.iter().for_each(|finding| println!("{:<8} {}", ceilings::title(finding.kind), finding.line()));
    }
    let problems = ceilings.problems(&findings);
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in a folder of the checkout")
}

/// Everything that is found in the checkout, in the order of files and lines.
fn findings(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in places::docs(root)? {
        let text = places::read(root, &file)?;
        search(&mut findings, Kind::Docs, &file, &text::pieces(&text));
    }
    for file in places::rust(root)? {
        let source = rust::Source::read(&places::read(root, &file)?);
        if places::has_messages(&file) {
            search(&mut findings, Kind::Messages, &file, &source.messages);
            search(&mut findings, Kind::Comments, &file, &source.comments);
        } else {
            let all = [source.comments, source.documentation_of_users].concat();
            search(&mut findings, Kind::Comments, &file, &all);
        }
    }
    Ok(findings)
}

fn search(findings: &mut Vec<Finding>, kind: Kind, file: &str, pieces: &[Piece]) {
    for piece in pieces {
        findings.extend(list::search(piece).into_iter().map(|found| Finding {
            kind,
            file: file.to_owned(),
            line: found.line,
            phrase: found.phrase,
            instead: found.instead,
        }));
    }
}

/// How many there are in each place.
fn counts(findings: &[Finding]) -> BTreeMap<(Kind, String), usize> {
    let mut counts = BTreeMap::new();
    for finding in findings {
        *counts.entry((finding.kind, finding.place())).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idioms_are_at_their_ceilings() {
        let root = root().unwrap();
        let problems = Ceilings::read(root).unwrap().problems(&findings(root).unwrap());
        assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    }
}
