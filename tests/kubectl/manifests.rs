//! The objects that the scenarios put into files, as a person writes them.

use boathook_tests::images::IMPORTED;

/// A shell and the usual small programs.
pub(crate) const BUSYBOX: &str = IMPORTED.shell;

/// One program that stays, and no shell.
pub(crate) const DISTROLESS: &str = IMPORTED.lantern;

/// Does nothing until it is told to end, and then ends at once.
pub(crate) const IDLE: &str = "trap 'exit 0' TERM; sleep 2147483647 & wait";

/// A pod of one container, `main`, that runs this shell script.
pub(crate) fn pod(name: &str, script: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  dnsPolicy: Default
  containers:
  - name: main
    image: {BUSYBOX}
    imagePullPolicy: Never
    command: [sh, -c, {script:?}]
"
    )
}

/// A Deployment whose pods are labelled `app: NAME` and do nothing.
pub(crate) fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
      dnsPolicy: Default
      containers:
      - name: main
        image: {BUSYBOX}
        imagePullPolicy: Never
        command: [sh, -c, {IDLE:?}]
"
    )
}

/// An empty volume of 64 MiB.
pub(crate) fn claim(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 64Mi}}}}}}
"
    )
}

/// A ConfigMap with these lines of `data`.
pub(crate) fn config_map(name: &str, data: &[(&str, &str)]) -> String {
    let data: String = data.iter().map(|(key, value)| format!("  {key}: {value:?}\n")).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{data}")
}
