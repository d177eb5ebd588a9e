//! Chance that can be repeated: what a run did at random is done again by the number that it printed.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// Say this number to repeat a run; else it is the time.
const SEED: &str = "BOATHOOK_TEST_SEED";

/// SplitMix64: enough for moments and choices, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// By the number that the environment gives; it is printed.
    pub fn of_the_environment() -> Result<Self> {
        let seed = match std::env::var(SEED) {
            Ok(seed) => seed.parse().with_context(|| format!("{SEED}=`{seed}` is not a number"))?,
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        };
        eprintln!("chance is that of {SEED}={seed}");
        Ok(Self(seed))
    }

    /// Another one, for what goes on beside this: each is the same in each run, however they take turns.
    pub fn another(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }

    /// One of the numbers from 0 up to this, without it.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// One of these, if there is any.
    pub fn one_of<'a, T>(&mut self, these: &'a [T]) -> Option<&'a T> {
        let place = self.below(u64::try_from(these.len()).ok()?.max(1));
        these.get(usize::try_from(place).ok()?)
    }
}
