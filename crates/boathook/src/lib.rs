//! What the `boathook` binary is made of, for the binary and for tests that run it in their own process.

pub mod embedded;
pub mod log;
