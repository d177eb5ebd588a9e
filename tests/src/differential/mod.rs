//! The differential suite: the same requests sent to the real cluster and to the embedded one, the answers compared.
//!
//! A case is data ([`case`]): steps in YAML, played on both clusters at once, each in a namespace of its own
//! ([`play`]). What every cluster chooses for itself (uids, times, versions, addresses) is replaced by its place in the
//! order of appearance ([`normal`]), and what is left must be equal ([`compare`]), but for what one file lists with its
//! reason. Cases are in `tests/differential/cases`, the list in `tests/differential/differences.yaml`.

pub mod case;
pub mod compare;
pub mod normal;
pub mod play;
mod record;
pub mod webhook;
