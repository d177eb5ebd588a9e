//! The API server of the embedded cluster: Kubernetes' HTTP API over a durable store, small.
//!
//! Objects are untyped JSON inside ([`serde_json::Value`]); what a kind is stands in one table. It serves what
//! Boathook's flows and a newcomer with kubectl touch, answers the rest as Kubernetes answers an unknown resource,
//! and never pretends: what it accepts it honours. Where it differs from the real one, it is wrong.

// What other crates use is few; in a private module `pub` means for this crate, and the compiler tells what nobody uses.
#![allow(unreachable_pub)]

mod accept;
pub mod access;
mod admission;
mod answer;
pub mod api;
mod body;
mod cel;
mod channels;
mod crd;
mod definitions;
mod describe;
mod discovery;
mod go_text;
mod handlers;
mod metadata_only;
mod object;
mod openapi;
mod ownership;
mod patch;
mod protobuf;
mod random;
mod repeated;
mod request;
mod resource;
mod schema;
pub mod selector;
pub mod server;
pub mod sessions;
pub mod status;
pub mod store;
mod strategy;
mod table;
pub mod time;
