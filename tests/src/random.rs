//! Chance that can be repeated: what a run did at random is done again by the number that it printed.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::measure::Measure;

/// The seed, to repeat a run. Without it the soak takes a new one, and every other run the same.
const SEED: &str = "BOATHOOK_TEST_SEED";
const FIXED: u64 = 15;

/// SplitMix64: enough for moments and choices, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// By the number that the environment gives; it is printed.
    pub fn of_the_environment() -> Result<Self> {
        let seed = match (std::env::var(SEED), Measure::from_environment()?) {
            (Ok(seed), _) => seed.parse().with_context(|| format!("{SEED}=`{seed}` is not a number"))?,
            (Err(_), Measure::Soak) => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
            (Err(_), Measure::Sample | Measure::Ci) => FIXED,
        };
        eprintln!("random choices by {SEED}={seed}");
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

    /// So many of the numbers from 1 to `last`, in order; absent: all of them.
    pub fn some_up_to(&mut self, last: usize, count: Option<usize>) -> Vec<usize> {
        let mut numbers: Vec<_> = (1..=last).collect();
        while count.is_some_and(|count| numbers.len() > count) {
            numbers.remove(self.below(numbers.len() as u64) as usize);
        }
        numbers
    }

    /// All of these, in any order.
    pub fn shuffled<T: Clone>(&mut self, these: &[T]) -> Vec<T> {
        let (mut left, mut shuffled) = (these.to_vec(), Vec::with_capacity(these.len()));
        while !left.is_empty() {
            shuffled.push(left.swap_remove(self.below(left.len() as u64) as usize));
        }
        shuffled
    }

    /// One of these, if there is any.
    pub fn one_of<'a, T>(&mut self, these: &'a [T]) -> Option<&'a T> {
        let place = self.below(u64::try_from(these.len()).ok()?.max(1));
        these.get(usize::try_from(place).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_numbers_are_distinct_and_in_order() {
        let some = Random(7).some_up_to(40, Some(5));
        assert!(some.len() == 5 && some.is_sorted_by(|one, other| one < other), "{some:?}");
        assert_eq!(Random(7).some_up_to(3, None), [1, 2, 3]);
        assert_eq!(Random(7).some_up_to(2, Some(5)), [1, 2]);
    }

    #[test]
    fn all_are_shuffled_once() {
        let mut shuffled = Random(7).shuffled(&[1, 2, 3, 4]);
        assert_ne!(shuffled, [1, 2, 3, 4]);
        shuffled.sort_unstable();
        assert_eq!(shuffled, [1, 2, 3, 4]);
    }
}
