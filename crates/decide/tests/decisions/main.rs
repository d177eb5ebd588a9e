//! Decisions, held to the design: case by case, and in a model of the world where everything goes wrong.

mod model;
mod pod_notification;
