//! The API server that a command speaks to, for its error messages: its address, and the kubeconfig that names it.

use std::sync::OnceLock;

use kube::Config;

/// Set when the command has read its kubeconfig.
static SERVER: OnceLock<String> = OnceLock::new();

/// From now on messages name this server. `source` says where its address comes from.
pub(crate) fn remember(config: &Config, source: &str) {
    let address = config.cluster_url.to_string();
    // A process speaks to one server: a second call changes nothing.
    let _ = SERVER.set(format!("the API server {} ({source})", address.trim_end_matches('/')));
}

/// For a sentence: `the API server https://HOST:PORT (kubeconfig ...)`.
pub(crate) fn named() -> &'static str {
    SERVER.get().map_or("the API server", String::as_str)
}
