//! `cargo xtask dependencies`: what may be in the dependency tree. Licences are on a list, every crate comes from the
//! registry, and none is there in two versions without a reason: two versions are compiled twice.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

const LICENCES: [&str; 6] = ["Apache-2.0", "BSD-3-Clause", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Older versions beside a newer one, each with its reason.
const SECOND_VERSIONS: [(&str, &str, &str); 10] = [
    ("base64", "0.22", "k8s-openapi and tower-http, beside pem's 0.23"),
    ("getrandom", "0.2", "ring"),
    ("getrandom", "0.3", "ahash, beside 0.4 of newer crates"),
    ("foldhash", "0.1", "hashbrown 0.15"),
    ("hashbrown", "0.16", "kube-runtime, beside 0.17 of indexmap"),
    ("hashbrown", "0.15", "petgraph, which only generating code uses"),
    ("thiserror", "1", "cel, beside 2 of all others"),
    ("thiserror-impl", "1", "cel, beside 2 of all others"),
    ("unicode-width", "0.1", "the reports of protox, which only generating code uses"),
    ("syn", "2", "derive macros that have not moved to 3"),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

pub(crate) fn run() -> Result<()> {
    let mut used = BTreeSet::new();
    for target in TARGETS {
        used.extend(built_for(target)?);
    }
    let output = cargo(&["metadata", "--locked", "--format-version=1"])?;
    let Metadata { packages } =
        serde_json::from_str(&output).context("failed to read the output of `cargo metadata`")?;
    let is_used = |package: &Package| used.contains(&(package.name.clone(), package.version.clone()));
    let packages: Vec<_> = packages.into_iter().filter(is_used).collect();
    ensure!(packages.len() >= used.len(), "`cargo metadata` does not list everything that `cargo tree` does");
    let problems = problems(&packages);
    ensure!(problems.is_empty(), "the dependency tree has problems:\n  {}", problems.join("\n  "));
    eprintln!("{} packages: licences, sources and versions are as they should be", packages.len());
    Ok(())
}

/// The names and versions of what is built for this target. `cargo metadata` also lists packages that only features which
/// are off would need.
fn built_for(target: &str) -> Result<BTreeSet<(String, String)>> {
    let arguments =
        ["--workspace", "--locked", "--edges=normal,build,dev", "--prefix=none", "--format={p}", "--target"];
    let output = cargo(&[&["tree"], arguments.as_slice(), &[target]].concat())?;
    let lines = output.lines().filter(|line| !line.trim().is_empty());
    let package = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    };
    lines.map(|line| package(line).with_context(|| format!("`cargo tree` prints `{line}`"))).collect()
}

fn cargo(arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let command = format!("cargo {}", arguments.join(" "));
    let output = Command::new(cargo).args(arguments).output().with_context(|| format!("failed to run `{command}`"))?;
    if !output.status.success() {
        bail!("`{command}` failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{command}` does not print text"))
}

fn problems(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for Package { name, version, license, source, dependencies, .. } in packages {
        match license {
            Some(license) if is_allowed(license) => {}
            Some(license) => {
                problems.push(format!("{name} {version} has the licence `{license}`, which is not allowed"))
            }
            None => problems.push(format!("{name} {version} has no licence")),
        }
        match source.as_deref() {
            None => {
                let wildcards = dependencies.iter().filter(|one| one.path.is_none() && one.req == "*");
                problems.extend(wildcards.map(|one| format!("{name} takes any version of {}", one.name)));
            }
            Some(source) if source.starts_with("registry+") => {}
            Some(other) => problems.push(format!("{name} {version} comes from {other}, not from the registry")),
        }
    }
    let registries: BTreeSet<_> = packages.iter().filter_map(|one| one.source.as_deref()).collect();
    let registries: Vec<_> = registries.into_iter().filter(|source| source.starts_with("registry+")).collect();
    if registries.len() > 1 {
        problems.push(format!("crates come from several registries: {}", registries.join(", ")));
    }
    let mut versions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for package in packages {
        versions.entry(package.name.as_str()).or_default().insert(package.version.as_str());
    }
    let mut explained = BTreeSet::new();
    for (name, versions) in versions {
        let unexplained = versions.iter().filter(|version| {
            let reason = SECOND_VERSIONS.iter().position(|(of, prefix, _)| *of == name && is_of(version, prefix));
            explained.extend(reason.filter(|_| versions.len() > 1));
            reason.is_none()
        });
        let unexplained: Vec<_> = unexplained.copied().collect();
        if unexplained.len() > 1 {
            problems.push(format!("{name} is there in versions {}: use one", unexplained.join(", ")));
        }
    }
    let stale = SECOND_VERSIONS.iter().enumerate().filter(|(place, _)| !explained.contains(place));
    problems.extend(stale.map(|(_, (name, version, _))| {
        format!(
            "{name} {version} is listed as a second version and is not one: remove it from xtask/src/dependencies.rs"
        )
    }));
    problems
}

/// Whether this version is 0.22.1 when the prefix is 0.22.
fn is_of(version: &str, prefix: &str) -> bool {
    version.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a licence expression can be met with the allowed licences. `OR` binds weaker than `AND`; the old `/` is an `OR`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = expression.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest) && rest.is_empty()
}

fn any(words: &mut &[&str]) -> bool {
    let mut met = all(words);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        met |= all(words);
    }
    met
}

fn all(words: &mut &[&str]) -> bool {
    let mut met = one(words);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        met &= one(words);
    }
    met
}

fn one(words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = any(words);
            *words = words.strip_prefix(&[")"]).unwrap_or_default();
            met
        }
        // An exception permits more.
        [licence, "WITH", _, rest @ ..] | [licence, rest @ ..] => {
            *words = rest;
            LICENCES.contains(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expression_needs_one_allowed_choice() {
        for allowed in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND MPL-2.0", ""] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    fn package(name: &str, version: &str, source: Option<&str>) -> Package {
        let (license, source) = (Some("MIT".to_owned()), source.map(str::to_owned));
        Package { name: name.to_owned(), version: version.to_owned(), license, source, dependencies: vec![] }
    }

    #[test]
    fn second_version_and_foreign_source_are_problems() {
        let mut packages =
            vec![package("left", "1.0.0", Some("git+https://example.org")), package("left", "2.0.0", None)];
        packages.extend(SECOND_VERSIONS.iter().flat_map(|(name, version, _)| {
            [package(name, &format!("{version}.0"), None), package(name, "99.0.0", None)]
        }));
        let problems = problems(&packages);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("not from the registry") && problems[1].contains("versions 1.0.0, 2.0.0"));
    }

    #[test]
    fn listed_second_version_that_is_gone_is_a_problem() {
        assert_eq!(problems(&[]).len(), SECOND_VERSIONS.len());
    }
}
