//! No command runs without its right, everything frozen is thawed, and only Boathook writes a verdict.

use anyhow::{Result, ensure};
use boathook_api::pod_notification::Executor;
use boathook_tests::{Ctx, measure::Measure, random::Random};

use super::{
    attacks::ATTACKS,
    attempts::{Attempt, all},
    grants::{self, Grant},
    round::{ROUND, Round},
};

/// With agents, to write this is to run commands, as docs/notifications.md says: no shipped role for people grants it, and
/// admission does not know the identities of agents.
const AGENTS_WORD: &str = "podnotifications/status";

pub(crate) async fn no_trace_without_its_right(ctx: Ctx, executor: Executor) -> Result<()> {
    let (grants, measure) = (grants::all(), Measure::from_environment()?);
    let (mut permitted, forbidden) = all(&grants, ATTACKS, Random::of_the_environment()?, measure.attempts())?;
    permitted.retain(|attempt| executor == Executor::Api || attempt.attack.resource() != AGENTS_WORD);
    for grant in used(&permitted, &forbidden) {
        grant.give(&ctx).await?;
    }
    for attempt in &forbidden {
        attempt.is_forbidden(&ctx).await?;
    }
    let (mut failures, storage) = (Vec::new(), ctx.silent_storage().await?);
    for (number, attempts) in permitted.chunks(ROUND).enumerate() {
        let round = Round::prepare(&ctx, &storage.class, number, attempts).await?;
        failures.extend(round.play().await?);
    }
    ensure!(failures.is_empty(), "{} attempts broke a promise:\n\n{}", failures.len(), failures.join("\n\n"));
    Ok(())
}

/// Each grant once.
pub(super) fn used<'a>(permitted: &[Attempt<'a>], forbidden: &[Attempt<'a>]) -> Vec<&'a Grant> {
    let mut used: Vec<&Grant> = permitted.iter().chain(forbidden).map(|attempt| attempt.grant).collect();
    used.sort_by_key(|grant| &grant.name);
    used.dedup_by_key(|grant| &grant.name);
    used
}
