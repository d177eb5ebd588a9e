//! Which containers of which pods a hook runs in. The controller pins what this finds; `boathook plan` shows it.

use boathook_api::{
    Declarations,
    execution_hook::{ExecutionHookSpec, PodContainerNames, RecordedHook},
    execution_hook_template::ExecutionHookTemplate,
    hook_action::{HookPolicy, ValidHookAction},
    selector,
    words::reason,
};
use jiff::Timestamp;
use kube::core::Selector;

/// A pod as hooks see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    pub created: Timestamp,
    /// In the phase Running.
    pub running: bool,
    /// Ready, and not being deleted.
    pub ready: bool,
    /// Those that can run actions.
    pub containers: Vec<String>,
    /// What its author declared, or what is wrong with that.
    pub declared: Result<Declarations, String>,
}

/// Containers of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub pod_name: String,
    pub pod_uid: String,
    pub containers: Vec<String>,
}

/// Why a hook cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A constant of `words::reason`.
    pub reason: &'static str,
    /// For a person: what to write.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// How a hook selects its pods.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection<'a> {
    Names(&'a [PodContainerNames]),
    Labels(Selector),
}

/// What the hook says of its pods.
pub fn selection(spec: &ExecutionHookSpec) -> Result<Selection<'_>, Refusal> {
    match (spec.pod_container_names_list.as_deref(), &spec.pod_selector) {
        (Some([]), _) => Err(Refusal::new(reason::NO_TARGET, "podContainerNamesList is empty: name at least one pod")),
        (Some(list), _) => Ok(Selection::Names(list)),
        (None, Some(labels)) => match selector::parse(labels) {
            Ok(selector) => Ok(Selection::Labels(selector)),
            Err(wrong) => Err(Refusal::new(reason::INVALID, format!("podSelector.{wrong}"))),
        },
        (None, None) if spec.container_selector.is_some() => Err(Refusal::new(
            reason::NO_TARGET,
            "containerSelector selects no pods: also write podSelector or podContainerNamesList",
        )),
        (None, None) => {
            Err(Refusal::new(reason::NO_TARGET, "the hook selects no pods: write podContainerNamesList or podSelector"))
        }
    }
}

/// What the hook runs: its own actions, or a copy of its template's.
pub fn recorded(spec: &ExecutionHookSpec, template: Option<&ExecutionHookTemplate>) -> Result<RecordedHook, Refusal> {
    let recorded = match (&spec.execution_hook_template_name, &spec.pre_action) {
        (Some(name), None) => {
            let template = template.ok_or_else(|| {
                let message = format!(
                    "ExecutionHookTemplate `{name}` not found in this namespace: create it, or fix \
                     executionHookTemplateName"
                );
                Refusal::new(reason::TEMPLATE_NOT_FOUND, message)
            })?;
            let template = &template.spec;
            RecordedHook {
                policy: template.policy,
                pre_action: template.pre_action.clone(),
                post_action: template.post_action.clone(),
                expiration_seconds: template.expiration_seconds,
            }
        }
        (None, Some(pre_action)) => RecordedHook {
            policy: spec.policy.unwrap_or_default(),
            pre_action: pre_action.clone(),
            post_action: spec.post_action.clone(),
            expiration_seconds: spec.expiration_seconds,
        },
        (None, None) | (Some(_), Some(_)) => {
            let message = "write exactly one of executionHookTemplateName and preAction";
            return Err(Refusal::new(reason::INVALID, message));
        }
    };
    let invalid = |field: &str, wrong: String| Refusal::new(reason::INVALID, format!("{field}: {wrong}"));
    recorded.pre_action.validate().map_err(|wrong| invalid("preAction", wrong))?;
    if let Some(post_action) = &recorded.post_action {
        post_action.validate().map_err(|wrong| invalid("postAction", wrong))?;
        if post_action.holds() {
            return Err(invalid(
                "postAction",
                "exec.hold: only a preAction can hold its session: remove hold".to_owned(),
            ));
        }
    }
    Ok(recorded)
}

