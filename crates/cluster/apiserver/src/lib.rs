//! The API server of the embedded cluster: Kubernetes' HTTP API over a durable store, small.
//!
//! Objects are untyped JSON inside ([`serde_json::Value`]); what a kind is stands in one table. It serves what
//! Boathook's flows and a newcomer with kubectl touch, answers the rest as Kubernetes answers an unknown resource,
//! and never pretends: what it accepts it honours. Where it differs from the real one, it is wrong.

pub mod accept;
pub mod access;
pub mod admission;
pub mod answer;
pub mod api;
pub mod body;
mod channels;
pub mod crd;
mod definitions;
pub mod describe;
pub mod discovery;
pub mod handlers;
pub mod metadata_only;
pub mod object;
pub mod openapi;
pub mod ownership;
pub mod patch;
pub mod protobuf;
pub mod request;
pub mod resource;
pub mod schema;
pub mod selector;
pub mod server;
pub mod sessions;
pub mod status;
pub mod store;
mod strategy;
pub mod table;
pub mod time;
