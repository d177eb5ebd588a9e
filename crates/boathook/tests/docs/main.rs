//! The documentation, tried: every command of a page is typed on a `boathook up`, and prints what the page says.
//!
//! It needs kubectl on the PATH, so a plain `cargo test` leaves it out and `.ci/run` runs it.

// All of it is a test: an unwrap that fails is the test's failure.
#![allow(clippy::unwrap_used)]

mod page;
mod person;

use std::fs;
use std::path::Path;

use page::{Does, matches, steps};
use person::Person;
use tokio::sync::Semaphore;

/// The folder of the repository.
const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Each page is followed in a home and on a cluster of its own. More pages at once would need more time than they allow
/// their commands, on a machine with two cores.
static PAGES_AT_ONCE: Semaphore = Semaphore::const_new(3);

/// Does everything that the page says.
async fn follow(name: &str, page: &str) {
    let _turn = PAGES_AT_ONCE.acquire().await.unwrap();
    let steps = steps(page);
    assert!(!steps.is_empty(), "nothing to try in {name}");
    let mut person = Person::new(name);
    for step in steps {
        match step.does {
            Does::Write { file, text } => person.write(&file, &text),
            Does::Run { commands, prints } => {
                let mut printed = String::new();
                for command in commands {
                    let (succeeded, text) = person.types(&command).await;
                    assert!(succeeded, "{name}, line {}: `{command}` failed:\n{text}", step.line);
                    printed += &text;
                }
                if let Some(wanted) = prints {
                    let (line, said) = (step.line, matches(&wanted, &printed));
                    assert!(said, "{name}, line {line}: the page says\n{wanted}\n--- but it printed\n{printed}");
                }
            }
        }
    }
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(TOP).join(file)).unwrap()
}

/// One section of the README; its other ones are about cargo, and the machine that they run on.
async fn follow_section(title: &str) {
    let readme = read("README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with(title)).unwrap();
    follow(title, section).await;
}

#[tokio::test]
async fn the_page_on_notifications_is_true() {
    follow("docs/notifications.md", &read("docs/notifications.md")).await;
}

/// It needs the databases' packages too.
#[tokio::test]
async fn the_page_on_databases_is_true() {
    follow("docs/databases.md", &read("docs/databases.md")).await;
}

#[tokio::test]
async fn the_page_on_execution_hooks_is_true() {
    follow("docs/execution-hooks.md", &read("docs/execution-hooks.md")).await;
}

/// It needs `sqlite3` too.
#[tokio::test]
async fn the_page_on_deployments_is_true() {
    follow("docs/deployments.md", &read("docs/deployments.md")).await;
}

#[tokio::test]
async fn the_page_on_snapshots_is_true() {
    follow("docs/snapshots.md", &read("docs/snapshots.md")).await;
}

#[tokio::test]
async fn the_tutorial_is_true() {
    follow("docs/tutorial.md", &read("docs/tutorial.md")).await;
}

#[tokio::test]
async fn the_readmes_cluster_to_play_with_is_true() {
    follow_section("A cluster to play with").await;
}
