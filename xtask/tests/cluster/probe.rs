//! Whether a cluster works: everything that a scenario needs, in one go, with the cluster's own kubectl.

use std::io::Write;
use std::process::{Command, Stdio};

/// A claim is provisioned, a pod on it starts, writes and is exec'd, the claim is snapshotted; then all of it goes.
/// Every component has a part in this.
pub(crate) fn a_pod_writes_a_claim_that_is_snapshotted(name: &str) {
    make(name);
    let field = |object: &str, path: &str| kubectl(&["get", object, "--output", &format!("jsonpath={{{path}}}")], "");
    let volume = field(&format!("pvc/{name}"), ".spec.volumeName");
    let content = field(&format!("volumesnapshot/{name}"), ".status.boundVolumeSnapshotContentName");
    kubectl(&["delete", "--timeout=600s", "-f", "-"], &manifest(name));
    // The CSI driver too is done with them: it writes its state over the old one, so whoever kills it meanwhile leaves
    // half a file, with which it never starts again.
    let rest = [format!("pv/{volume}"), format!("volumesnapshotcontent/{content}")];
    kubectl(&["wait", "--for=delete", "--timeout=600s", &rest[0], &rest[1]], "");
}

/// The same, left as it is.
pub(crate) fn make(name: &str) {
    let manifest = manifest(name);
    kubectl(&["apply", "-f", "-"], &manifest);
    kubectl(&["wait", "--for=condition=Ready", &format!("pod/{name}"), "--timeout=600s"], "");
    let script = "echo written > /data/file && cat /data/file";
    assert_eq!(kubectl(&["exec", name, "--", "sh", "-c", script], ""), "written\n");
    let ready = "--for=jsonpath={.status.readyToUse}=true";
    kubectl(&["wait", ready, &format!("volumesnapshot/{name}"), "--timeout=600s"], "");
}

fn manifest(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Mi}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {{name: main, image: 'localhost/busybox:1', command: [sleep, inf], volumeMounts: [{{name: data, mountPath: /data}}]}}
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: {name}}}}}]
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {{name: {name}}}
spec: {{source: {{persistentVolumeClaimName: {name}}}}}
"
    )
}

fn kubectl(arguments: &[&str], input: &str) -> String {
    let environment = super::xtask(&["env"]);
    super::assert_success(&environment);
    // kubectl has a deadline of its own where it waits; this one is for where it should not have to.
    let script = format!("{}\nexec timeout 900 kubectl \"$@\"", String::from_utf8(environment.stdout).unwrap());
    let mut child = Command::new("sh")
        .args(["-c", &script, "kubectl"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {}: {said}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}
