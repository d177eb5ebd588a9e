//! Where something is to be done.

/// One container of one pod. The UID decides which pod: another one under the same name is never touched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub namespace: String,
    pub pod: String,
    pub pod_uid: String,
    pub container: String,
}
