//! The node agent: its node's PodNotifications through CRI, and the ledger of what must be undone.
