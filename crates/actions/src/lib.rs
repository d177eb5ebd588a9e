//! Actions carried out: exec, signal, HTTP GET and TCP connect, each within a time that is kept here and by nobody else.
//!
//! A [`Place`] is where an action is carried out from: the API server's exec, or the container runtime of a node. It
//! finds the container, does the one thing, asks the probe, tries again if it may, and says how it [`Ended`]: a
//! success only on an explicit word, and [`Outcome::Unknown`] when nobody can know. A command whose [`Session`] is held
//! has succeeded when it is ready, and goes on. Nothing here writes objects.

mod cancel;
mod exec;
mod http_get;
mod instance;
mod outcome;
pub mod place;
mod probe;
mod ready;
mod run;
mod session;
mod signal;
mod tail;
mod target;
mod tcp_socket;
mod tls;
mod until;

pub use boathook_api::outcome::{Ended, Failure, Outcome, Work};
pub use cancel::Cancel;
pub use place::{Place, api_server::ApiServer};
pub use session::{Session, SessionEnd};
pub use target::Target;
