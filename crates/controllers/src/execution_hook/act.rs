//! The effects of a decision, one after the other; children that follow each other are made, or taken back, at once.

use std::pin::pin;

use boathook_api::{
    ExecutionHook, PodNotification,
    words::{ABANDON_UNDO, ABANDONED_BY, THAW_FINALIZER, UNDO_NOW},
};
use boathook_decide::execution_hook::{Effect, TakeBack};
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use serde_json::{Map, json};
use snafu::ensure;

use super::{Controller, Error, LeaseLostSnafu};
use crate::writes::{self, Made};

/// How many children are written at once.
const AT_ONCE: usize = 32;

/// Carries them out; whether to look again at once.
pub(super) async fn act(controller: &Controller, object: &ExecutionHook, effects: Vec<Effect>) -> Result<bool, Error> {
    let client = &controller.client;
    let mut object = object.clone();
    let mut effects = effects.into_iter().peekable();
    let mut look_again = false;
    while let Some(effect) = effects.next() {
        // Asked again before each: the writes before may have taken long.
        ensure!(controller.lease.leads(), LeaseLostSnafu);
        match effect {
            Effect::AddFinalizer => object = writes::hold(client, &object, THAW_FINALIZER, true).await?,
            Effect::RemoveFinalizer => object = writes::hold(client, &object, THAW_FINALIZER, false).await?,
            Effect::WriteStatus(status) => {
                let next = ExecutionHook { status: Some(*status), ..object };
                object = writes::write_status(client, &next).await?;
                controller.refusals.forget(&object);
            }
            of_a_child @ (Effect::CreateChild(_) | Effect::TakeBack(_)) => {
                let mut together = vec![of_a_child];
                let is_of_a_child = |effect: &Effect| matches!(effect, Effect::CreateChild(_) | Effect::TakeBack(_));
                while let Some(next) = effects.next_if(is_of_a_child) {
                    together.push(next);
                }
                let all = stream::iter(together).map(|effect| one_child(controller, &object, effect));
                let mut all = pin!(all.buffer_unordered(AT_ONCE));
                while let Some(child) = all.try_next().await? {
                    match child {
                        Child::Done => {}
                        Child::WasThere => look_again = true,
                        // The others are not made either.
                        Child::Refused => return Ok(true),
                    }
                }
            }
        }
    }
    Ok(look_again)
}

/// What became of an effect on a child.
enum Child {
    Done,
    /// One of its name is there already. Nobody tells of one that belongs to somebody else: it is looked at.
    WasThere,
    /// The API server refused to create it.
    Refused,
}

async fn one_child(controller: &Controller, object: &ExecutionHook, effect: Effect) -> Result<Child, Error> {
    match effect {
        Effect::CreateChild(child) => {
            ensure!(controller.lease.leads(), LeaseLostSnafu);
            let made = writes::create(&controller.client, &*child).await;
            let was_there = matches!(made, Ok(Made::WasThere));
            match controller.refusals.note(object, made)? {
                true => Ok(Child::Refused),
                false if was_there => Ok(Child::WasThere),
                false => Ok(Child::Done),
            }
        }
        Effect::TakeBack(take_back) => {
            let namespace = object.namespace().unwrap_or_default();
            let patch = patch(&take_back);
            let (client, name) = (&controller.client, &take_back.child);
            writes::patch::<PodNotification>(client, &namespace, name, "request the undo of", patch).await?;
            Ok(Child::Done)
        }
        Effect::AddFinalizer | Effect::RemoveFinalizer | Effect::WriteStatus(_) => Ok(Child::Done),
    }
}

