//! What surrounds a container's run: hooks and probes after its start, hooks and signals before its end.

use std::time::Duration;

use boathook_workloads::events::Weight;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Lifecycle, LifecycleHandler, Probe};
use tokio::time::Instant;

use super::pod::PodExt;
use super::probe::{self, Kind, Outcome, Thresholds};
use super::slot::{Live, Role};
use super::worker::{Happening, Update, Worker};
use crate::runtime::container::Signal;

/// Time for containers that outlive the others' grace, as a kubelet leaves.
const LAST_GRACE: Duration = Duration::from_secs(2);
/// A hook may take long; it ends with the container at the latest.
const HOOK_LIMIT: Duration = Duration::from_secs(3600);

impl Worker {
    pub(super) async fn after_start(&mut self, index: usize) {
        let slot = &self.slots[index];
        let Some(live) = slot.live.clone() else { return };
        let hook = slot.spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.clone());
        if let Some(hook) = hook
            && let Err(error) = self.run_hook(index, &live, &hook, HOOK_LIMIT).await
        {
            let name = self.slots[index].name();
            self.tell(name, Weight::Warning, "FailedPostStartHook", format!("PostStartHook failed: {error}"));
            self.tell(name, Weight::Normal, "Killing", "FailedPostStartHook");
            live.container.running.kill();
            return;
        }
        // Liveness and readiness wait for the startup probe.
        match self.slots[index].spec.startup_probe.clone() {
            Some(startup) => self.start_probe(index, Kind::Startup, startup),
            None => self.start_probes(index),
        }
    }

    async fn run_hook(
        &self,
        index: usize,
        live: &Live,
        hook: &LifecycleHandler,
        limit: Duration,
    ) -> Result<(), String> {
        if let Some(exec) = &hook.exec {
            let command = exec.command.clone().unwrap_or_default();
            let shown = command.join(" ");
            return match probe::run(&live.container, command, limit).await? {
                Some((0, _)) => Ok(()),
                Some((code, output)) => Err(format!(
                    "Exec lifecycle hook ([{shown}]) failed - error: command '{shown}' exited with {code}: {output}"
                )),
                None => Err(format!("Exec lifecycle hook ([{shown}]) did not end in time")),
            };
        }
        if let Some(get) = &hook.http_get {
            return match probe::http_get(get, &self.slots[index].spec, &self.pod_ip(), limit).await {
                Outcome::Success => Ok(()),
                Outcome::Failure(error) | Outcome::Unknown(error) => Err(error),
            };
        }
        if let Some(sleep) = &hook.sleep {
            tokio::time::sleep(limit.min(Duration::from_secs(sleep.seconds.unsigned_abs()))).await;
        }
        Ok(())
    }

    fn start_probes(&mut self, index: usize) {
        let spec = &self.slots[index].spec;
        let probes = [(Kind::Liveness, spec.liveness_probe.clone()), (Kind::Readiness, spec.readiness_probe.clone())];
        for (kind, probe) in probes.into_iter().filter_map(|(kind, probe)| Some((kind, probe?))) {
            self.start_probe(index, kind, probe);
        }
    }

    fn start_probe(&mut self, index: usize, kind: Kind, probe: Probe) {
        let Some(live) = self.slots[index].live.clone() else { return };
        let (spec, pod_ip, send) = (self.slots[index].spec.clone(), self.pod_ip(), self.send.clone());
        let (events, about) = (self.shared.events.clone(), self.pod.part(&spec.name));
        let task = tokio::spawn(async move {
            tokio::time::sleep(probe::seconds(probe.initial_delay_seconds, 0)).await;
            let mut rounds = tokio::time::interval(probe::seconds(probe.period_seconds, 10));
            let mut thresholds = Thresholds::new(&probe);
            loop {
                rounds.tick().await;
                let outcome = probe::ask(&probe, &spec, &live.container, &pod_ip).await;
                if live.container.running.exit().is_some() {
                    return;
                }
                let (well, problem) = match outcome {
                    Outcome::Success => (Some(true), None),
                    Outcome::Failure(text) => (Some(false), Some(format!("failed: {text}"))),
                    Outcome::Unknown(text) => (None, Some(format!("errored and resulted in unknown state: {text}"))),
                };
                if let Some(problem) = problem {
                    let message = format!("{} probe {problem}", kind.name());
                    events.report_on(about.clone(), Weight::Warning, "Unhealthy", message);
                }
                if let Some(well) = well.and_then(|well| thresholds.observe(well)) {
                    let id = live.container.id.clone();
                    if send.send(Happening::Probed { slot: index, id, kind, well }).is_err() || kind == Kind::Startup {
                        return;
                    }
                }
            }
        });
        self.slots[index].probes.push(task.abort_handle());
    }

    pub(super) fn probed(&mut self, index: usize, kind: Kind, well: bool) {
        let slot = &mut self.slots[index];
        match (kind, well) {
            (Kind::Readiness, well) => slot.status.ready = well,
            (Kind::Liveness, true) => {}
            (Kind::Startup, true) => {
                slot.status.started = Some(true);
                slot.status.ready = slot.spec.readiness_probe.is_none();
                self.start_probes(index);
            }
            (Kind::Liveness | Kind::Startup, false) => {
                slot.stop_probes();
                let own = match kind {
                    Kind::Startup => slot.spec.startup_probe.as_ref(),
                    Kind::Liveness | Kind::Readiness => slot.spec.liveness_probe.as_ref(),
                };
                let grace = own.and_then(|probe| probe.termination_grace_period_seconds);
                let grace = grace.map_or(self.pod.grace(), |seconds| Duration::from_secs(seconds.unsigned_abs()));
                if let Some(live) = slot.live.clone() {
                    tokio::spawn(async move { signal_and_wait(&live, grace).await });
                }
                let (name, what) = (self.slots[index].name(), kind.name().to_lowercase());
                let message = format!("Container {name} failed {what} probe, will be restarted");
                self.tell(name, Weight::Normal, "Killing", message);
            }
        }
    }

    /// Ends every container: hook, TERM, the grace period, KILL. Sidecars after the others. A shorter grace period may
    /// come meanwhile.
    pub(super) async fn stop_all(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        for sidecars in [false, true] {
            let of_turn = |index: &usize| (self.slots[*index].role == Role::Sidecar) == sidecars;
            let running: Vec<usize> =
                (0..self.slots.len()).filter(|index| self.slots[*index].is_running()).filter(of_turn).collect();
            if running.is_empty() {
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = if sidecars { left.max(LAST_GRACE.min(grace)) } else { left };
            for index in &running {
                let name = self.slots[*index].name();
                self.tell(name, Weight::Normal, "Killing", format!("Stopping container {name}"));
                self.slots[*index].stop_probes();
            }
            let mut updates = self.updates.clone();
            let stopping = join_all(running.iter().map(|index| self.stop(*index, left)));
            let hurry = async {
                loop {
                    if updates.changed().await.is_err() {
                        return std::future::pending().await;
                    }
                    let shorter = match &*updates.borrow() {
                        Update::Gone => Some(Duration::ZERO),
                        Update::Pod(pod) => Some(pod.grace()).filter(|left| *left < grace),
                    };
                    if let Some(left) = shorter {
                        return tokio::time::sleep(left).await;
                    }
                }
            };
            tokio::select! {
                _ = stopping => {}
                () = hurry => {}
            }
            self.kill(running).await;
        }
    }

    async fn stop(&self, index: usize, grace: Duration) {
        let slot = &self.slots[index];
        let Some(live) = slot.live.clone() else { return };
        let begun = Instant::now();
        if let Some(Lifecycle { pre_stop: Some(hook), .. }) = &slot.spec.lifecycle
            && !grace.is_zero()
            && let Err(error) = self.run_hook(index, &live, hook, grace).await
        {
            self.tell(slot.name(), Weight::Warning, "FailedPreStopHook", format!("PreStopHook failed: {error}"));
        }
        // After a hook that used it all, two seconds remain.
        let left = grace.saturating_sub(begun.elapsed()).max(LAST_GRACE.min(grace));
        signal_and_wait(&live, left).await;
    }

    pub(super) async fn kill_all(&mut self) {
        self.kill((0..self.slots.len()).collect()).await;
    }

    async fn kill(&mut self, which: Vec<usize>) {
        for index in which {
            if let Some(live) = self.slots[index].live.clone() {
                live.container.running.kill();
                let exit = live.container.running.wait().await;
                self.ended(index, exit);
            }
        }
    }
}

async fn signal_and_wait(live: &Live, grace: Duration) {
    let running = &live.container.running;
    if !grace.is_zero() {
        running.signal(Signal::TERM);
        if tokio::time::timeout(grace, running.wait()).await.is_ok() {
            return;
        }
    }
    running.kill();
    running.wait().await;
}
