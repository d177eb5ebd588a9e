//! Pods: how many containers are ready, one word for how the pod is, and when it last restarted.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::column::{AGE, BuiltInColumn, NAME, made, text_or};
use super::read::{self, condition, is_there, number};
use crate::object::{self, is_true, list};
use crate::time;

pub(super) const COLUMNS: &[BuiltInColumn] = &[
    NAME,
    made("Ready", |pod, _| {
        let summary = Summary::of(pod);
        format!("{}/{}", summary.ready, summary.total).into()
    }),
    made("Status", |pod, _| status(pod, Summary::of(pod).reason).into()),
    made("Restarts", |pod, now| match Summary::of(pod).restarts {
        Restarts { count, last: Some(last) } if count != 0 => {
            format!("{count} ({} ago)", time::human_duration(now.duration_since(last))).into()
        }
        Restarts { count, .. } => count.to_string().into(),
    }),
    AGE,
    text_or("IP", "/status/podIPs/0/ip", "<none>").wide(),
    text_or("Node", "/spec/nodeName", "<none>").wide(),
    text_or("Nominated Node", "/status/nominatedNodeName", "<none>").wide(),
    made("Readiness Gates", |pod, _| readiness_gates(pod).into()).wide(),
];

/// A finished pod's row says so, for clients that hide finished ones; other objects' rows say nothing.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    if object::kind(pod) != "Pod" {
        return None;
    }
    let (reason, message) = match object::text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// What deletion makes of the word that the containers gave.
fn status(pod: &Value, reason: String) -> String {
    if !object::is_being_deleted(pod) {
        return reason;
    }
    if object::text(pod, "/status/reason") == "NodeLost" {
        return "Unknown".to_owned();
    }
    match object::text(pod, "/status/phase") {
        "Succeeded" | "Failed" => reason,
        _ => "Terminating".to_owned(),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let met = |gate: &&Value| condition(pod, object::text(gate, "/conditionType")) == Some("True");
    format!("{}/{}", gates.iter().filter(met).count(), gates.len())
}

struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts,
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += number(status, "/restartCount");
        let finished = object::text(status, "/lastState/terminated/finishedAt").parse().ok();
        self.last = self.last.max(finished);
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let mut summary = Self {
            ready: 0,
            total: list(pod, "/spec/containers").len() + sidecars(pod).count(),
            reason: read::text_or(pod, "/status/reason", object::text(pod, "/status/phase")).to_owned(),
            restarts: Restarts::default(),
        };
        let is_gated = |condition: &Value| {
            object::text(condition, "/type") == "PodScheduled"
                && object::text(condition, "/reason") == "SchedulingGated"
        };
        if list(pod, "/status/conditions").iter().any(is_gated) {
            summary.reason = "SchedulingGated".to_owned();
        }
        let (initializing, restarts_of_sidecars) = summary.look_at_init_containers(pod);
        if !initializing || condition(pod, "Initialized") == Some("True") {
            summary.restarts = restarts_of_sidecars;
            summary.look_at_containers(pod);
        }
        summary
    }

    /// Whether the pod still initializes, and the restarts that count once it does not.
    fn look_at_init_containers(&mut self, pod: &Value) -> (bool, Restarts) {
        let mut restarts_of_sidecars = Restarts::default();
        for (position, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.restarts.add(status);
            let is_sidecar = sidecars(pod).any(|name| name == object::text(status, "/name"));
            if is_sidecar {
                restarts_of_sidecars.add(status);
            }
            let waiting = object::text(status, "/state/waiting/reason");
            let is_terminated = is_there(status, "/state/terminated");
            if is_terminated && number(status, "/state/terminated/exitCode") == 0 {
                continue;
            }
            if is_sidecar && is_true(status, "/started") {
                self.ready += usize::from(is_true(status, "/ready"));
                continue;
            }
            self.reason = if is_terminated {
                format!("Init:{}", termination(status))
            } else if !matches!(waiting, "" | "PodInitializing") {
                format!("Init:{waiting}")
            } else {
                format!("Init:{position}/{}", list(pod, "/spec/initContainers").len())
            };
            return (true, restarts_of_sidecars);
        }
        (false, restarts_of_sidecars)
    }

    fn look_at_containers(&mut self, pod: &Value) {
        let (mut has_running, mut error) = (false, None);
        // The first container's word is the one that stays.
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = object::text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if is_there(status, "/state/terminated") {
                self.reason = termination(status);
                if number(status, "/state/terminated/exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if is_true(status, "/ready") && is_there(status, "/state/running") {
                has_running = true;
                self.ready += 1;
            }
        }
        // A container that is done does not make a pod done in which another one runs or has failed.
        if self.reason == "Completed" {
            if has_running && condition(pod, "Ready") == Some("True") {
                self.reason = "Running".to_owned();
            } else if let Some(error) = error {
                self.reason = error;
            } else if has_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

/// The names of the init containers that go on running.
fn sidecars(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = list(pod, "/spec/initContainers").iter();
    let sidecars = containers.filter(|container| object::text(container, "/restartPolicy") == "Always");
    sidecars.map(|container| object::text(container, "/name"))
}

fn termination(status: &Value) -> String {
    let reason = object::text(status, "/state/terminated/reason");
    match number(status, "/state/terminated/signal") {
        _ if !reason.is_empty() => reason.to_owned(),
        0 => format!("ExitCode:{}", number(status, "/state/terminated/exitCode")),
        signal => format!("Signal:{signal}"),
    }
}
