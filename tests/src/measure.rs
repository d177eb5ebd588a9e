//! How much a run does: a sample for every `cargo test`, more in `.ci/run`, everything in `.ci/soak`. Scenarios that
//! repeat something take their counts from here, and the seed of their random choices.

use std::time::Duration;

use anyhow::{Result, bail};

/// Names the measure: `sample`, `ci` or `soak`.
pub const MEASURE_VAR: &str = "BOATHOOK_TEST_MEASURE";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// A few of each: the default.
    Sample,
    Ci,
    Soak,
}

impl Measure {
    pub fn from_environment() -> Result<Self> {
        Self::named(std::env::var(MEASURE_VAR).ok().as_deref())
    }

    fn named(name: Option<&str>) -> Result<Self> {
        match name {
            None | Some("" | "sample") => Ok(Self::Sample),
            Some("ci") => Ok(Self::Ci),
            Some("soak") => Ok(Self::Soak),
            Some(other) => bail!("{MEASURE_VAR}=`{other}` is not a measure: set it to `sample`, `ci` or `soak`"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Ci => "ci",
            Self::Soak => "soak",
        }
    }

    fn pick<T>(self, [sample, ci, soak]: [T; 3]) -> T {
        match self {
            Self::Sample => sample,
            Self::Ci => ci,
            Self::Soak => soak,
        }
    }

    /// The longest designed wait of a scenario that runs in this measure.
    pub fn longest_wait(self) -> Duration {
        Duration::from_secs(self.pick([20, 120, 3600]))
    }

    /// How often a process is killed at a random moment.
    pub fn kills(self) -> usize {
        self.pick([8, 20, 100])
    }

    /// At how many of its writes a controller is killed; absent: at each of them.
    pub fn writes(self) -> Option<usize> {
        self.pick([Some(3), Some(8), None])
    }

    /// How many combinations are tried of a rule that has more than a hundred; absent: all of them.
    pub fn combinations(self) -> Option<usize> {
        self.pick([Some(30), None, None])
    }

    /// How many attempts the adversary makes that RBAC permits, and as many that it forbids; absent: all of them.
    pub fn attempts(self) -> Option<usize> {
        self.pick([Some(25), Some(50), None])
    }

    /// Snapshots of one database under load.
    pub fn copies(self) -> usize {
        self.pick([3, 5, 20])
    }

    /// What each user of the random walk does.
    pub fn operations(self) -> usize {
        self.pick([10, 30, 125])
    }

    /// How often the controller is killed during the random walk.
    pub fn kills_of_the_walk(self) -> usize {
        self.pick([2, 5, 20])
    }

    /// How long faults come while hooks, snapshots, notifications and rollouts go on.
    pub fn faults(self) -> Duration {
        Duration::from_secs(self.pick([10, 35, 600]))
    }

    /// How long Boathook is down. The Deployment controller drops a key 164 s after its first failure: only the soak
    /// waits that long.
    pub fn outage(self) -> Duration {
        Duration::from_secs(self.pick([5, 20, 300]))
    }

    /// How long the API server is gone: longer than the lease, and than the 15 s after which a hook expires.
    pub fn api_server_outage(self) -> Duration {
        Duration::from_secs(self.pick([30, 30, 60]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measure_is_read_from_its_name() {
        assert_eq!(Measure::named(None).unwrap(), Measure::Sample);
        assert_eq!(Measure::named(Some("soak")).unwrap(), Measure::Soak);
        assert!(Measure::named(Some("full")).unwrap_err().to_string().contains("`sample`, `ci` or `soak`"));
    }

    #[test]
    fn larger_measure_does_more() {
        let (sample, ci, soak) = (Measure::Sample, Measure::Ci, Measure::Soak);
        for of in [Measure::kills, Measure::copies, Measure::operations, Measure::kills_of_the_walk] {
            assert!(of(sample) < of(ci) && of(ci) < of(soak));
        }
        assert!(sample.faults() < ci.faults() && ci.faults() < soak.faults());
        assert!(sample.longest_wait() < ci.longest_wait() && ci.longest_wait() < soak.longest_wait());
    }
}
