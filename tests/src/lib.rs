//! The scenario harness: what a scenario is given ([`Ctx`]), how it waits, and how it is run.
//!
//! A scenario is an `async fn(Ctx) -> anyhow::Result<()>` written once against a `kube::Client` and run on any
//! cluster that talks the Kubernetes API. The scenarios themselves are in `scenarios/`, one file per subject.
//! A scenario never sleeps to wait: it watches with a deadline, and where the API has nothing to watch it polls
//! with one ([`Ctx::poll_until`]).

pub mod boathook;
pub mod claims;
pub mod cluster;
pub mod cri;
pub mod ctx;
pub mod departures;
pub mod deployments;
pub mod differential;
mod durations;
pub mod embedded;
pub mod exec;
pub mod images;
pub mod logbook;
pub mod logs;
pub mod measure;
pub mod namespace;
pub mod node;
pub mod pods;
pub mod poll;
pub mod random;
pub mod relay;
mod report;
pub mod run;
mod scenario;
pub mod snapshots;
pub mod storage;
pub mod suite;
pub mod watch;
pub mod webhook;
pub mod work;

use std::time::Duration;

pub use ctx::Ctx;

/// How long a scenario waits for one thing. The slowest of them, the first mount of a new claim, takes about 20 s
/// on an idle machine with two cores; the rest is room for a machine that is busy compiling. A wait ends as soon as
/// it is met, so being generous costs time only in a run that fails anyway.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// How late something may happen that would otherwise never happen. Exact lateness is measured in `bench/`, and by the
/// scenarios that run alone.
pub const LATE: Duration = Duration::from_secs(30);

/// How late an undo may be in the scenarios that run when nothing else does, by the container's own clock. `bench/` measures
/// that it is less than a second; here a busy machine must not fail a whole run.
pub const ON_TIME: Duration = Duration::from_secs(3);
