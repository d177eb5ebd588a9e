//! The life of the real cluster, as a person drives it with `cargo xtask cluster`: it comes up, survives the loss of
//! any one part, and leaves nothing behind, whether it came up whole or not.

// All of it is a test: an unwrap that fails is the test's failure.
#![allow(clippy::unwrap_used)]

mod machine;
mod probe;

use std::path::Path;
use std::process::{Command, Output};

use machine::Traces;

/// The cluster's folder while this test runs: the default one could be a person's.
const DIR: &str = "/var/lib/boathook-cluster-test";

/// One test, because there is one machine: the parts follow each other.
#[test]
fn a_cluster_survives_the_loss_of_any_part_and_leaves_nothing_behind() {
    let dir = Path::new(DIR);
    // What a killed run has left is not this one's.
    assert_success(&xtask(&["down"]));
    let settings = machine::settings();
    let _end = Down;

    a_half_failed_up_says_what_failed_and_where();
    assert_success(&xtask(&["down"]));
    machine::assert_nothing_left(dir, None);

    assert_success(&xtask(&["up"]));
    let components = running();
    assert_eq!(components.len(), 13, "{components:?}");
    probe::a_pod_writes_a_claim_that_is_snapshotted("whole");
    for (name, _) in components {
        // Looked up anew: a part takes along those that depend on it.
        let id = running().into_iter().find_map(|(running, id)| (running == name).then_some(id));
        kill(&id.unwrap_or_else(|| panic!("{name} does not run")));
        assert!(!running().iter().any(|(running, _)| *running == name), "{name} still runs");
        assert_success(&xtask(&["up"]));
        probe::a_pod_writes_a_claim_that_is_snapshotted(&name);
    }
    // It goes down with a pod running on a claim.
    probe::make("last");
    let traces = Traces::of(dir);
    assert_success(&xtask(&["down"]));
    machine::assert_nothing_left(dir, Some(&traces));
    assert_eq!(machine::settings(), settings, "settings of the machine are left changed");
    assert_success(&xtask(&["down"]));
}

/// A folder where etcd's data should be is a file: etcd ends, after the door, the network and the cgroups were made.
fn a_half_failed_up_says_what_failed_and_where() {
    std::fs::create_dir_all(DIR).unwrap();
    std::fs::write(Path::new(DIR).join("letters"), "not a cluster's").unwrap();
    for arguments in [["up"], ["down"]] {
        let output = xtask(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("nothing was touched"), "{said}");
    }
    std::fs::remove_file(Path::new(DIR).join("letters")).unwrap();
    std::fs::write(Path::new(DIR).join("boathook-cluster"), "").unwrap();
    std::fs::write(Path::new(DIR).join("etcd"), "in the way").unwrap();
    let output = xtask(&["up"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("error: etcd ended; the end of its log, `/var/lib/boathook-cluster-test/log/etcd.log`:"),
        "{said}"
    );
    assert!(said.contains("not a directory"), "the log's last lines are missing: {said}");
    assert!(said.contains("`cargo xtask cluster down` takes away what was started"), "{said}");
}

/// Takes the cluster down when the test fails, too.
struct Down;

impl Drop for Down {
    fn drop(&mut self) {
        let _ = xtask(&["down"]);
    }
}

fn xtask(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("cluster").args(arguments).env("BOATHOOK_CLUSTER_DIR", DIR).output().unwrap()
}

fn assert_success(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The components that run and their process ids, as `status` tells them.
fn running() -> Vec<(String, String)> {
    let output = xtask(&["status"]);
    let table = String::from_utf8(output.stdout).unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("COMPONENT")).skip(1);
    let fields = rows.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    fields.filter(|row| row[1].parse::<u32>().is_ok()).map(|row| (row[0].clone(), row[1].clone())).collect()
}

/// Kills a process of the cluster and waits until the kernel has ended it.
fn kill(id: &str) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let pid = Pid::from_raw(id.parse().unwrap()).unwrap();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    pidfd_send_signal(&process, Signal::KILL).unwrap();
    let deadline = rustix::time::Timespec { tv_sec: 600, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&deadline)).unwrap();
    assert_eq!(ended, 1, "process {id} is there ten minutes after it was killed");
}
