//! How things go, at random.

use proptest::prelude::*;

use super::{
    process::{Luck, Who},
    request::Fate,
    run::End,
};

pub(crate) fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Answered),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::NeverArrives),
        1 => Just(Fate::Late),
    ]
}

pub(crate) fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![4 => fate().prop_map(Luck::Fate), 1 => Just(Luck::Crash)]
}

pub(crate) fn end() -> impl Strategy<Value = End> {
    prop_oneof![3 => Just(End::Succeeded), 2 => Just(End::Failed), 1 => Just(End::Unknown)]
}

/// Who has the lease.
pub(crate) fn holder() -> impl Strategy<Value = Option<Who>> {
    prop_oneof![Just(None), Just(Some(Who::First)), Just(Some(Who::Second))]
}
