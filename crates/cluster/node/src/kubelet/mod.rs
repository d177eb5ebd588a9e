//! Pods of this node, through the API server.

mod addresses;
mod backoff;
mod environment;
mod events;
mod expand;
mod fields;
mod files;
mod pod;
mod probe;
mod registration;
mod status;
mod volumes;
