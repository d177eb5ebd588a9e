//! Actions carried out: exec, signal, HTTP GET and TCP connect, each within a time that is kept here and by nobody else.
//!
//! A [`Place`] is where an action is carried out from: the API server's exec, or the container runtime of a node. It
//! finds the container, does the one thing, asks the probe, tries again if it may, and says how it [`Ended`]: a
//! success only on an explicit word, and [`Outcome::Unknown`] when nobody can know. Nothing here writes objects.

mod cancel;
mod exec;
mod http_get;
mod instance;
mod outcome;
pub mod place;
mod probe;
mod run;
mod tail;
mod tcp_socket;
mod tls;
mod until;
mod work;

pub use cancel::Cancel;
pub use outcome::{Ended, Failure, Outcome};
pub use place::{Place, api_server::ApiServer};
pub use work::{Target, Work};
