//! Through the API server: its exec reaches every container of the cluster, and can end nothing that it started.

use boathook_api::pod_notification::ErrorType;
use k8s_openapi::{
    api::core::v1::{Container, ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::Status,
};
use kube::{
    Api, Client, ResourceExt,
    api::{AttachParams, AttachedProcess},
};

use crate::{
    Failure, Outcome, Target,
    exec::{Verdict, refused, shown},
    instance::Instance,
    outcome::Attempt,
    place::{held::ApiStreams, streams},
    tail::Tail,
    until::{Stop, Until},
};

/// kube's own default, 1 KiB, makes many small steps of a large output.
const PIPE_SIZE: usize = 64 << 10;

const REMAINS: &str = "ProcessMayRemain: Boathook cannot end it through the API server; the node agent can";

/// The exec of an API server. Needs `get` of pods, `get` and `create` of pods/exec.
#[derive(Clone)]
pub struct ApiServer {
    client: Client,
}

impl ApiServer {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    fn pods(&self, target: &Target) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &target.namespace)
    }

    /// Looked up live, right before it is used: a pod re-created under the same name is another pod.
    pub(super) async fn find(&self, target: &Target) -> Result<Instance, Failure> {
        let found = self.pods(target).get_opt(&target.pod).await;
        let pod = found.map_err(|error| of_api_error(&error, &format!("get pod `{}`", target.pod)))?;
        instance_of(pod.as_ref(), target)
    }

    pub(super) async fn exec(&self, target: &Target, command: &[String], until: &Until) -> Attempt {
        let mut output = Tail::default();
        let attempt = match until.run(self.stream(target, command, &mut output)).await {
            Ok(Ok(Some(status))) => Verdict::of(&status).into_attempt(command),
            Ok(Ok(None)) => Attempt::unknown(format!("the stream of {} ended without a status", shown(command))),
            Ok(Err(kube::Error::Api(status))) => refused_by_api(command, &status),
            Ok(Err(error)) => Attempt::unknown(format!("the stream of {} was lost: {error}", shown(command))),
            Err(Stop::TimeOver) => remaining(Attempt::timed_out(&shown(command), until)),
            Err(Stop::Cancelled) => {
                Attempt::unknown(format!("{} was cancelled while it ran; {REMAINS}", shown(command)))
            }
        };
        Attempt { output: output.into_text(), ..attempt }
    }

    /// Begins a command whose session is to be held.
    pub(super) async fn begin(
        &self,
        target: &Target,
        command: &[String],
        until: &Until,
    ) -> Result<ApiStreams, Attempt> {
        match until.run(self.open(target, command, true)).await {
            Ok(Ok(process)) => Ok(ApiStreams::of(process)),
            Ok(Err(kube::Error::Api(status))) => Err(refused_by_api(command, &status)),
            Ok(Err(error)) => Err(Attempt::unknown(format!("the stream of {} was lost: {error}", shown(command)))),
            Err(Stop::TimeOver) => {
                Err(remaining(Attempt::timed_out(&format!("the start of {}", shown(command)), until)))
            }
            Err(Stop::Cancelled) => {
                Err(Attempt::unknown(format!("{} was cancelled when it began; {REMAINS}", shown(command))))
            }
        }
    }

    async fn open(&self, target: &Target, command: &[String], stdin: bool) -> Result<AttachedProcess, kube::Error> {
        let parameters = AttachParams {
            container: Some(target.container.clone()),
            stdin,
            max_stdout_buf_size: Some(PIPE_SIZE),
            max_stderr_buf_size: Some(PIPE_SIZE),
            ..AttachParams::default()
        };
        self.pods(target).exec(&target.pod, command, &parameters).await
    }

    /// Runs it to its end, and returns the status of that. `None`: the stream ended without one.
    async fn stream(
        &self,
        target: &Target,
        command: &[String],
        output: &mut Tail,
    ) -> Result<Option<Status>, kube::Error> {
        // Dropping it closes the connection.
        let mut process = self.open(target, command, false).await?;
        let status = process.take_status().expect("it is taken once");
        let stdout = process.stdout().expect("it was asked for");
        let stderr = process.stderr().expect("it was asked for");
        Ok(streams::read_to_the_end(stdout, stderr, status, output).await)
    }
}

fn remaining(attempt: Attempt) -> Attempt {
    let outcome = match attempt.outcome {
        Outcome::Failed(Failure { kind, message }) => {
            Outcome::Failed(Failure { kind, message: format!("{message}; {REMAINS}") })
        }
        Outcome::Succeeded | Outcome::Unknown(_) => attempt.outcome,
    };
    Attempt { outcome, process_may_remain: true, ..attempt }
}