/// The containers that it runs in, pod by pod, of the pods that its selection found.
pub fn targets(spec: &ExecutionHookSpec, hook: &RecordedHook, pods: &[Pod]) -> Result<Vec<Target>, Refusal> {
    let mut targets = match selection(spec)? {
        Selection::Names(list) => named(list, pods)?,
        Selection::Labels(_) => selected(spec, hook, pods)?,
    };
    if hook.policy == HookPolicy::ExecuteOnce {
        let of = |target: &Target| pods.iter().find(|pod| pod.uid == target.pod_uid);
        let ready = targets.iter().filter_map(of).filter(|pod| pod.ready);
        let oldest = ready.min_by_key(|pod| (pod.created, &pod.name)).map(|pod| pod.uid.clone());
        let oldest = oldest.ok_or_else(|| {
            Refusal::new(
                reason::POD_NOT_RUNNING,
                "no selected pod is Ready: wait until a pod is Ready, then create the hook again",
            )
        })?;
        targets.retain(|target| target.pod_uid == oldest);
    }
    // ExecuteOnce does not care for the others.
    for target in &targets {
        let running = pods.iter().any(|pod| pod.uid == target.pod_uid && pod.running);
        if !running {
            let message = format!(
                "the hook selects pod `{}`, which is not Running: wait until it runs, then create the hook again",
                target.pod_name
            );
            return Err(Refusal::new(reason::POD_NOT_RUNNING, message));
        }
    }
    Ok(targets)
}

fn named(list: &[PodContainerNames], pods: &[Pod]) -> Result<Vec<Target>, Refusal> {
    let mut targets: Vec<Target> = Vec::new();
    for PodContainerNames { pod_name, container_names, container_name: _ } in list {
        let pod = pods.iter().find(|pod| pod.name == *pod_name).ok_or_else(|| {
            Refusal::new(
                reason::NO_TARGET,
                format!("pod `{pod_name}` not found in this namespace: fix podContainerNamesList"),
            )
        })?;
        if container_names.is_empty() {
            let message = format!(
                "containerNames of pod `{pod_name}` is empty: name at least one container (the pod has `{}`)",
                pod.containers.join("`, `")
            );
            return Err(Refusal::new(reason::NO_TARGET, message));
        }
        for name in container_names {
            let name = known(pod, name)?;
            match targets.iter_mut().find(|target| target.pod_uid == pod.uid) {
                Some(target) if target.containers.contains(&name) => {}
                Some(target) => target.containers.push(name),
                None => targets.push(of(pod, vec![name])),
            }
        }
    }
    Ok(targets)
}

fn selected(spec: &ExecutionHookSpec, hook: &RecordedHook, pods: &[Pod]) -> Result<Vec<Target>, Refusal> {
    if pods.is_empty() {
        return Err(Refusal::new(
            reason::NO_TARGET,
            "podSelector matches no pod in this namespace: fix the selector or the labels of the pods",
        ));
    }
    let containers = |pod: &Pod| match &spec.container_selector {
        Some(selector) => Ok(vec![known(pod, &selector.container_name)?]),
        None => all_that_can(pod, hook),
    };
    pods.iter().map(|pod| Ok(of(pod, containers(pod)?))).collect()
}

/// Every container; with a notifier, those that declare it.
fn all_that_can(pod: &Pod, hook: &RecordedHook) -> Result<Vec<String>, Refusal> {
    let Ok(ValidHookAction::Notifier(notifier)) = hook.pre_action.validate() else { return Ok(pod.containers.clone()) };
    let declared = pod.declared.as_ref();
    let declared = declared.map_err(|mistake| {
        Refusal::new(reason::INVALID, format!("pod `{}` has an invalid declaration of notifiers: {mistake}", pod.name))
    })?;
    let found: Vec<_> = declared.of(&notifier).map(|(container, _)| container.to_owned()).collect();
    match found.is_empty() {
        false => Ok(found),
        true => {
            let message = format!(
                "no container of pod `{}` declares notifier `{notifier}`: declare it in the pod's template, or fix the \
                 name",
                pod.name
            );
            Err(Refusal::new(reason::NO_TARGET, message))
        }
    }
}

fn known(pod: &Pod, container: &str) -> Result<String, Refusal> {
    match pod.containers.iter().any(|name| name == container) {
        true => Ok(container.to_owned()),
        false => {
            let known = pod.containers.join("`, `");
            let message = format!("pod `{}` has no container `{container}`: name one of `{known}`", pod.name);
            Err(Refusal::new(reason::NO_TARGET, message))
        }
    }
}

fn of(pod: &Pod, containers: Vec<String>) -> Target {
    Target { pod_name: pod.name.clone(), pod_uid: pod.uid.clone(), containers }
}
