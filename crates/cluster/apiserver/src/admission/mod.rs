//! Admission webhooks.

pub(crate) mod label_selector;
