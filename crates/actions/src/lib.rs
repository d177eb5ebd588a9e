//! Actions carried out: exec, signal, HTTP GET, TCP connect, through the API server or CRI.
