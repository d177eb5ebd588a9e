//! Hooks, snapshots, notifications and rollouts at the same time, while faults come in an order drawn from the seed.

mod fault_run;
mod faults;
mod load;

use boathook_tests::{alone, cluster::Choice, suite::Scenarios};

pub(crate) fn suite() -> Scenarios {
    // A real cluster has one Boathook at a time and shows no more than the embedded one.
    let embedded = match Choice::of_the_environment() {
        Ok(Choice::Kubeconfig) => Scenarios::default(),
        _ => alone![fault_run::promises_are_kept_while_faults_come waits 35],
    };
    Scenarios::suite("combined", [embedded.of_boathook_itself()])
}
