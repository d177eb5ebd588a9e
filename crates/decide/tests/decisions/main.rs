//! Decisions, held to the design: case by case, and in a model of the world where everything goes wrong.

mod model;
mod notification;
mod pod_notification;

/// How many cases a property is tried in: so many, or as many as `PROPTEST_CASES` says.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}
