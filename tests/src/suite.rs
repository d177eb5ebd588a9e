//! Scenarios as their suites declare them, and the rule that says which of them a run includes.
//!
//! | measure | on the embedded cluster | on a real one |
//! |---|---|---|
//! | sample | designed wait at most 20 s, one executor, one of each family | likewise, of what rests on Kubernetes |
//! | ci | designed wait at most 2 min, every executor | what rests on Kubernetes, one executor |
//! | soak | everything | everything |
//!
//! The one executor, and the one of a family, are chosen by a hash of their names: a fixed choice that needs no
//! maintenance.

use std::time::Duration;

use anyhow::Result;
use boathook_api::pod_notification::Executor;
use futures::future::LocalBoxFuture;

use crate::{
    Ctx,
    boathook::{installation::Installation, word},
    cluster::Choice,
    measure::Measure,
};

type Outcome = LocalBoxFuture<'static, Result<()>>;

/// What a scenario needs, and what it does with it.
#[derive(Clone, Copy)]
pub enum Body {
    /// A cluster without Boathook.
    Plain(fn(Ctx) -> Outcome),
    /// A Boathook that serves other scenarios at the same time.
    Shared(fn(Ctx, Executor) -> Outcome),
    /// A cluster on which no Boathook runs but the processes that the scenario starts.
    Alone(fn(Ctx, Installation, Executor) -> Outcome),
}

/// One scenario. The macros [`plain!`](crate::plain), [`shared!`](crate::shared) and [`alone!`](crate::alone) make lists
/// of them from their functions.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub suite: &'static str,
    pub module: &'static str,
    pub name: &'static str,
    pub body: Body,
    pub executors: &'static [Executor],
    /// What it waits for by design: an expiry, an outage, a grace period.
    pub waits: Duration,
    /// It is one of several variants of its module's subject.
    pub is_variant: bool,
    /// Its outcome depends on the kubelet, containerd, CSI, admission or Kubernetes' own controllers.
    pub rests_on_kubernetes: bool,
    /// It measures lateness: the machine must not be busy with other scenarios.
    pub is_on_time: bool,
    /// It also runs with the client that an embedded cluster has in its own process.
    pub is_in_process_too: bool,
}

/// A list of scenarios from functions that need no Boathook. `waits SECONDS` after a name declares its designed wait.
#[macro_export]
macro_rules! plain {
    ($($module:ident::$name:ident $(waits $seconds:literal)?),* $(,)?) => {
        $crate::suite::Scenarios::from(vec![$($crate::scenario!($module, $name, Plain(|ctx| Box::pin($module::$name(ctx)))
            $(, $seconds)?)),*])
    };
}

/// The same, of functions that run beside a Boathook that serves others too.
#[macro_export]
macro_rules! shared {
    ($($module:ident::$name:ident $(waits $seconds:literal)?),* $(,)?) => {
        $crate::suite::Scenarios::from(vec![$($crate::scenario!(
            $module, $name, Shared(|ctx, executor| Box::pin($module::$name(ctx, executor))) $(, $seconds)?
        )),*])
    };
}

