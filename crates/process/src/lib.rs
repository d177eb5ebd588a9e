//! A process tree on this host: found, watched, ended whole.
