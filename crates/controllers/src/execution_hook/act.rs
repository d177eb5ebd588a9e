//! The effects of a decision, one after the other; children that follow each other are made, or taken back, at once.

use boathook_api::{
    ExecutionHook, PodNotification,
    words::{ABANDON_UNDO, THAW_FINALIZER, UNDO_NOW},
};
use boathook_decide::execution_hook::{Effect, TakeBack};
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use serde_json::{Map, json};
use snafu::ensure;

use super::{Controller, Error, LeaseLostSnafu};
use crate::writes;

/// How many children are written at once.
const AT_ONCE: usize = 32;

pub(super) async fn act(controller: &Controller, object: &ExecutionHook, effects: Vec<Effect>) -> Result<(), Error> {
    let client = &controller.client;
    let mut object = object.clone();
    let mut effects = effects.into_iter().peekable();
    while let Some(effect) = effects.next() {
        // Asked again before each: the writes before may have taken long.
        ensure!(controller.lease.leads(), LeaseLostSnafu);
        match effect {
            Effect::AddFinalizer => object = writes::hold(client, &object, THAW_FINALIZER, true).await?,
            Effect::RemoveFinalizer => object = writes::hold(client, &object, THAW_FINALIZER, false).await?,
            Effect::WriteStatus(status) => {
                let next = ExecutionHook { status: Some(*status), ..object };
                object = writes::write_status(client, &next).await?;
            }
            of_a_child @ (Effect::CreateChild(_) | Effect::TakeBack(_)) => {
                let mut together = vec![of_a_child];
                let is_of_a_child = |effect: &Effect| matches!(effect, Effect::CreateChild(_) | Effect::TakeBack(_));
                while let Some(next) = effects.next_if(is_of_a_child) {
                    together.push(next);
                }
                let all = stream::iter(together).map(|effect| one_child(controller, &object, effect));
                all.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
            }
        }
    }
    Ok(())
}

async fn one_child(controller: &Controller, object: &ExecutionHook, effect: Effect) -> Result<(), Error> {
    match effect {
        Effect::CreateChild(child) => {
            ensure!(controller.lease.leads(), LeaseLostSnafu);
            Ok(writes::create(&controller.client, &*child).await?)
        }
        Effect::TakeBack(take_back) => {
            let namespace = object.namespace().unwrap_or_default();
            let patch = patch(&take_back);
            let (client, name) = (&controller.client, &take_back.child);
            Ok(writes::patch::<PodNotification>(client, &namespace, name, "take back", patch).await?)
        }
        Effect::AddFinalizer | Effect::RemoveFinalizer | Effect::WriteStatus(_) => Ok(()),
    }
}

fn patch(take_back: &TakeBack) -> serde_json::Value {
    let TakeBack { child: _, undo_now, abandon } = take_back;
    let mut annotations = Map::new();
    if let Some(undo_now) = undo_now {
        annotations.insert(UNDO_NOW.to_owned(), json!(undo_now));
    }
    if *abandon {
        annotations.insert(ABANDON_UNDO.to_owned(), json!("true"));
    }
    json!({"metadata": {"annotations": annotations}, "spec": {"undoRequested": true}})
}
