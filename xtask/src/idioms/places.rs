//! Which files are searched.

use std::path::Path;

use anyhow::{Context, Result};

/// Pages beside those in `docs`.
const PAGES: [&str; 3] = ["CHANGELOG.md", "CONTRIBUTING.md", "README.md"];

const DOCS: &str = "docs";

/// Folders with Rust files.
const RUST: [&str; 5] = ["bench", "crates", "e2e", "tests", "xtask"];

/// Generated from the comments of others.
const GENERATED: &str = "crates/cri/src/generated.rs";

/// The pages for users, by their paths from the root.
pub(super) fn docs(root: &Path) -> Result<Vec<String>> {
    let mut pages: Vec<_> = PAGES.map(str::to_owned).into();
    pages.extend(files(root, DOCS, "md")?);
    pages.sort();
    Ok(pages)
}

/// Every Rust file of ours.
pub(super) fn rust(root: &Path) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for folder in RUST {
        all.extend(files(root, folder, "rs")?);
    }
    all.retain(|file| file != GENERATED);
    all.sort();
    Ok(all)
}

/// Whether users meet the string literals of this file: those of the crates, without their tests.
pub(super) fn has_messages(file: &str) -> bool {
    file.starts_with("crates/")
        && file.contains("/src/")
        && !file.contains("/tests/")
        && !file.ends_with("/tests.rs")
        && !file.ends_with("_tests.rs")
}

/// The crate of a file: the part of its path before `src` or `tests`, or a folder of the root.
pub(super) fn package(file: &str) -> String {
    let parts: Vec<_> = file.split('/').collect();
    let of_crate = parts.iter().position(|part| ["src", "tests"].contains(part)).filter(|place| *place > 0);
    let until = if parts[0] == "crates" { of_crate.unwrap_or(2) } else { 1 };
    parts[..until].join("/")
}

pub(super) fn read(root: &Path, file: &str) -> Result<String> {
    std::fs::read_to_string(root.join(file)).with_context(|| format!("failed to read `{file}`"))
}

/// The files under a folder whose names end so. Hidden folders and build outputs are passed over.
fn files(root: &Path, folder: &str, extension: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("failed to read folder `{}`", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|has| has == extension) {
                found.push(path.strip_prefix(root)?.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_count_by_crate() {
        for (file, expected) in [
            ("crates/api/src/words.rs", "crates/api"),
            ("crates/cluster/node/src/kubelet/mod.rs", "crates/cluster/node"),
            ("crates/decide/tests/decisions/main.rs", "crates/decide"),
            ("crates/boathook/build.rs", "crates/boathook"),
            ("tests/src/suite.rs", "tests"),
            ("e2e/images/lantern.rs", "e2e"),
        ] {
            assert_eq!(package(file), expected, "{file}");
        }
        assert!(has_messages("crates/api/src/words.rs") && !has_messages("crates/runtime/src/run/tests.rs"));
        assert!(!has_messages("tests/src/suite.rs") && !has_messages("crates/decide/tests/decisions/main.rs"));
    }
}
