//! The effects of a decision, one at a time; the first that fails ends it, and the next look goes on from there.

use boathook_api::PodNotification;
use boathook_decide::pod_notification::Effect;
use boathook_runtime::execution::{Room, apply};

use super::{Controller, Error, LeaseLostSnafu};

pub(super) async fn act(
    controller: &Controller,
    object: &mut PodNotification,
    effects: Vec<Effect>,
    room: &mut Option<Room>,
) -> Result<(), Error> {
    for effect in effects {
        // Asked again at the last moment: the writes before may have taken long.
        if matches!(effect, Effect::Start(_)) && !controller.lease.leads() {
            return LeaseLostSnafu.fail();
        }
        apply(&controller.client, &controller.runs, &controller.latest, object, effect, room).await?;
    }
    Ok(())
}
