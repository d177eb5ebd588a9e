//! What a decision needs to know: the object, its pod as the runtime has it, what runs here and when it expires.

use boathook_actions::place::cri::{RuntimeError, Sandbox};
use boathook_api::PodNotification;
use boathook_decide::pod_notification::{Me, Pod, Progress, SeenPod, Sessions, needs_pod};
use boathook_runtime::{Classified, ErrorClass, execution::Room};
use jiff::{SignedDuration, Timestamp};
use kube::{ResourceExt, runtime::reflector::ObjectRef};
use snafu::Snafu;

use crate::{declared::DigestError, reconcile::Desk};

#[derive(Debug, Snafu)]
pub(crate) enum ObserveError {
    #[snafu(transparent)]
    Runtime { source: RuntimeError },
    #[snafu(transparent)]
    Digest { source: DigestError },
}

impl Classified for ObserveError {
    fn class(&self) -> ErrorClass {
        // The runtime may come back, the disk may have room again.
        ErrorClass::Transient
    }
}

/// What one look found.
pub(crate) struct Seen {
    pub(crate) object: PodNotification,
    pub(crate) pod: SeenPod,
    pub(crate) run: Progress,
    pub(crate) undo: Progress,
    pub(crate) sessions: Sessions,
    pub(crate) expires: Option<Timestamp>,
    /// Held for the handlers, in case they are started.
    pub(crate) room: Option<Room>,
}

pub(crate) async fn observe(desk: &Desk, me: Me<'_>, object: PodNotification) -> Result<Seen, ObserveError> {
    let uid = object.uid().unwrap_or_default();
    let (run, undo) = desk.runs.progress(&uid);
    let sessions = desk.runs.sessions(&uid);
    let open = object.status.as_ref().is_none_or(|status| !status.state.is_terminal());
    // Whether a pod is gone for good is for the controller to say, so once it has ended here nobody asks.
    let pod = match open && needs_pod(&object, me, &run, &undo) {
        true => look_at_pod(desk, &object).await?,
        false => SeenPod::Unknown,
    };
    let room = match &pod {
        SeenPod::There(_) => desk.rooms.take(&desk.node, &ObjectRef::from_obj(&object)),
        SeenPod::Gone { .. } | SeenPod::Unknown => {
            desk.rooms.leave(&ObjectRef::from_obj(&object));
            None
        }
    };
    Ok(Seen { expires: expires(desk, &uid), object, pod, run, undo, sessions, room })
}

async fn look_at_pod(desk: &Desk, object: &PodNotification) -> Result<SeenPod, ObserveError> {
    let Some(uid) = object.status.as_ref().and_then(|status| status.pod_uid.clone()) else {
        return Ok(SeenPod::Unknown);
    };
    let Some(sandbox) = desk.runtime.sandbox(&uid).await? else { return Ok(SeenPod::Gone { node_ready: true }) };
    let Sandbox { annotations, containers, .. } = sandbox;
    let declared = desk.digests.declared(&uid, &annotations)?;
    let containers = containers.into_iter().map(|container| container.name).collect();
    Ok(SeenPod::There(Pod { uid, node: Some(desk.node.clone()), over: false, ending: false, containers, declared }))
}

/// The ledger's deadline, on the wall clock of now.
fn expires(desk: &Desk, uid: &str) -> Option<Timestamp> {
    let remaining = desk.ledger.get(uid)?.remaining(desk.ledger.boot(), desk.clock.now())?;
    Some(Timestamp::now() + SignedDuration::try_from(remaining).unwrap_or(SignedDuration::MAX))
}
