//! Decisions, held to the design: case by case, and in a model of the world where everything goes wrong.

mod application_snapshot;
mod deployment_lifecycle;
mod execution_hook;
mod lifecycle_model;
mod model;
mod notification;
mod pod_notification;
mod snapshot_model;
mod volume_snapshot;
mod world;

use proptest::test_runner::{Config, RngSeed};

/// So many cases, or as many as `PROPTEST_CASES` says; always the same ones, unless `PROPTEST_RNG_SEED` names others.
/// A run that fails now and then is no use to whoever waits for it: new stories are looked for on purpose, by
/// `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=10000`.
fn config(usual: u32) -> Config {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let cases = given("PROPTEST_CASES").and_then(|cases| u32::try_from(cases).ok()).unwrap_or(usual);
    let rng_seed = RngSeed::Fixed(given("PROPTEST_RNG_SEED").unwrap_or(1977));
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}
