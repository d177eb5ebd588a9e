//! The scenario harness.