fn patch(take_back: &TakeBack) -> serde_json::Value {
    let TakeBack { child: _, undo_now, abandon, abandoned_by } = take_back;
    let mut annotations = Map::new();
    if let Some(undo_now) = undo_now {
        annotations.insert(UNDO_NOW.to_owned(), json!(undo_now));
    }
    if *abandon {
        annotations.insert(ABANDON_UNDO.to_owned(), json!("true"));
        annotations.insert(ABANDONED_BY.to_owned(), json!(abandoned_by));
    }
    json!({"metadata": {"annotations": annotations}, "spec": {"undoRequested": true}})
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, atomic::Ordering},
        time::Duration,
    };

    use boathook_api::{
        ApplicationSnapshot,
        words::{condition, reason},
    };
    use boathook_decide::{application_snapshot::hook_name, execution_hook::child_name};
    use boathook_runtime::{Clock, Deadlines, Reconcile, lenient::Lenient};
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
        runtime::{
            reflector::{self, ObjectRef},
            watcher,
        },
    };
    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        execution_hook::Begun,
        refusals::Refusals,
        test_world::{World, clock, world, world_losing_lease},
    };

    /// A hook `hook` that is accepted, with its only pod `db-0`.
    async fn accepted(client: &kube::Client) -> Api<ExecutionHook> {
        let api: Api<ExecutionHook> = Api::namespaced(client.clone(), "default");
        let exec = json!({"exec": {"command": ["freeze"]}});
        let spec = json!({"preAction": exec, "postAction": exec, "podSelector": {}});
        let hook = ExecutionHook::new("hook", serde_json::from_value(spec).unwrap());
        api.create(&PostParams::default(), &hook).await.unwrap();
        let container = json!({"podName": "db-0", "podUID": "u", "containerName": "main"});
        let recorded = json!({"policy": "ExecuteAll", "preAction": exec, "postAction": exec});
        let status = json!({"startTime": "2026-11-01T00:00:00.000000Z", "acceptedBy": "me", "recorded": recorded,
            "containerExecutionHookStatuses": [container]});
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status("hook", &PatchParams::default(), &patch).await.unwrap();
        api
    }

    fn controller(World { client, lease, reporter }: World) -> Controller {
        Controller {
            client,
            identity: "me".to_owned(),
            lease,
            children: reflector::store().0,
            snapshots: reflector::store().0,
            reporter,
            parents: mpsc::unbounded_channel().0,
            refusals: Refusals::default(),
            deadlines: Deadlines::new(Clock::of_the_machine()),
            begun: Begun::default(),
        }
    }

    #[tokio::test]
    async fn hook_expires_though_the_wall_clock_was_stepped_back() {
        let world = world("nothing-is-refused").await;
        let api = accepted(&world.client).await;
        let expiration = Patch::Merge(json!({"status": {"recorded": {"expirationSeconds": 60}}}));
        api.patch_status("hook", &PatchParams::default(), &expiration).await.unwrap();
        let children: Api<PodNotification> = Api::namespaced(world.client.clone(), "default");
        let (clock, seconds) = clock();
        let controller = Controller { deadlines: Deadlines::new(clock), ..controller(world) };
        controller.reconcile(Arc::new(api.get("hook").await.unwrap())).await.unwrap();
        let child = children.list(&Default::default()).await.unwrap().items.remove(0).name_any();
        let claim = json!({"holder": "me", "time": MicroTime(Timestamp::now() + SignedDuration::from_hours(1))});
        let claimed = Patch::Merge(json!({"status": {"claim": claim}}));
        children.patch_status(&child, &PatchParams::default(), &claimed).await.unwrap();
        let reason = async || {
            controller.reconcile(Arc::new(api.get("hook").await.unwrap())).await.unwrap();
            let conditions = api.get("hook").await.unwrap().status.unwrap().conditions;
            conditions.into_iter().find(|one| one.type_ == condition::FROZEN).unwrap().reason
        };
        assert_eq!(reason().await, reason::FREEZING);
        seconds.store(61, Ordering::SeqCst);
        assert_eq!(reason().await, reason::EXPIRED);
    }

    /// A cleanup script that may abandon undos does this while another pod is not frozen yet.
    #[tokio::test]
    async fn child_removed_by_hand_while_others_freeze_leaves_the_thaw_unconfirmed() {
        let world = world("nothing-is-refused").await;
        let api = accepted(&world.client).await;
        let container = |number: usize| json!({"podName": format!("db-{number}"), "podUID": format!("u{number}"), "containerName": "main"});
        let two = json!({"status": {"containerExecutionHookStatuses": [container(0), container(1)]}});
        api.patch_status("hook", &PatchParams::default(), &Patch::Merge(two)).await.unwrap();
        let children: Api<PodNotification> = Api::namespaced(world.client.clone(), "default");
        let controller = controller(world);
        let look = async || controller.reconcile(Arc::new(api.get("hook").await.unwrap())).await.unwrap();
        look().await;
        let name = child_name(&api.get("hook").await.unwrap(), "u0");
        let claim = json!({"holder": "me", "time": MicroTime(Timestamp::now())});
        let claimed = Patch::Merge(json!({"status": {"claim": claim}}));
        children.patch_status(&name, &PatchParams::default(), &claimed).await.unwrap();
        look().await;
        let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        children.patch(&name, &PatchParams::default(), &let_go).await.unwrap();
        children.delete(&name, &Default::default()).await.unwrap();
        let thaw = Patch::Merge(json!({"spec": {"thawRequested": true}}));
        api.patch("hook", &PatchParams::default(), &thaw).await.unwrap();
        look().await;
        let other = child_name(&api.get("hook").await.unwrap(), "u1");
        let undone = json!({"type": "Undone", "status": "True", "reason": "NothingToUndo", "message": "",
            "lastTransitionTime": "2026-11-01T00:00:00Z"});
        let revoked = Patch::Merge(json!({"status": {"state": "Failed", "conditions": [undone]}}));
        children.patch_status(&other, &PatchParams::default(), &revoked).await.unwrap();
        look().await;
        let status = api.get("hook").await.unwrap().status.unwrap();
        let thawed = status.conditions.iter().find(|one| one.type_ == condition::THAWED).unwrap();
        assert_eq!((thawed.status.as_str(), thawed.reason.as_str()), ("Unknown", reason::THAW_UNCONFIRMED));
        assert!(thawed.message.contains("`db-0`"), "{}", thawed.message);
    }

    #[tokio::test]
    async fn a_child_that_may_not_be_created_ends_the_freeze_in_words_that_a_person_reads() {
        let world = world("podnotifications").await;
        let api = accepted(&world.client).await;
        let controller = controller(world);
        let again = controller.reconcile(Arc::new(api.get("hook").await.unwrap())).await.unwrap();
        assert_eq!(again, Some(Duration::ZERO), "it is looked at again at once");
        controller.reconcile(Arc::new(api.get("hook").await.unwrap())).await.unwrap();
        let status = api.get("hook").await.unwrap().status.unwrap();
        let frozen = status.conditions.iter().find(|one| one.type_ == condition::FROZEN).unwrap();
        assert_eq!((frozen.status.as_str(), frozen.reason.as_str()), ("False", reason::PRE_ACTION_FAILED));
        assert!(frozen.message.contains("exceeded quota"), "{}", frozen.message);
        assert_eq!((status.pre_action_succeed, status.post_action_succeed), (Some(false), Some(true)));
    }

    #[tokio::test]
    async fn a_child_whose_name_somebody_took_in_the_meantime_is_looked_at_at_once_and_fails_the_hook() {
        let world = world("nothing-is-refused").await;
        let api = accepted(&world.client).await;
        let children: Api<PodNotification> = Api::namespaced(world.client.clone(), "default");
        let controller = controller(world);
        let object = api.get("hook").await.unwrap();
        let spec = json!({"podName": "db-0", "podUID": "u", "notifier": "harmless"});
        let mut theirs = PodNotification::new(&child_name(&object, "u"), serde_json::from_value(spec).unwrap());
        theirs.metadata.namespace = Some("default".to_owned());
        children.create(&PostParams::default(), &theirs).await.unwrap();
        let effects = vec![Effect::CreateChild(Box::new(theirs.clone()))];
        assert!(act(&controller, &object, effects).await.unwrap(), "no watch tells of somebody else's");
        controller.reconcile(Arc::new(object)).await.unwrap();
        let status = api.get("hook").await.unwrap().status.unwrap();
        let frozen = status.conditions.iter().find(|one| one.type_ == condition::FROZEN).unwrap();
        assert_eq!((frozen.status.as_str(), frozen.reason.as_str()), ("False", reason::PRE_ACTION_FAILED));
        let said = format!(
            "PodNotification `{}` already exists, and Boathook did not create it for this hook",
            theirs.name_any()
        );
        assert!(frozen.message.contains(&said), "{}", frozen.message);
    }

    #[tokio::test]
    async fn a_child_comes_back_from_the_api_server_as_it_was_made() {
        let world = world("nothing-is-refused").await;
        let api = accepted(&world.client).await;
        let controller = controller(world);
        for _ in 0..2 {
            controller.reconcile(Arc::new(api.get("hook").await.unwrap())).await.unwrap();
        }
        let status = api.get("hook").await.unwrap().status.unwrap();
        let frozen = status.conditions.iter().find(|one| one.type_ == condition::FROZEN).unwrap();
        assert_eq!(frozen.reason, reason::FREEZING, "it is taken for the hook's own: {}", frozen.message);
    }

    #[tokio::test]
    async fn a_snapshot_of_a_long_name_is_told_that_its_hook_is_gone() {
        let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": []});
        let mut snapshot = ApplicationSnapshot::new(&"n".repeat(250), serde_json::from_value(spec).unwrap());
        snapshot.metadata.namespace = Some("default".to_owned());
        let name = hook_name(&snapshot, 0);
        snapshot.status = serde_json::from_value(json!({"executionHookNames": [name]})).unwrap();
        let (tell, mut told) = mpsc::unbounded_channel();
        let (snapshots, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(snapshot.clone()))));
        let controller = Controller { snapshots, parents: tell, ..controller(world("nothing-is-refused").await) };
        controller.gone(&ObjectRef::new(&name).within("elsewhere"));
        assert!(told.try_recv().is_err(), "that is another one of its name");
        controller.gone(&ObjectRef::new(&name).within("default"));
        assert_eq!(told.try_recv().ok(), Some(ObjectRef::from_obj(&snapshot)));
    }

    #[tokio::test]
    async fn deleted_hook_of_a_snapshot_waits_for_its_record() {
        let world = world("nothing-is-refused").await;
        let client = world.client.clone();
        let all: Api<ApplicationSnapshot> = Api::namespaced(client.clone(), "default");
        let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": []});
        let snapshot = ApplicationSnapshot::new("nightly", serde_json::from_value(spec).unwrap());
        let snapshot = all.create(&PostParams::default(), &snapshot).await.unwrap();
        let recorded = async |post: Option<bool>| {
            let hook = json!({"name": "hook", "executionHookTemplateName": "mysql", "postActionSucceed": post});
            let status = Patch::Merge(json!({"status": {"phase": "Thawing", "hooks": [hook]}}));
            all.patch_status("nightly", &PatchParams::default(), &status).await.unwrap()
        };
        let (snapshots, mut writer) = reflector::store();
        let before = recorded(None).await;
        writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(before))));
        let api = accepted(&client).await;
        let owner = json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "ApplicationSnapshot", "name": "nightly",
            "uid": snapshot.uid(), "controller": true});
        let metadata = json!({"finalizers": [THAW_FINALIZER], "ownerReferences": [owner]});
        api.patch("hook", &PatchParams::default(), &Patch::Merge(json!({"metadata": metadata}))).await.unwrap();
        api.delete("hook", &Default::default()).await.unwrap();
        let controller = Controller { snapshots, ..controller(world) };
        let look = async || controller.reconcile(Arc::new(api.get("hook").await.unwrap())).await.unwrap();
        for _ in 0..2 {
            assert!(look().await.is_some(), "it looks again");
            assert_eq!(api.get("hook").await.unwrap().status.unwrap().post_action_succeed, Some(true));
        }
        // The watch is late.
        recorded(Some(true)).await;
        look().await;
        assert!(api.get_opt("hook").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn lease_lost_at_one_effect_stops_the_next() {
        let world = world_losing_lease("/executionhooks/hook").await;
        let api = accepted(&world.client).await;
        let controller = controller(world);
        let object = api.get("hook").await.unwrap();
        let effects = vec![Effect::AddFinalizer, Effect::WriteStatus(Box::default())];
        assert!(matches!(act(&controller, &object, effects).await, Err(Error::LeaseLost)));
        let after = api.get("hook").await.unwrap();
        assert_eq!(after.finalizers(), [THAW_FINALIZER]);
        assert_eq!(after.status, object.status);
    }

    #[tokio::test]
    async fn lease_lost_among_many_children_stops_the_rest() {
        let world = world_losing_lease("/podnotifications").await;
        let api = accepted(&world.client).await;
        let children: Api<PodNotification> = Api::namespaced(world.client.clone(), "default");
        let controller = controller(world);
        let child = |number: usize| {
            let spec = serde_json::from_value(json!({"podName": "db-0", "notifier": "freeze"})).unwrap();
            let mut child = PodNotification::new(&format!("child-{number}"), spec);
            child.metadata.namespace = Some("default".to_owned());
            Effect::CreateChild(Box::new(child))
        };
        let effects = (0..2 * AT_ONCE).map(child).collect();
        let object = api.get("hook").await.unwrap();
        assert!(matches!(act(&controller, &object, effects).await, Err(Error::LeaseLost)));
        let made = children.list(&Default::default()).await.unwrap().items.len();
        assert!((1..=AT_ONCE).contains(&made), "{made} were made");
    }
}
