//! `xtask/idioms.yaml`: how many idioms are left in each place. A place without a line has none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Finding, Kind, counts};

/// From the checkout's root.
const FILE: &str = "xtask/idioms.yaml";

const INTRODUCTION: &str = "\
# Idioms that the style guide rules out and that are still there: docs and messages by file, comments by crate.
# `cargo xtask idioms` lists them. These numbers may only fall: `cargo xtask idioms --lower` lowers them.
";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ceilings {
    #[serde(default)]
    docs: BTreeMap<String, usize>,
    #[serde(default)]
    messages: BTreeMap<String, usize>,
    #[serde(default)]
    comments: BTreeMap<String, usize>,
}

pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Docs => "docs",
        Kind::Messages => "messages",
        Kind::Comments => "comments",
    }
}

impl Ceilings {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("failed to read `{FILE}`"))?;
        serde_saphyr::from_str(&text).with_context(|| format!("`{FILE}` does not list ceilings"))
    }

    pub(super) fn write(&self, root: &Path) -> Result<()> {
        let mut text = INTRODUCTION.to_owned();
        for (kind, places) in self.kinds() {
            match places.is_empty() {
                true => writeln!(text, "{}: {{}}", title(kind))?,
                false => writeln!(text, "{}:", title(kind))?,
            }
            places.iter().try_for_each(|(place, ceiling)| writeln!(text, "  {place}: {ceiling}"))?;
        }
        std::fs::write(root.join(FILE), text).with_context(|| format!("failed to write `{FILE}`"))
    }

    fn kinds(&self) -> [(Kind, &BTreeMap<String, usize>); 3] {
        [(Kind::Docs, &self.docs), (Kind::Messages, &self.messages), (Kind::Comments, &self.comments)]
    }

    /// Takes the counts that are below their ceilings.
    pub(super) fn lower(&mut self, counts: &BTreeMap<(Kind, String), usize>) {
        let places =
            [(Kind::Docs, &mut self.docs), (Kind::Messages, &mut self.messages), (Kind::Comments, &mut self.comments)];
        for (kind, places) in places {
            for (place, ceiling) in &mut *places {
                let count = counts.get(&(kind, place.clone())).copied().unwrap_or_default();
                *ceiling = count.min(*ceiling);
            }
            places.retain(|_, ceiling| *ceiling > 0);
        }
    }

    /// What is wrong, a line each: what is found where more is found than its ceiling, and ceilings that are too high.
    pub(super) fn problems(&self, findings: &[Finding]) -> Vec<String> {
        let mut problems = Vec::new();
        let counts = counts(findings);
        for ((kind, place), count) in &counts {
            let ceiling = self.ceiling(*kind, place);
            if *count > ceiling {
                let title = title(*kind);
                problems
                    .push(format!("{place}: idioms in {title}: {count}, more than the {ceiling} of {FILE}: replace"));
                let here = findings.iter().filter(|finding| finding.kind == *kind && finding.place() == *place);
                problems.extend(here.map(|finding| format!("  {}", finding.line())));
            }
        }
        for (kind, places) in self.kinds() {
            for (place, ceiling) in places {
                let count = counts.get(&(kind, place.clone())).copied().unwrap_or_default();
                if count < *ceiling {
                    let title = title(kind);
                    problems.push(format!(
                        "{place}: idioms in {title}: {count}, fewer than the {ceiling} of {FILE}: run `cargo xtask idioms \
                         --lower` and commit it"
                    ));
                }
            }
        }
        problems
    }

    fn ceiling(&self, kind: Kind, place: &str) -> usize {
        let places = match kind {
            Kind::Docs => &self.docs,
            Kind::Messages => &self.messages,
            Kind::Comments => &self.comments,
        };
        places.get(place).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: Kind, file: &str) -> Finding {
        Finding { kind, file: file.to_owned(), line: 7, phrase: "mend".to_owned(), instead: "\"fix\"" }
    }

    fn ceilings(text: &str) -> Ceilings {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn ceilings_only_fall() {
        let mut ceilings = ceilings("docs: {README.md: 2, docs/a.md: 1}\ncomments: {crates/api: 1}");
        let findings = [
            finding(Kind::Docs, "README.md"),
            finding(Kind::Comments, "crates/api/src/a.rs"),
            finding(Kind::Comments, "crates/api/src/b.rs"),
        ];
        let told = ceilings.problems(&findings).join("\n");
        assert!(told.contains("README.md: idioms in docs: 1, fewer than the 2"), "{told}");
        assert!(told.contains("docs/a.md: idioms in docs: 0, fewer than the 1"), "{told}");
        assert!(told.contains("crates/api: idioms in comments: 2, more than the 1 of xtask/idioms.yaml"), "{told}");
        assert!(told.contains("  crates/api/src/b.rs:7: `mend`: write \"fix\""), "{told}");
        ceilings.lower(&counts(&findings));
        assert_eq!((ceilings.docs.get("README.md"), ceilings.docs.get("docs/a.md")), (Some(&1), None));
        assert_eq!(ceilings.comments["crates/api"], 1, "it does not rise");
    }

    #[test]
    fn new_file_has_no_idioms() {
        let told = Ceilings::default().problems(&[finding(Kind::Messages, "crates/api/src/new.rs")]);
        assert_eq!(told.len(), 2, "{told:?}");
    }
}
