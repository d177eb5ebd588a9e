//! A generated adversary: users with few rights try every way to write Boathook's objects, and the objects that Boathook
//! trusts, with commands that leave a trace. Attempts are the product of three tables: [`grants`], [`attacks`] and
//! [`doors`].
//!
//! A failure prints the attempt with its user, rights, method, path and body. `BOATHOOK_TEST_ATTEMPT` runs the attempts
//! whose name contains its value, and no other.

mod attacks;
mod attempts;
mod doors;
mod gate;
mod grants;
mod promises;
mod round;
mod victims;

use boathook_tests::{shared, suite::Scenarios};

pub(crate) fn suite() -> Scenarios {
    Scenarios::suite(
        "adversary",
        [shared![
            promises::no_trace_without_its_right,
            gate::no_gate_opens_without_its_hook,
            grants::every_grant_is_used_or_explained,
        ]],
    )
}
