//! Containers: processes with a root of their own, their logs and their images.

pub mod container;
pub mod container_init;
pub mod image;
pub mod log;
pub mod plan;
mod terminal;
