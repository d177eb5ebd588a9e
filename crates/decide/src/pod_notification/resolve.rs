//! Which containers run what: from the spec and the pod's declarations to work that cannot be wrong.

use std::time::Duration;

use boathook_api::{
    Action, Declarations,
    action::{DEFAULT_TIMEOUT_SECONDS, ValidAction},
    outcome::{Failure, UndoWork, Work},
    pod_notification::{ErrorType, PodNotificationSpec, Retry, Undo, UndoStatus},
};

use super::Pod;

/// One container's part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) container: String,
    pub(super) handler: Work,
    /// As it is recorded.
    pub(super) undo: Option<UndoStatus>,
}

/// Every container's part; none means that no container declares the notifier. `pinned` are the containers that were
/// chosen when the object was accepted, if it was.
pub(super) fn parts(spec: &PodNotificationSpec, pod: &Pod, pinned: Option<&[String]>) -> Result<Vec<Part>, Failure> {
    let handlers = match (&spec.notifier, &spec.action) {
        (Some(notifier), None) => declared(pod, notifier, spec.containers.as_deref())?,
        (None, Some(action)) => inline(spec, pod, action, pinned)?,
        (None, None) | (Some(_), Some(_)) => {
            return Err(Failure::new(ErrorType::Unsupported, "write exactly one of notifier and action"));
        }
    };
    let chosen = |container: &str| pinned.is_none_or(|pinned| pinned.iter().any(|name| name == container));
    let handlers = handlers.into_iter().filter(|(container, _)| chosen(container));
    handlers
        .map(|(container, handler)| {
            let handler = Work { retry: spec.retry, ..handler };
            let undo = spec.undo.as_ref().map(|undo| recorded(undo, spec.holds(), pod, &container)).transpose()?;
            Ok(Part { container, handler, undo })
        })
        .collect()
}

/// The undo as it was recorded, as work: it is tried again within its time.
pub fn undo_work(action: Option<&Action>, release_seconds: Option<i32>) -> Result<UndoWork, Failure> {
    let wrong = |wrong| Failure::new(ErrorType::Unsupported, format!("undo.action: {wrong}"));
    let action = action.map(Action::validate).transpose().map_err(wrong)?;
    let action = action.map(|action| Work { action, probe: None, retry: Retry::UntilTimeout });
    Ok(UndoWork { release: release_seconds.map(seconds), action })
}

/// In the containers that declare it; if some were named, in those, and every one must.
fn declared(pod: &Pod, notifier: &str, named: Option<&[String]>) -> Result<Vec<(String, Work)>, Failure> {
    let of_container = |(container, notifier): (&str, &boathook_api::Notifier)| {
        let work = Work { action: notifier.action.clone(), probe: notifier.probe.clone(), retry: Retry::Never };
        (container.to_owned(), work)
    };
    let mut found: Vec<_> = declarations(pod)?.of(notifier).map(of_container).collect();
    if let Some(named) = named {
        let lacking = named.iter().find(|name| !found.iter().any(|(container, _)| container == *name));
        if let Some(lacking) = lacking {
            let message = format!(
                "container `{lacking}` does not declare notifier `{notifier}`, so no handler was run: declare it in \
                 the pod's template, or fix containers"
            );
            return Err(Failure::new(ErrorType::NotifierNotDeclared, message));
        }
        found.retain(|(container, _)| named.contains(container));
    }
    Ok(found)
}

fn inline(
    spec: &PodNotificationSpec,
    pod: &Pod,
    action: &Action,
    pinned: Option<&[String]>,
) -> Result<Vec<(String, Work)>, Failure> {
    let action = action.validate().map_err(|wrong| Failure::new(ErrorType::Unsupported, format!("action.{wrong}")))?;
    let containers = pinned.or(spec.containers.as_deref()).unwrap_or(&pod.containers);
    let unknown = containers.iter().find(|name| pinned.is_none() && !pod.containers.contains(name));
    if let Some(unknown) = unknown {
        let known = pod.containers.join("`, `");
        let message = format!("the pod has no container `{unknown}` that can run actions: name one of `{known}`");
        return Err(Failure::new(ErrorType::ContainerNotRunning, message));
    }
    if action.holds() && spec.undo.is_none() {
        let message = "action.exec.hold needs an undo, which releases the session: write `undo: {}` or `undo: \
                       {afterSeconds: N}`";
        return Err(Failure::new(ErrorType::Unsupported, message));
    }
    let work = Work { action, probe: None, retry: Retry::Never };
    Ok(containers.iter().map(|container| (container.clone(), work.clone())).collect())
}

/// The undo of one container, as it is recorded before its handler runs. If the handler's session is held, it is
/// released first, and that may be all.
fn recorded(undo: &Undo, holds: bool, pod: &Pod, container: &str) -> Result<UndoStatus, Failure> {
    let mut action = match (&undo.notifier, &undo.action) {
        (None, None) if holds => None,
        (Some(_), None) | (None, Some(_)) | (None, None) | (Some(_), Some(_)) => Some(action_of(undo, pod, container)?),
    };
    if let (Some(action), Some(limit)) = (&mut action, undo.timeout_seconds) {
        action.timeout = seconds(limit);
    }
    let release_seconds = holds.then(|| undo.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS));
    Ok(UndoStatus { action: action.as_ref().map(Action::from), release_seconds, ..UndoStatus::default() })
}

fn action_of(undo: &Undo, pod: &Pod, container: &str) -> Result<ValidAction, Failure> {
    let unsupported = |message: String| Failure::new(ErrorType::Unsupported, message);
    match (&undo.notifier, &undo.action) {
        (Some(notifier), None) => {
            let found = declarations(pod)?.of(notifier).find(|(declaring, _)| *declaring == container);
            let (_, found) = found.ok_or_else(|| {
                let message = format!(
                    "container `{container}` does not declare notifier `{notifier}` of the undo, so the handler was \
                     not run: declare it in the pod's template, or fix undo.notifier"
                );
                Failure::new(ErrorType::UndoNotDeclared, message)
            })?;
            Ok(found.action.clone())
        }
        (None, Some(action)) if action.holds() => {
            Err(unsupported("undo.action.exec.hold: an undo cannot hold its session: remove hold".to_owned()))
        }
        (None, Some(action)) => action.validate().map_err(|wrong| unsupported(format!("undo.action.{wrong}"))),
        (None, None) | (Some(_), Some(_)) => Err(unsupported(
            "undo: write exactly one of notifier and action (both may be omitted only with action.exec.hold)"
                .to_owned(),
        )),
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(seconds.max(1).unsigned_abs().into())
}

fn declarations(pod: &Pod) -> Result<&Declarations, Failure> {
    pod.declared.as_ref().map_err(Clone::clone)
}