/// The instance that runs now, in the pod that is meant.
fn instance_of(pod: Option<&Pod>, target: &Target) -> Result<Instance, Failure> {
    let Target { pod: name, pod_uid, container, .. } = target;
    let pod = pod.ok_or_else(|| Failure::new(ErrorType::PodNotFound, format!("pod `{name}` not found")))?;
    if pod.uid().as_deref() != Some(pod_uid) {
        let message = format!("pod `{name}` was replaced: the pod with UID {pod_uid} is gone");
        return Err(Failure::new(ErrorType::PodNotFound, message));
    }
    let not_running = |how: &str| {
        Failure::new(ErrorType::ContainerNotRunning, format!("container `{container}` of pod `{name}` {how}"))
    };
    let status = statuses(pod).find(|status| status.name == *container);
    let status = status.ok_or_else(|| not_running("has not started"))?;
    let running = status.state.as_ref().is_some_and(|state| state.running.is_some());
    let id = status.container_id.clone().filter(|id| running && !id.is_empty());
    Ok(Instance {
        container_id: id.ok_or_else(|| not_running("is not running"))?,
        address: pod.status.as_ref().and_then(|status| status.pod_ip.clone()).filter(|address| !address.is_empty()),
        ports: ports(pod, container),
    })
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.iter().flat_map(|status| {
        status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten())
    })
}

fn ports(pod: &Pod, container: &str) -> Vec<(String, u16)> {
    let containers =
        pod.spec.iter().flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let of_it = containers.filter(|spec: &&Container| spec.name == container);
    let ports = of_it.flat_map(|spec| spec.ports.iter().flatten());
    ports.filter_map(|port| Some((port.name.clone()?, u16::try_from(port.container_port).ok()?))).collect()
}

/// A request that failed before anything was run.
fn of_api_error(error: &kube::Error, what: &str) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            Failure::new(ErrorType::Forbidden, format!("not allowed to {what}: {}", status.message))
        }
        error => {
            Failure::new(ErrorType::HandlerFailed, format!("failed to {what}, so the action was not run: {error}"))
        }
    }
}

/// An answer instead of a stream: nothing was run.
fn refused_by_api(command: &[String], status: &kube::core::Status) -> Attempt {
    match status.code {
        403 => Attempt::failed(ErrorType::Forbidden, format!("not allowed to exec in the pod: {}", status.message)),
        404 => Attempt::failed(ErrorType::PodNotFound, status.message.clone()),
        _ => refused(command, &status.message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target() -> Target {
        let [namespace, pod, pod_uid, container] = ["ns", "db-0", "uid-1", "main"].map(str::to_owned);
        Target { namespace, pod, pod_uid, container }
    }

    fn found(uid: &str, state: &str) -> Result<Instance, Failure> {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "db-0", "uid": uid},
            "spec": {"containers": [
                {"name": "other", "ports": [{"name": "web", "containerPort": 1}]},
                {"name": "main", "ports": [{"name": "web", "containerPort": 8080}, {"containerPort": 9}]},
            ]},
            "status": {"podIP": "10.0.0.7", "containerStatuses": [{
                "name": "main", "containerID": "containerd://1", "image": "", "imageID": "", "ready": true,
                "restartCount": 0, "state": {state: {"exitCode": 1}},
            }]},
        }));
        instance_of(Some(&pod.unwrap()), &target())
    }

    #[test]
    fn a_running_container_is_found_with_its_ports_and_address() {
        let container_id = "containerd://1".to_owned();
        let ports = vec![("web".to_owned(), 8080)];
        assert_eq!(
            found("uid-1", "running"),
            Ok(Instance { container_id, address: Some("10.0.0.7".to_owned()), ports })
        );
    }

    #[test]
    fn another_pod_under_the_same_name_is_not_it() {
        assert_eq!(found("uid-2", "running").unwrap_err().kind, ErrorType::PodNotFound);
        assert_eq!(instance_of(None, &target()).unwrap_err().kind, ErrorType::PodNotFound);
    }

    #[test]
    fn a_container_that_does_not_run_is_told_apart() {
        assert_eq!(found("uid-1", "terminated").unwrap_err().kind, ErrorType::ContainerNotRunning);
        let pod = Pod {
            metadata: kube::core::ObjectMeta { uid: Some("uid-1".to_owned()), ..Default::default() },
            ..Pod::default()
        };
        assert_eq!(instance_of(Some(&pod), &target()).unwrap_err().kind, ErrorType::ContainerNotRunning);
    }

    #[test]
    fn a_timeout_says_that_the_process_may_remain_and_what_helps() {
        let remaining = remaining(Attempt::failed(ErrorType::HandlerTimeout, "it did not end"));
        assert!(remaining.process_may_remain);
        assert!(matches!(remaining.outcome, Outcome::Failed(failure) if failure.message.contains("ProcessMayRemain")));
    }
}
