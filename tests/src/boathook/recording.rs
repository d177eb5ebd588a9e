//! Pods whose handlers record that they ran: each appends a line to a file that outlives the container.

use std::time::Duration;

use anyhow::{Context, Result};
use boathook_api::words::NOTIFIERS_PREFIX;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    Ctx, DEADLINE,
    exec::exec,
    pods::{PodBuilder, is_ready, pod},
    poll::Look,
};

/// A declared handler has this long, unless a scenario is about that: a busy machine is slow.
const PATIENCE: i32 = 60;

/// A pod that does nothing, in whose containers commands can append to `log/lines`.
pub fn recorder(ctx: &Ctx, name: &str) -> PodBuilder {
    pod(name, ctx.images().shell).idle().scratch("log", "/log")
}

/// The same pod, with this claim in the place of `log`: several pods of one claim write one record, and a snapshot of it
/// holds what had been recorded.
pub fn recorder_on(ctx: &Ctx, claim: &str, name: &str) -> PodBuilder {
    pod(name, ctx.images().shell).idle().mount_claim(claim, "/log")
}

/// A line of its own for a freeze and for what takes it back.
pub fn freezer(pod: PodBuilder) -> PodBuilder {
    pod.notifier("main", "freeze", &record("freeze")).notifier("main", "thaw", &record("thaw"))
}

/// The same, each line with the time at which it was written, by the container's own clock.
pub fn timed_freezer(pod: PodBuilder) -> PodBuilder {
    pod.notifier("main", "freeze", &timed_record("freeze")).notifier("main", "thaw", &timed_record("thaw"))
}

/// A shell's command that records this word, and when that was by the container's own clock.
pub fn timed_record(word: &str) -> String {
    format!("read now rest < /proc/uptime; echo {word} $now >> log/lines")
}

/// When the freeze and the first thaw were, of what was recorded with their times.
pub fn freezes_at(lines: &[String]) -> Result<(Duration, Duration)> {
    let at = |word: &str| {
        let mut times = lines.iter().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok());
        times.next().map(Duration::from_secs_f64).with_context(|| format!("no `{word}` was recorded: {lines:?}"))
    };
    Ok((at("freeze ")?, at("thaw ")?))
}

/// The same pod, whose container ends when the file `log/end` is there, and is then started again.
pub fn restartable(ctx: &Ctx, name: &str) -> PodBuilder {
    ends_on_demand(recorder(ctx, name))
}

/// Makes a container that records end when the file `log/end` is there: it is then started again.
pub fn ends_on_demand(pod: PodBuilder) -> PodBuilder {
    let script = "trap 'exit 0' TERM; until [ -e log/end ]; do sleep 0.1; done; rm log/end; exit 1";
    pod.command(["sh", "-c", script])
}

/// The same pod, whose container ends when the file `log/end` is there and not before, whoever asks it to.
pub fn stubborn(ctx: &Ctx, name: &str) -> PodBuilder {
    ends_only_on_demand(recorder(ctx, name))
}

/// Makes a container that records end when the file `log/end` is there and not before, whoever asks it to.
pub fn ends_only_on_demand(pod: PodBuilder) -> PodBuilder {
    let script = "trap '' TERM; until [ -e log/end ]; do sleep 0.1; done";
    pod.command(["sh", "-c", script]).grace(600)
}

/// A shell's command that records this word.
pub fn record(word: &str) -> String {
    format!("echo {word} >> log/lines")
}

impl PodBuilder {
    /// Declares a notifier of this container: a line for a shell.
    pub fn notifier(self, container: &str, name: &str, script: &str) -> Self {
        let exec = json!({"exec": {"command": ["sh", "-c", script]}});
        self.declares(container, json!({"name": name, "handler": exec, "timeoutSeconds": PATIENCE}))
    }

    /// Declares one more notifier of this container, as it is written.
    pub fn declares(self, container: &str, notifier: Value) -> Self {
        let key = format!("{NOTIFIERS_PREFIX}{container}");
        let so_far = self.annotation_of(&key).and_then(|text| serde_json::from_str(text).ok());
        let mut declared: Vec<Value> = so_far.unwrap_or_default();
        declared.push(notifier);
        self.annotation(&key, &Value::from(declared).to_string())
    }
}

impl Ctx {
    /// Creates the pod, and waits until it is ready.
    pub async fn run_pod(&self, pod: Pod) -> Result<Pod> {
        let name = self.create(&pod).await?.name_any();
        self.ready(&name).await
    }

    pub async fn ready(&self, pod: &str) -> Result<Pod> {
        self.watch_until(DEADLINE, pod, "is ready", is_ready).await
    }

    /// Waits until the pod's containers were started again this often, and it is ready.
    pub async fn restarted(&self, pod: &str, times: i32) -> Result<Pod> {
        let restarts = |pod: &Pod| {
            let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
            statuses.map(|status| status.restart_count).sum::<i32>()
        };
        let what = format!("was restarted {times} times and is ready");
        self.watch_until(DEADLINE, pod, &what, |pod| restarts(pod) == times && is_ready(pod)).await
    }

    /// Runs a line for a shell in the pod's container `main`, and returns what it printed.
    pub async fn shell(&self, pod: &str, script: &str) -> Result<String> {
        exec(["sh", "-c", script]).in_container(self, pod, "main").await?.success()
    }

    /// Asks a container that ends on demand to end. That it does is to be waited for: it may be over before the command that
    /// asks is, and then nobody hears how that went.
    pub async fn ask_to_end(&self, pod: &str) {
        let _ = self.shell(pod, "touch log/end").await;
    }

    /// Waits until this line is among what was recorded.
    pub async fn records(&self, pod: &str, line: &str) -> Result<()> {
        self.poll_until(DEADLINE, &format!("`{line}` is recorded in pod `{pod}`"), async || {
            let lines = self.recorded(pod).await?;
            Ok(if lines.iter().any(|seen| seen == line) { Look::Done(()) } else { Look::NotYet(format!("{lines:?}")) })
        })
        .await
    }

    /// Waits until this many lines are recorded, and returns what was by then.
    pub async fn records_lines(&self, pod: &str, count: usize) -> Result<Vec<String>> {
        self.poll_until(DEADLINE, &format!("{count} lines are recorded in pod `{pod}`"), async || {
            let lines = self.recorded(pod).await?;
            Ok(if lines.len() >= count { Look::Done(lines) } else { Look::NotYet(format!("{lines:?}")) })
        })
        .await
    }

    /// What was recorded in the pod so far, in its order.
    pub async fn recorded(&self, pod: &str) -> Result<Vec<String>> {
        let lines = self.shell(pod, "cat log/lines 2>/dev/null || true").await.context("failed to read the record")?;
        Ok(lines.lines().map(str::to_owned).collect())
    }
}
