//! What the API server is told about a pod: its status, and at its end that it may go.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, Pod, PodIP, PodStatus};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::pod::PodExt;
use super::slot::{Role, Slot};
use super::status::{Statuses, timed};
use super::worker::{Turn, Worker};

impl Worker {
    /// Writes the status when it differs from what was last written.
    pub(super) async fn report(&mut self) {
        let status = self.status();
        if self.reported.as_ref().is_some_and(|reported| *reported == status) {
            return;
        }
        let (namespace, name) = self.pod.namespaced_name();
        let pods: Api<Pod> = Api::namespaced(self.shared.client.clone(), &namespace);
        let mut fields = json!(status);
        absent_is_null(&mut fields);
        fields["conditions"].as_array_mut().into_iter().flatten().for_each(absent_is_null);
        let before = self.pod.status.as_ref().and_then(|status| status.pod_ip.as_ref());
        if before.is_some() && before != status.pod_ip.as_ref() {
            // The list is merged by address: the old one must go.
            fields["podIPs"] = json!([{"$patch": "replace"}, {"ip": status.pod_ip}]);
        }
        let patch = json!({"metadata": {"uid": self.pod.uid_text()}, "status": fields});
        match pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch)).await {
            Ok(pod) => {
                self.pod.status = pod.status;
                self.reported = Some(status);
            }
            Err(kube::Error::Api(error)) if error.code == 404 || error.code == 409 => {}
            Err(error) => tracing::warn!(pod = self.pod.described(), %error, "a pod's status was not written"),
        }
    }

    fn status(&self) -> PodStatus {
        let (init, containers): (Vec<&Slot>, Vec<&Slot>) = self.slots.iter().partition(|slot| slot.role != Role::Main);
        let of = |slots: Vec<&Slot>| slots.into_iter().map(|slot| slot.status.clone()).collect::<Vec<_>>();
        let (init, containers) = (of(init), of(containers));
        let statuses = Statuses { spec: self.pod.pod_spec(), init: &init, containers: &containers };
        let mut phase = if self.evicted.is_some() { "Failed" } else { statuses.phase(self.over) };
        let mut ended = matches!(phase, "Succeeded" | "Failed");
        if ended && self.slots.iter().any(Slot::is_running) {
            (phase, ended) = ("Running", false);
        }
        let old = self.pod.status.clone().unwrap_or_default();
        let has_sandbox = self.volumes.is_some() && self.address.is_some() && !ended;
        let generation = self.pod.metadata.generation;
        let old_conditions = old.conditions.unwrap_or_default();
        let conditions = statuses.conditions(phase, has_sandbox, &old_conditions);
        // What was written last counts: the watch may still show what was before.
        let written = self.reported.as_ref().and_then(|reported| reported.conditions.as_deref());
        let before = written.unwrap_or(&old_conditions);
        let some = |statuses: Vec<ContainerStatus>| (!statuses.is_empty()).then_some(statuses);
        let ip = Some(self.pod_ip()).filter(|ip| !ip.is_empty()).or(old.pod_ip);
        PodStatus {
            phase: Some(phase.to_owned()),
            reason: self.evicted.as_ref().map(|(reason, _)| (*reason).to_owned()),
            message: self.evicted.as_ref().map(|(_, message)| message.clone()),
            conditions: Some(timed(before, conditions, generation, Timestamp::now())),
            container_statuses: some(containers),
            init_container_statuses: some(init),
            host_ip: Some(self.shared.address.clone()),
            host_ips: Some(vec![HostIP { ip: self.shared.address.clone() }]),
            pod_ips: ip.clone().map(|ip| vec![PodIP { ip }]),
            pod_ip: ip,
            start_time: Some(self.started.clone()),
            observed_generation: generation,
            qos_class: old.qos_class,
            ..PodStatus::default()
        }
    }

    /// The last step of a deletion: nothing runs any more.
    pub(super) async fn delete(&mut self) -> Turn {
        let (namespace, name) = self.pod.namespaced_name();
        let pods: Api<Pod> = Api::namespaced(self.shared.client.clone(), &namespace);
        let preconditions = Some(Preconditions { uid: self.pod.uid(), resource_version: None });
        let now = DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) };
        match pods.delete(&name, &now).await {
            Err(kube::Error::Api(error)) if error.code == 404 || error.code == 409 => Turn::Over,
            Err(error) => {
                tracing::warn!(pod = self.pod.described(), %error, "an ended pod was not deleted");
                Turn::Again
            }
            Ok(_) => Turn::Over,
        }
    }
}

/// In a patch what is not said stays: what is gone must be said.
fn absent_is_null(fields: &mut Value) {
    for gone in ["reason", "message"] {
        // Looked up for writing, what is absent becomes null.
        let _ = &mut fields[gone];
    }
}
