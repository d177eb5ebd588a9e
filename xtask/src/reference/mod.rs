//! `docs/reference.md`: every field of ours, from the schemas that the API server is given.
//!
//! A type that several fields have is described once, under "Shared types"; a type of Kubernetes is a link.

mod annotations;
mod differences;
mod shared;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use shared::SHARED;
use table::Table;

const INTRODUCTION: &str = "\
# Reference

Each kind has a table of its `spec`, which you write, and one of its `status`, which Boathook writes: fields in **bold** are
required, and † marks fields that the published proposals do not have. The type column has limits and defaults, and links to
types that are described once: below, or in the Kubernetes documentation.

Generated from `crates/api` by `cargo xtask generate`: change the descriptions there.
";

/// The page that explains a kind by examples.
const PAGES: &[(&str, &str)] = &[
    ("ApplicationSnapshot", "snapshots.md"),
    ("DeploymentLifecycle", "deployments.md"),
    ("ExecutionHook", "execution-hooks.md"),
    ("ExecutionHookTemplate", "execution-hooks.md"),
    ("Notification", "notifications.md"),
    ("PodNotification", "notifications.md"),
];

/// The schemas of the shared types that a table linked to.
type Found = BTreeMap<&'static str, Value>;

/// The whole page.
pub(crate) fn page() -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    let mut found = Found::new();
    for crd in boathook_api::crds::all() {
        let crd = serde_json::to_value(crd).context("failed to read a definition")?;
        kind(&mut page, &crd["spec"], &mut found)?;
    }
    write!(page, "\n## Shared types\n")?;
    let mut written = Vec::new();
    // A type can link to others, also to earlier ones.
    while let Some(next) = SHARED.iter().find(|one| found.contains_key(one.name) && !written.contains(&one.name)) {
        written.push(next.name);
        let schema = found[next.name].clone();
        write!(page, "\n### {}\n", next.name)?;
        section(&mut page, next.name, "", &schema, &mut found)?;
    }
    page.push_str(&annotations::section());
    Ok(page)
}

fn kind(page: &mut String, spec: &Value, found: &mut Found) -> Result<()> {
    let kind = table::text(&spec["names"], "kind");
    let schema = &spec["versions"][0]["schema"]["openAPIV3Schema"];
    write!(page, "\n## {kind}\n\n{}", table::text(schema, "description"))?;
    if let Some(short) = spec["names"]["shortNames"][0].as_str() {
        write!(page, " Short name: `{short}`.")?;
    }
    if let Some((_, file)) = PAGES.iter().find(|(of, _)| *of == kind) {
        write!(page, " Guide: [{file}]({file}).")?;
    }
    page.push('\n');
    for part in ["spec", "status"] {
        let schema = &schema["properties"][part];
        if schema.is_object() {
            write!(page, "\n### {kind} {part}\n")?;
            section(page, &kind, part, schema, found)?;
        }
    }
    Ok(())
}

/// The table of one object, and how it differs from the proposal that it comes from.
fn section(page: &mut String, of: &str, part: &str, schema: &Value, found: &mut Found) -> Result<()> {
    let differences = differences::of(of, part);
    let as_a_whole = differences.iter().find(|one| one.fields.is_empty());
    let about = [table::text(schema, "description"), as_a_whole.map(|whole| whole.sentence()).unwrap_or_default()];
    // The table of a type follows the rows that link to it, and of a status its kind: they said what it is.
    let about = if part == "spec" { about.join(" ") } else { about[1].clone() };
    if !about.trim().is_empty() {
        write!(page, "\n{}\n", about.trim())?;
    }
    let table = Table::of(schema, &differences, found);
    differences::assert_known(&differences, &table.fields)?;
    write!(page, "\n{}", table.text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_is_short_and_has_every_section() {
        let page = page().unwrap();
        // A third of what it was when every field of every core type had its row.
        let words = page.split_whitespace().count();
        assert!(words <= 4_415, "the reference has {words} words: shorten descriptions in crates/api");
        for heading in ["## PodNotification", "### PodNotification spec", "### PodNotification status", "### Action"] {
            assert!(page.contains(&format!("\n{heading}\n")), "{heading}");
        }
        assert!(
            !page.contains("matchExpressions") && !page.contains("configMapKeyRef"),
            "types of Kubernetes are links"
        );
    }

    #[test]
    fn shared_types_and_pages_are_used() {
        let page = page().unwrap();
        for one in SHARED {
            assert!(page.contains(&format!("\n### {}\n", one.name)), "`{}` is not a type of any field", one.name);
        }
        for kind in boathook_api::crds::all() {
            assert!(PAGES.iter().any(|(of, _)| *of == kind.spec.names.kind), "{}", kind.spec.names.kind);
        }
    }
}
