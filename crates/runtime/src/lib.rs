//! What every controller shares: run loop, lease, events, metrics, webhook server, error classes.
