//! Boathook under test: its real processes, with the rights that are shipped, and what is asked of its objects.
//!
//! The test binary is also the program: started again with [`AS_PROGRAM`] in its environment, its `main` is Boathook's.
//! So controller and agent are processes that can be stopped, continued and killed, without a second binary to build.

pub mod host;
pub mod installation;
pub mod log;
pub mod notifications;
pub mod phases;
pub mod process;
pub mod recording;

use boathook_api::pod_notification::Executor;

/// Set in the environment of a process that is to be Boathook itself.
const AS_PROGRAM: &str = "BOATHOOK_TEST_AS_PROGRAM";

/// Whether this process was started to be Boathook.
pub fn is_the_program() -> bool {
    std::env::var_os(AS_PROGRAM).is_some()
}

/// As `--executor` takes it.
pub fn word(executor: Executor) -> &'static str {
    match executor {
        Executor::Api => "api",
        Executor::Agent => "agent",
    }
}
