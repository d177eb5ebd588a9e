//! Which containers run what: from the spec and the pod's declarations to work that cannot be wrong.

use std::time::Duration;

use boathook_api::{
    Action, Declarations,
    outcome::{Failure, Work},
    pod_notification::{ErrorType, PodNotificationSpec, Retry, Undo},
};

use super::Pod;

/// One container's part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) container: String,
    pub(super) handler: Work,
    /// As it is recorded.
    pub(super) undo: Option<Action>,
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
            let undo = spec.undo.as_ref().map(|undo| undo_of(undo, pod, &container)).transpose()?;
            Ok(Part { container, handler, undo })
        })
        .collect()
}

/// The undo as it was recorded, as work: it is tried again within its time.
pub(super) fn undo_work(recorded: &Action) -> Result<Work, Failure> {
    let action =
        recorded.validate().map_err(|wrong| Failure::new(ErrorType::Unsupported, format!("undo.action: {wrong}")))?;
    Ok(Work { action, probe: None, retry: Retry::UntilTimeout })
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
            let message = format!("container `{lacking}` does not declare `{notifier}`: nothing was run");
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
        let message = format!("the pod has no container `{unknown}` that actions can run in (it has `{known}`)");
        return Err(Failure::new(ErrorType::ContainerNotRunning, message));
    }
    let work = Work { action, probe: None, retry: Retry::Never };
    Ok(containers.iter().map(|container| (container.clone(), work.clone())).collect())
}

fn undo_of(undo: &Undo, pod: &Pod, container: &str) -> Result<Action, Failure> {
    let mut action = match (&undo.notifier, &undo.action) {
        (Some(notifier), None) => {
            let found = declarations(pod)?.of(notifier).find(|(declaring, _)| *declaring == container);
            let (_, found) = found.ok_or_else(|| {
                let message = format!(
                    "container `{container}` does not declare `{notifier}`, which was to undo this: nothing was run"
                );
                Failure::new(ErrorType::UndoNotDeclared, message)
            })?;
            found.action.clone()
        }
        (None, Some(action)) => {
            action.validate().map_err(|wrong| Failure::new(ErrorType::Unsupported, format!("undo.action.{wrong}")))?
        }
        (None, None) | (Some(_), Some(_)) => {
            return Err(Failure::new(ErrorType::Unsupported, "undo: write exactly one of notifier and action"));
        }
    };
    if let Some(seconds) = undo.timeout_seconds {
        action.timeout = Duration::from_secs(seconds.max(1).unsigned_abs().into());
    }
    Ok(Action::from(&action))
}

fn declarations(pod: &Pod) -> Result<&Declarations, Failure> {
    pod.declared.as_ref().map_err(|mistake| Failure::new(ErrorType::InvalidDeclaration, mistake.clone()))
}
