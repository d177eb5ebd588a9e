//! The list of mutants: each replaces one text of one file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// From the checkout's root, as are all paths of the list.
pub(super) const FILE: &str = "xtask/mutants.yaml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    /// The promise that the mutant breaks.
    pub(super) promise: String,
    pub(super) file: PathBuf,
    /// Occurs exactly once in the file.
    pub(super) replace: String,
    pub(super) with: String,
    /// The crate with a test that must fail.
    pub(super) tests: String,
}

pub(super) fn read(root: &Path) -> Result<Vec<Mutant>> {
    let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("failed to read `{FILE}`"))?;
    serde_saphyr::from_str(&text).with_context(|| format!("`{FILE}` is not a list of mutants"))
}

impl Mutant {
    pub(super) fn matches(&self, filter: &str) -> bool {
        let file = self.file.to_string_lossy();
        [self.promise.as_str(), &file, &self.tests].iter().any(|field| field.contains(filter))
    }

    /// The text of the file, mutated.
    pub(super) fn applied_to(&self, text: &str) -> Result<String> {
        let occurrences = text.matches(&self.replace).count();
        if occurrences != 1 {
            let file = self.file.display();
            bail!("`{}` occurs {occurrences} times in `{file}`: fix `{FILE}` (it must occur once)", self.replace);
        }
        Ok(text.replacen(&self.replace, &self.with, 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_mutant_applies_to_its_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mutants = read(root).unwrap();
        for mutant in &mutants {
            let text = std::fs::read_to_string(root.join(&mutant.file)).unwrap();
            assert_ne!(mutant.applied_to(&text).unwrap(), text, "`{}` changes nothing", mutant.promise);
        }
        let promises: BTreeSet<_> = mutants.iter().map(|mutant| &mutant.promise).collect();
        assert_eq!(promises.len(), mutants.len(), "two mutants have one name");
    }

    #[test]
    fn absent_or_repeated_text_is_refused() {
        let yaml = "[{promise: p, file: a.rs, replace: one, with: two, tests: t}]";
        let mutants: Vec<Mutant> = serde_saphyr::from_str(yaml).unwrap();
        assert_eq!(mutants[0].applied_to("one three").unwrap(), "two three");
        for text in ["three", "one one"] {
            assert!(mutants[0].applied_to(text).unwrap_err().to_string().contains("must occur once"));
        }
    }
}
