//! The effects of a decision, one at a time; the first that fails ends it, and the next look goes on from there.

use boathook_api::PodNotification;
use boathook_decide::pod_notification::{Effect, may_start};
use boathook_runtime::execution::{Room, apply};

use jiff::Timestamp;
use snafu::ensure;

use super::{Controller, Error, LeaseLostSnafu, TooLateSnafu};

pub(super) async fn act(
    controller: &Controller,
    object: &mut PodNotification,
    effects: Vec<Effect>,
    room: &mut Option<Room>,
) -> Result<(), Error> {
    for effect in effects {
        // Asked again at the last moment: the writes before may have taken long.
        if matches!(effect, Effect::Start(_)) {
            ensure!(controller.lease.leads(), LeaseLostSnafu);
            let now = controller.deadline_now(object, Timestamp::now());
            ensure!(may_start(object, now), TooLateSnafu);
        }
        apply(&controller.client, &controller.runs, &controller.latest, object, effect, room).await?;
    }
    Ok(())
}
