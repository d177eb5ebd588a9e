//! What surrounds a container's run: hooks and probes after its start, hooks and signals before its end.

use std::time::Duration;

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
            let name = self.slots[index].name().to_owned();
            self.shared.events.warning(
                &self.pod,
                Some(&name),
                "FailedPostStartHook",
                format!("PostStartHook failed: {error}"),
            );
            self.shared.events.normal(&self.pod, Some(&name), "Killing", "FailedPostStartHook");
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
        let (liveness, readiness) = (spec.liveness_probe.clone(), spec.readiness_probe.clone());
        if let Some(probe) = liveness {
            self.start_probe(index, Kind::Liveness, probe);
        }
        if let Some(probe) = readiness {
            self.start_probe(index, Kind::Readiness, probe);
        }
    }

    fn start_probe(&mut self, index: usize, kind: Kind, probe: Probe) {
        let Some(live) = self.slots[index].live.clone() else { return };
        let (spec, pod, pod_ip) = (self.slots[index].spec.clone(), self.pod.clone(), self.pod_ip());
        let (events, send) = (self.shared.events.clone(), self.send.clone());
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
                let well = match &outcome {
                    Outcome::Success => true,
                    Outcome::Failure(text) => {
                        let message = format!("{} probe failed: {text}", kind.name());
                        events.warning(&pod, Some(&spec.name), "Unhealthy", message);
                        false
                    }
                    Outcome::Unknown(text) => {
                        let message = format!("{} probe errored and resulted in unknown state: {text}", kind.name());
                        events.warning(&pod, Some(&spec.name), "Unhealthy", message);
                        continue;
                    }
                };
                if let Some(well) = thresholds.observe(well) {
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
                for task in slot.probes.drain(..) {
                    task.abort();
                }
                let name = slot.name().to_owned();
                let what = kind.name().to_lowercase();
                let message = format!("Container {name} failed {what} probe, will be restarted");
                self.shared.events.normal(&self.pod, Some(&name), "Killing", message);
                let own = match kind {
                    Kind::Startup => slot.spec.startup_probe.as_ref(),
                    Kind::Liveness | Kind::Readiness => slot.spec.liveness_probe.as_ref(),
                };
                let grace = own.and_then(|probe| probe.termination_grace_period_seconds);
                let grace = grace.map_or(self.pod.grace(), |seconds| Duration::from_secs(seconds.unsigned_abs()));
                if let Some(live) = slot.live.clone() {
                    tokio::spawn(async move { signal_and_wait(&live, grace).await });
                }
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
                let name = self.slots[*index].name().to_owned();
                self.shared.events.normal(&self.pod, Some(&name), "Killing", format!("Stopping container {name}"));
                for task in self.slots[*index].probes.drain(..) {
                    task.abort();
                }
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
            for index in running {
                if let Some(live) = self.slots[index].live.clone() {
                    live.container.running.kill();
                    let exit = live.container.running.wait().await;
                    self.ended(index, exit);
                }
            }
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
            let message = format!("PreStopHook failed: {error}");
            self.shared.events.warning(&self.pod, Some(slot.name()), "FailedPreStopHook", message);
        }
        // After a hook that used it all, two seconds remain.
        let left = grace.saturating_sub(begun.elapsed()).max(LAST_GRACE.min(grace));
        signal_and_wait(&live, left).await;
    }

    pub(super) async fn kill_all(&mut self) {
        for index in 0..self.slots.len() {
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
