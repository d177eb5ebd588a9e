//! The cluster's own programs as processes: started detached from this one, recorded by id and start time, found again.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::files;
use super::layout::Layout;

/// How often a condition that nobody announces is looked at again.
const LOOK: Duration = Duration::from_millis(100);

/// Killed processes are gone in milliseconds; only one that the kernel itself holds lasts longer.
pub(super) const END_DEADLINE: Duration = Duration::from_secs(300);

/// Where the cluster's programs find others.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A process that was started: its id alone could be somebody else's after a restart of the machine.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: u32,
    /// In clock ticks since boot, as the kernel tells it.
    started: u64,
}

impl Record {
    fn path(layout: &Layout, name: &str) -> PathBuf {
        layout.path("processes").join(name)
    }

    /// The recorded process of this name, if it is still the same one and runs.
    pub(super) fn running(layout: &Layout, name: &str) -> Option<Self> {
        let text = fs::read_to_string(Self::path(layout, name)).ok()?;
        let record: Self = serde_json::from_str(&text).ok()?;
        (start_time(record.id) == Some(record.started)).then_some(record)
    }

    pub(super) fn memory_kib(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").trim().parse().ok()
    }
}

/// When a process started; none if it is gone, or only waits to be reaped.
fn start_time(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is the name in brackets, and the name may hold spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    (fields.first() != Some(&"Z")).then(|| fields.get(19)?.parse().ok()).flatten()
}

/// Starts `command` in the cluster's cgroup, in a process group of its own, with its output in its log.
pub(super) fn start(layout: &Layout, cgroup_entry: &Path, name: &str, command: &[String]) -> Result<()> {
    let log = layout.log(name);
    files::folder(&layout.path("log"))?;
    files::folder(&layout.path("processes"))?;
    let out = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .with_context(|| format!("failed to open the log `{}`", log.display()))?;
    let errors = out.try_clone().context("failed to share a log")?;
    // The shell joins the cgroup and then becomes the program: nothing it starts can be missed.
    let child = Command::new("sh")
        .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
        .arg(cgroup_entry)
        .args(command)
        // What a person's shell sets (a proxy, say) is not for the cluster.
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", &layout.dir)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        // Ctrl-C in the terminal that ran `up` is not meant for the cluster.
        .process_group(0)
        .spawn()
        .with_context(|| format!("failed to start {name}"))?;
    let record = Record { id: child.id(), started: start_time(child.id()).unwrap_or_default() };
    files::write(&Record::path(layout, name), serde_json::to_string(&record).context("a record is plain data")?)
}

/// Kills the recorded process of this name, if it runs, and waits until it is gone.
pub(super) fn end(layout: &Layout, name: &str) -> Result<()> {
    let deadline = Instant::now() + END_DEADLINE;
    while let Some(record) = Record::running(layout, name) {
        if Instant::now() > deadline {
            bail!("{name} is still there {END_DEADLINE:?} after it was killed");
        }
        let pid = i32::try_from(record.id).ok().and_then(Pid::from_raw);
        // An error means that it ended by itself meanwhile.
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Waits until `ready` holds, and fails as soon as the process has ended or the deadline has passed, with the last
/// lines of its log.
pub(super) fn wait_ready(
    layout: &Layout,
    name: &str,
    deadline: Duration,
    mut ready: impl FnMut() -> bool,
) -> Result<()> {
    let end = Instant::now() + deadline;
    loop {
        if ready() {
            return Ok(());
        }
        let gone = Record::running(layout, name).is_none();
        if gone || Instant::now() > end {
            let what = if gone { "ended".to_owned() } else { format!("was not ready after {deadline:?}") };
            let log = layout.log(name);
            bail!("{name} {what}; the end of its log, `{}`:\n{}", log.display(), files::tail(&log, 20));
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_time_until_it_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let started = start_time(child.id());
        assert!(started.is_some());
        assert_eq!(start_time(child.id()), started);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(start_time(child.id()), None);
    }
}
