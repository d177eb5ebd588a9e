//! A pod's phase and conditions from the states of its containers. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, PodCondition, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Whether an init container runs beside the others (a native sidecar) instead of before them.
pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// An exit code, when the container has ended.
pub(super) fn exit_code(status: &ContainerStatus) -> Option<i32> {
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Now or before.
fn has_run(status: &ContainerStatus) -> bool {
    let ended_before = status.last_state.as_ref().is_some_and(|state| state.terminated.is_some());
    is_running(status) || exit_code(status).is_some() || ended_before
}

/// The statuses of a pod's containers, in the order of its spec.
#[derive(Clone, Copy)]
pub(super) struct Statuses<'a> {
    pub spec: &'a PodSpec,
    pub init: &'a [ContainerStatus],
    pub containers: &'a [ContainerStatus],
}

impl Statuses<'_> {
    fn init_with_specs(&self) -> impl Iterator<Item = (&Container, &ContainerStatus)> {
        self.spec.init_containers.iter().flatten().zip(self.init)
    }

    /// Those that keep the others from starting.
    fn incomplete_init(&self) -> Vec<&str> {
        let complete = |container: &Container, status: &ContainerStatus| {
            if is_sidecar(container) { status.started == Some(true) } else { exit_code(status) == Some(0) }
        };
        let incomplete = self.init_with_specs().filter(|(container, status)| !complete(container, status));
        incomplete.map(|(container, _)| container.name.as_str()).collect()
    }

    pub(super) fn initialized(&self) -> bool {
        // Once a container of its own has run, a pod is initialized for good.
        self.incomplete_init().is_empty() || self.containers.iter().any(has_run)
    }

    fn unready(&self) -> Vec<&str> {
        let sidecars = self.init_with_specs().filter(|(container, _)| is_sidecar(container)).map(|(_, status)| status);
        let unready = sidecars.chain(self.containers).filter(|status| !status.ready);
        unready.map(|status| status.name.as_str()).collect()
    }

    /// `over`: no container will be started again, whatever the policy says.
    pub(super) fn phase(&self, over: bool) -> &'static str {
        let policy = self.spec.restart_policy.as_deref().unwrap_or("Always");
        let policy = if over { "Never" } else { policy };
        let failed_init = |(container, status): (&Container, &ContainerStatus)| {
            !is_sidecar(container) && exit_code(status).is_some_and(|code| code != 0)
        };
        if policy == "Never" && self.init_with_specs().any(failed_init) {
            return "Failed";
        }
        if !self.initialized() {
            return "Pending";
        }
        if !self.containers.iter().all(has_run) {
            return "Pending";
        }
        let running = self.containers.iter().any(is_running);
        let succeeded = self.containers.iter().all(|status| exit_code(status) == Some(0));
        match policy {
            _ if running => "Running",
            "Always" => "Running",
            _ if succeeded => "Succeeded",
            "Never" => "Failed",
            _ => "Running",
        }
    }

    /// The conditions that a node sets, in the order in which it sets them. `has_sandbox`: its containers can start.
    pub(super) fn conditions(&self, phase: &str, has_sandbox: bool, others: &[PodCondition]) -> Vec<PodCondition> {
        let truth = |is| if is { "True" } else { "False" };
        let condition = |type_: &str, status: &str, reason: Option<&str>, message: Option<String>| PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
            message,
            ..PodCondition::default()
        };
        let initialized = if self.initialized() {
            condition("Initialized", "True", (phase == "Succeeded").then_some("PodCompleted"), None)
        } else {
            let message = format!("containers with incomplete status: [{}]", self.incomplete_init().join(" "));
            condition("Initialized", "False", Some("ContainersNotInitialized"), Some(message))
        };
        let unready = self.unready();
        let readiness = match phase {
            "Succeeded" => ("False", Some("PodCompleted"), None),
            "Failed" => ("False", Some("PodFailed"), None),
            _ if unready.is_empty() => ("True", None, None),
            _ => {
                let message = format!("containers with unready status: [{}]", unready.join(" "));
                ("False", Some("ContainersNotReady"), Some(message))
            }
        };
        let ready = match self.missing_gate(others) {
            Some(message) if readiness.0 == "True" => ("False", Some("ReadinessGatesNotReady"), Some(message)),
            _ => readiness.clone(),
        };
        vec![
            condition("PodReadyToStartContainers", truth(has_sandbox), None, None),
            initialized,
            condition("Ready", ready.0, ready.1, ready.2),
            condition("ContainersReady", readiness.0, readiness.1, readiness.2),
            condition("PodScheduled", "True", None, None),
        ]
    }

    fn missing_gate(&self, others: &[PodCondition]) -> Option<String> {
        let gates = self.spec.readiness_gates.iter().flatten().map(|gate| gate.condition_type.as_str());
        let problems = gates.filter_map(|gate| {
            match others.iter().find(|condition| condition.type_ == gate).map(|condition| condition.status.as_str()) {
                Some("True") => None,
                Some(_) => Some(format!("the status of pod readiness gate \"{gate}\" is not \"True\", but False")),
                None => Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")),
            }
        });
        Some(problems.collect::<Vec<_>>().join(", ")).filter(|problems| !problems.is_empty())
    }
}

/// Conditions with the times at which they last changed.
pub(super) fn timed(
    old: &[PodCondition],
    new: Vec<PodCondition>,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<PodCondition> {
    let timed = new.into_iter().map(|mut condition| {
        let before = old.iter().find(|old| old.type_ == condition.type_);
        let unchanged = before.filter(|before| before.status == condition.status);
        let since = unchanged.and_then(|before| before.last_transition_time.clone());
        condition.last_transition_time = since.or(Some(Time(now)));
        condition.observed_generation = generation;
        condition
    });
    timed.collect()
}

#[cfg(test)]
mod tests;
