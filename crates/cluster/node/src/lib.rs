//! A Kubernetes node on this machine: a pod is a set of process trees.
//!
//! `runtime` starts, watches and ends containers and knows nothing of Kubernetes; `kubelet` carries out what the
//! API server says about pods, through a `kube::Client` like any other kubelet.

pub mod kubelet;
pub mod runtime;

pub use runtime::container_init;
