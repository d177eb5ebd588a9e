//! Pods, through the API server.