/// The same, of functions that start and stop Boathook's processes themselves.
#[macro_export]
macro_rules! alone {
    ($($module:ident::$name:ident $(waits $seconds:literal)?),* $(,)?) => {
        $crate::suite::Scenarios::from(vec![$($crate::scenario!(
            $module, $name,
            Alone(|ctx, installation, executor| Box::pin($module::$name(ctx, installation, executor))) $(, $seconds)?
        )),*])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! scenario {
    ($module:ident, $name:ident, $kind:ident($body:expr)) => {
        $crate::scenario!($module, $name, $kind($body), 0)
    };
    ($module:ident, $name:ident, $kind:ident($body:expr), $seconds:literal) => {
        $crate::suite::Scenario::new(
            stringify!($module),
            stringify!($name),
            $crate::suite::Body::$kind($body),
            $seconds,
        )
    };
}

impl Scenario {
    pub fn new(module: &'static str, name: &'static str, body: Body, waits: u64) -> Self {
        let executors: &[Executor] = match body {
            Body::Plain(_) => &[],
            Body::Shared(_) | Body::Alone(_) => &[Executor::Api, Executor::Agent],
        };
        Self {
            suite: "",
            module,
            name,
            body,
            executors,
            waits: Duration::from_secs(waits),
            is_variant: false,
            rests_on_kubernetes: true,
            is_on_time: false,
            is_in_process_too: false,
        }
    }

    /// Its name in a run with this executor.
    pub fn full_name(&self, executor: Option<Executor>) -> String {
        let Self { suite, name, .. } = self;
        match (executor, self.body) {
            (None, _) => format!("{suite}::{name}"),
            (Some(executor), Body::Alone(_)) if self.is_on_time => {
                format!("{suite}::{}::on_time::{name}", word(executor))
            }
            (Some(executor), Body::Alone(_)) => format!("{suite}::{}::alone::{name}", word(executor)),
            (Some(executor), _) => format!("{suite}::{}::{name}", word(executor)),
        }
    }

    /// The one executor of a run that does not try all of them.
    fn chosen_executor(&self) -> Option<Executor> {
        let place = usize::try_from(hash(self.name) % self.executors.len().max(1) as u64).ok()?;
        self.executors.get(place).copied()
    }
}

/// Several scenarios. What is said of them is said of each.
#[derive(Clone, Default)]
pub struct Scenarios(Vec<Scenario>);

impl From<Vec<Scenario>> for Scenarios {
    fn from(scenarios: Vec<Scenario>) -> Self {
        Self(scenarios)
    }
}

impl Scenarios {
    /// All of these lists, as the suite of this name.
    pub fn suite(name: &'static str, lists: impl IntoIterator<Item = Scenarios>) -> Self {
        let all: Vec<_> = lists.into_iter().flat_map(|list| list.0).collect();
        Self(all).each(|scenario| scenario.suite = name)
    }

    pub fn join(suites: impl IntoIterator<Item = Scenarios>) -> Self {
        Self(suites.into_iter().flat_map(|suite| suite.0).collect())
    }

    /// With this executor only.
    pub fn with(self, executor: Executor) -> Self {
        let only: &[Executor] = match executor {
            Executor::Api => &[Executor::Api],
            Executor::Agent => &[Executor::Agent],
        };
        self.each(|scenario| scenario.executors = only)
    }

    /// Those of one module are variants of one subject: one of them is enough for a sample.
    pub fn variants(self) -> Self {
        self.each(|scenario| scenario.is_variant = true)
    }

    /// Their outcome depends on Boathook's own decisions, which are the same on every cluster.
    pub fn of_boathook_itself(self) -> Self {
        self.each(|scenario| scenario.rests_on_kubernetes = false)
    }

    pub fn on_time(self) -> Self {
        self.each(|scenario| scenario.is_on_time = true)
    }

    pub fn also_in_process(self) -> Self {
        self.each(|scenario| scenario.is_in_process_too = true)
    }

    fn each(mut self, change: impl Fn(&mut Scenario)) -> Self {
        self.0.iter_mut().for_each(change);
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = &Scenario> {
        self.0.iter()
    }

    /// What a run includes: each scenario with each of its executors. A plain scenario has none.
    pub fn included(&self, measure: Measure, choice: Choice) -> Vec<(Scenario, Option<Executor>)> {
        let mut included = Vec::new();
        for scenario in self.iter().filter(|scenario| self.includes(scenario, measure, choice)) {
            let one = match (measure, choice) {
                (Measure::Sample, _) | (Measure::Ci, Choice::Kubeconfig) => true,
                (Measure::Ci, Choice::Embedded) | (Measure::Soak, _) => false,
            };
            match scenario.executors {
                [] => included.push((*scenario, None)),
                _ if one => included.push((*scenario, scenario.chosen_executor())),
                all => included.extend(all.iter().map(|executor| (*scenario, Some(*executor)))),
            }
        }
        // A run ends when its longest scenario does: those that wait longest begin first, then those that start processes.
        included
            .sort_by_key(|(scenario, _)| (std::cmp::Reverse(scenario.waits), !matches!(scenario.body, Body::Alone(_))));
        included
    }

    fn includes(&self, scenario: &Scenario, measure: Measure, choice: Choice) -> bool {
        if measure == Measure::Soak {
            return true;
        }
        let here = choice == Choice::Embedded || scenario.rests_on_kubernetes;
        let stands_for_others =
            measure != Measure::Sample || !scenario.is_variant || self.representative(scenario) == scenario.name;
        here && stands_for_others && scenario.waits <= measure.longest_wait()
    }

    /// Of the variants of one module that a sample may include, the one that it does include.
    fn representative(&self, of: &Scenario) -> &str {
        let is_variant = |other: &&Scenario| {
            let same = (other.suite, other.module, other.is_variant) == (of.suite, of.module, true);
            same && other.waits <= Measure::Sample.longest_wait()
        };
        self.iter().filter(is_variant).map(|other| other.name).min_by_key(|name| hash(name)).unwrap_or_default()
    }
}

/// FNV-1a: the same on every machine and with every compiler.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    mod undo {
        use super::*;

        pub(super) async fn early(_: Ctx, _: Executor) -> Result<()> {
            Ok(())
        }
        pub(super) async fn late(_: Ctx, _: Executor) -> Result<()> {
            Ok(())
        }
        pub(super) async fn slow(_: Ctx, _: Executor) -> Result<()> {
            Ok(())
        }
    }

    fn suite() -> Scenarios {
        let both = shared![undo::early, undo::late].variants();
        Scenarios::suite("flow", [both, shared![undo::slow waits 60].of_boathook_itself()])
    }

    fn names(measure: Measure, choice: Choice) -> Vec<String> {
        let included = suite().included(measure, choice);
        included.into_iter().map(|(scenario, executor)| scenario.full_name(executor)).collect()
    }

    #[test]
    fn sample_has_one_variant_with_one_executor() {
        let sample = names(Measure::Sample, Choice::Embedded);
        assert_eq!(sample.len(), 1, "{sample:?}");
        assert_eq!(sample, names(Measure::Sample, Choice::Embedded));
    }

    #[test]
    fn ci_has_every_executor_on_the_embedded_cluster() {
        let mut ci = names(Measure::Ci, Choice::Embedded);
        assert_eq!(ci[0], "flow::api::slow", "the longest wait begins first");
        ci.sort();
        let all = ["early", "late", "slow"];
        assert_eq!(ci, ["agent", "api"].map(|by| all.map(|name| format!("flow::{by}::{name}"))).concat());
    }

    #[test]
    fn ci_has_what_rests_on_kubernetes_once_on_a_real_cluster() {
        let ci = names(Measure::Ci, Choice::Kubeconfig);
        assert_eq!(ci.len(), 2, "{ci:?}");
        assert!(!ci.iter().any(|name| name.ends_with("slow")), "{ci:?}");
    }

    #[test]
    fn soak_has_everything_everywhere() {
        assert_eq!(names(Measure::Soak, Choice::Embedded).len(), 6);
        assert_eq!(names(Measure::Soak, Choice::Kubeconfig).len(), 6);
    }
}
