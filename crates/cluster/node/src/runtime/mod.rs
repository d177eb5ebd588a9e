//! Containers: processes with a root of their own, their logs and their images.

pub mod container;
pub mod container_init;
mod handover;
pub mod image;
mod launcher;
pub mod log;
pub mod plan;
mod streams;
mod terminal;
pub(crate) mod within_root;
