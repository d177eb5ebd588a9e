//! Boathook under test: its real processes, with the rights that are shipped, and what is asked of its objects.
//!
//! The test binary is also the program: started again in another [`role::Role`], its `main` is Boathook's. So controller
//! and agent are processes that can be stopped, continued and killed, without a second binary to build.

pub mod accounts;
pub mod admitted;
pub mod api_proxy;
pub mod api_relay;
pub mod application_snapshots;
pub mod conditions;
pub mod execution_hooks;
pub(crate) mod ground;
pub mod host;
pub mod installation;
pub mod lifecycles;
pub mod log;
pub mod node;
pub mod notifications;
pub mod people;
pub mod process;
pub mod recording;
pub mod role;
pub mod rollouts;
pub mod running;
pub mod small_disk;
pub mod traces;
mod wall_clock;

use boathook_api::pod_notification::Executor;

/// As `--executor` takes it.
pub fn word(executor: Executor) -> &'static str {
    match executor {
        Executor::Api => "api",
        Executor::Agent => "agent",
    }
}
