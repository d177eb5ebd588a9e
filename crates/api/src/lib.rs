//! The kinds of `boathook.dev`: a file per kind with its type and rules, and the words that objects carry.
//!
//! Nothing here talks to a cluster. What people write is parsed once, into types that cannot be wrong.

#![allow(unreachable_pub, reason = "of the types that `KubeSchema` makes for schemas")]

pub mod action;
pub mod application_snapshot;
pub mod crds;
pub mod declaration;
pub mod deployment_lifecycle;
pub mod execution_hook;
pub mod execution_hook_template;
pub mod hook_action;
pub mod names;
pub mod notification;
pub mod outcome;
pub mod pod;
pub mod pod_notification;
pub mod selector;
pub mod signal;
pub mod snapshot_mark;
pub mod volume_snapshot;
pub mod words;

pub use action::{Action, ExecAction, HttpGetAction, TcpSocketAction};
pub use application_snapshot::ApplicationSnapshot;
pub use declaration::{Declarations, Mistake, Notifier, Probe};
pub use deployment_lifecycle::DeploymentLifecycle;
pub use execution_hook::ExecutionHook;
pub use execution_hook_template::ExecutionHookTemplate;
pub use hook_action::HookAction;
pub use notification::Notification;
pub use pod_notification::PodNotification;
pub use signal::Signal;
