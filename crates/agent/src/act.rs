//! The effects of a decision, one at a time; the first that fails ends it, and the next look goes on from there.

use boathook_api::PodNotification;
use boathook_decide::pod_notification::{Effect, last_round};
use boathook_runtime::{
    Classified, ErrorClass,
    execution::{ApplyError, Room, apply},
};
use kube::ResourceExt;
use snafu::Snafu;

use crate::{
    ledger::{Ledger, LedgerError, Record},
    reconcile::Desk,
};

#[derive(Debug, Snafu)]
pub(crate) enum ActError {
    #[snafu(transparent)]
    Apply { source: ApplyError },
    #[snafu(display("the handler was not run: failed to store its undo"))]
    Ledger { source: LedgerError },
}

impl Classified for ActError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Apply { source } => source.class(),
            Self::Ledger { .. } => ErrorClass::Transient,
        }
    }
}

pub(crate) async fn act(
    desk: &Desk,
    object: &mut PodNotification,
    effects: Vec<Effect>,
    room: &mut Option<Room>,
) -> Result<(), ActError> {
    for effect in effects {
        let forgets_undo = effect == Effect::ForgetUndo;
        if matches!(effect, Effect::Start(_)) {
            arm(desk, object)?;
        }
        apply(&desk.client, &desk.runs, &desk.latest, object, effect, room).await?;
        if forgets_undo {
            undo_is_over(&desk.ledger, object);
        }
    }
    Ok(())
}

/// What is to be undone once more stays armed.
pub(crate) fn undo_is_over(ledger: &Ledger, object: &PodNotification) {
    if last_round(object).is_none() {
        ledger.disarm(&object.uid().unwrap_or_default());
    }
}

/// What will undo it is on disk before anything is done.
fn arm(desk: &Desk, object: &PodNotification) -> Result<(), ActError> {
    match Record::of(object, desk.ledger.boot(), desk.clock.now()) {
        Some(record) => desk.ledger.arm(record).map_err(|source| ActError::Ledger { source }),
        None => Ok(()),
    }
}
