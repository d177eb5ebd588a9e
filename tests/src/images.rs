//! The images that every test cluster has, by the names under which `cargo xtask cluster up` imports them.
//! Nothing is ever pulled: pods use them with `imagePullPolicy: Never`.

/// A shell and the usual small programs.
pub const BUSYBOX: &str = "localhost/busybox:1";

/// One static program, [`LANTERN`], and nothing else: no shell, no libraries, no `/etc`.
pub const DISTROLESS: &str = "localhost/distroless:1";

/// The program of [`DISTROLESS`] and its default command. It prints `lit`, then `reloaded N` for the Nth SIGHUP, and
/// ends with 0 on SIGTERM; `/lantern exit N` ends with N at once.
pub const LANTERN: &str = "/lantern";
