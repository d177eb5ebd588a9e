//! The effects of a decision, one after the other.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    volume_snapshot::VolumeSnapshot,
    words::{CONSISTENCY, EXECUTION_HOOK_NAMES, THAW_FINALIZER},
};
use boathook_decide::application_snapshot::Effect;
use boathook_runtime::{Classified, ErrorClass, error_class::chain};
use kube::ResourceExt;
use serde_json::json;
use snafu::ensure;

use super::{Controller, Error, LeaseLostSnafu};
use crate::writes;

/// Carries them out; whether to look again at once.
pub(super) async fn act(
    controller: &Controller,
    object: &ApplicationSnapshot,
    effects: Vec<Effect>,
) -> Result<bool, Error> {
    let client = &controller.surroundings.client;
    let namespace = object.namespace().unwrap_or_default();
    let mut object = object.clone();
    for effect in effects {
        // Asked again before each: the writes before may have taken long.
        ensure!(controller.surroundings.lease.leads(), LeaseLostSnafu);
        match effect {
            Effect::AddFinalizer => object = writes::hold(client, &object, THAW_FINALIZER, true).await?,
            Effect::RemoveFinalizer => object = writes::hold(client, &object, THAW_FINALIZER, false).await?,
            Effect::WriteStatus(status) => {
                let next = ApplicationSnapshot { status: Some(*status), ..object };
                object = writes::write_status(client, &next).await?;
            }
            Effect::CreateHook(hook) => writes::create(client, &*hook).await?,
            Effect::ThawHook(name) => {
                let patch = json!({"spec": {"thawRequested": true}});
                writes::patch::<ExecutionHook>(client, &namespace, &name, "thaw", patch).await?;
            }
            Effect::DeleteHook { name, uid } => {
                writes::delete::<ExecutionHook>(client, &namespace, &name, &uid).await?;
            }
            Effect::CreateSnapshot(snapshot) => match writes::create(client, &*snapshot).await {
                Err(error) if is_final(error.class()) => {
                    controller.refused().insert(object.uid().unwrap_or_default(), chain(&error));
                    return Ok(true);
                }
                outcome => outcome?,
            },
            Effect::DeleteSnapshot { name, uid } => {
                writes::delete::<VolumeSnapshot>(client, &namespace, &name, &uid).await?;
            }
            Effect::SetOwner(owner) => object = writes::set_owner(client, &object, *owner).await?,
            Effect::MarkSnapshot { name, hooks, consistency } => {
                let annotations = json!({CONSISTENCY: consistency.as_str(), EXECUTION_HOOK_NAMES: hooks.join(",")});
                let patch = json!({"metadata": {"annotations": annotations}});
                writes::patch::<VolumeSnapshot>(client, &namespace, &name, "mark", patch).await?;
            }
        }
    }
    Ok(false)
}

/// Nothing but a change elsewhere would help, and everything is frozen meanwhile.
fn is_final(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Forbidden | ErrorClass::Invalid | ErrorClass::NotFound => true,
        ErrorClass::Conflict | ErrorClass::AlreadyExists | ErrorClass::Transient => false,
    }
}
