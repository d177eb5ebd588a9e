//! The effects of a decision, one after the other.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::Phase,
    volume_snapshot::VolumeSnapshot,
    words::{CONSISTENCY, EXECUTION_HOOK_NAMES, THAW_FINALIZER, VERDICT_FIELD_MANAGER, reason},
};
use boathook_decide::{About, Gravity, Report, application_snapshot::Effect};
use boathook_runtime::{Classified, error_class::chain};
use kube::{Client, ResourceExt, api::PatchParams};
use serde_json::{Value, json};
use snafu::ensure;

use super::{Controller, Error, LeaseLostSnafu};
use crate::{
    refusals::is_final,
    writes::{self, Made, WriteError},
};

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
                controller.refusals.forget(&object);
                controller.tell_sharers(&object);
                if object.status.as_ref().is_some_and(|status| status.phase == Phase::Freezing) {
                    // Those that wait for it may share its freeze.
                    controller.wake(Some(&namespace));
                }
            }
            Effect::Follow(first) => {
                writes::write_status(client, &*first).await?;
            }
            Effect::CreateHook(hook) => {
                let made = writes::create(client, &*hook).await;
                // Nobody tells of one that belongs to somebody else.
                let was_there = matches!(made, Ok(Made::WasThere));
                if controller.refusals.note(&object, made)? || was_there {
                    return Ok(true);
                }
            }
            Effect::ThawHook(name) => {
                let patch = json!({"spec": {"thawRequested": true}});
                writes::patch::<ExecutionHook>(client, &namespace, &name, "thaw", patch).await?;
            }
            Effect::DeleteHook { name, uid } => {
                writes::delete::<ExecutionHook>(client, &namespace, &name, &uid).await?;
            }
            Effect::CreateSnapshot(snapshot) => {
                let made = writes::create(client, &*snapshot).await;
                if controller.refusals.note(&object, made)? {
                    return Ok(true);
                }
            }
            Effect::DeleteSnapshot { name, uid } => {
                let deleted = writes::delete::<VolumeSnapshot>(client, &namespace, &name, &uid).await;
                unless_refused(controller, &object, deleted)?;
            }
            Effect::SetOwner(owner) => object = writes::set_owner(client, &object, *owner).await?,
            Effect::MarkSnapshot { name, uid, hooks, consistency } => {
                let annotations = json!({CONSISTENCY: consistency.as_str(), EXECUTION_HOOK_NAMES: hooks.join(",")});
                // Somebody's new one of its name is not what was judged.
                let patch = json!({"metadata": {"uid": uid, "annotations": annotations}});
                let marked = mark_as_boathook(client, &namespace, &name, patch).await;
                unless_refused(controller, &object, marked)?;
            }
            Effect::Delete => {
                let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
                writes::delete::<ApplicationSnapshot>(client, &namespace, &name, &uid).await?;
            }
        }
    }
    Ok(false)
}

/// The field manager tells Boathook's verdict from a value that another user wrote.
async fn mark_as_boathook(client: &Client, namespace: &str, name: &str, patch: Value) -> Result<(), WriteError> {
    let params = PatchParams { field_manager: Some(VERDICT_FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    writes::patch_as::<VolumeSnapshot>(client, namespace, name, "mark", (&params, patch)).await
}

/// Somebody's policy may refuse to have a VolumeSnapshot changed. A person is told, and what comes after it is done all
/// the same: the object must not be held, and others of its claims wait for its end.
fn unless_refused(
    controller: &Controller,
    object: &ApplicationSnapshot,
    outcome: Result<(), WriteError>,
) -> Result<(), Error> {
    match outcome {
        Err(error) if is_final(error.class()) => {
            let (about, gravity, reason) = (About::Object, Gravity::Warning, reason::REFUSED.to_owned());
            let report = Report { about, gravity, reason, action: "Cut", note: chain(&error) };
            controller.surroundings.reporter.report(object, vec![report]);
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, atomic::Ordering},
        time::Duration,
    };

    use boathook_api::{
        application_snapshot::{ApplicationSnapshotStatus, Consistency},
        words::condition,
    };
    use boathook_runtime::{Clock, Deadlines, Reconcile};
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use kube::{
        Api,
        api::{DeleteParams, Patch, PostParams},
        runtime::reflector,
    };
    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        application_snapshot::Surroundings,
        test_world::{World, clock, world, world_losing_lease},
    };

    fn controller(world: World) -> Controller {
        controller_by(world, Clock::of_the_machine())
    }

    fn controller_by(World { client, lease, reporter }: World, clock: Clock) -> Controller {
        Controller::new(Surroundings {
            client,
            identity: "me".to_owned(),
            lease,
            reporter,
            all: reflector::store().0,
            hooks: reflector::store().0,
            snapshots: reflector::store().0,
            look_again: mpsc::unbounded_channel().0,
            deadlines: Deadlines::new(clock),
        })
    }

    #[tokio::test]
    async fn cut_times_out_though_the_wall_clock_was_stepped_back() {
        let world = world("nothing-is-refused").await;
        let object = stored(&world.client, true).await;
        let api: Api<ApplicationSnapshot> = Api::namespaced(world.client.clone(), "default");
        let record = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly"});
        let begun = MicroTime(Timestamp::now() + SignedDuration::from_hours(1));
        let patch = Patch::Merge(json!({"status": {"phase": "Cutting", "cutTime": begun, "snapshots": [record]}}));
        api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await.unwrap();
        let (clock, seconds) = clock();
        let controller = controller_by(world, clock);
        let status = async || {
            controller.reconcile(Arc::new(api.get("nightly").await.unwrap())).await.unwrap();
            api.get("nightly").await.unwrap().status.unwrap()
        };
        assert_eq!(status().await.phase, Phase::Cutting);
        seconds.store(61, Ordering::SeqCst);
        let status = status().await;
        assert_eq!(status.phase, Phase::Thawing);
        assert_eq!(status.failure.unwrap().reason, reason::CUT_TIMED_OUT);
    }

    async fn stored(client: &kube::Client, finalizer: bool) -> ApplicationSnapshot {
        let spec = json!({"source": {"persistentVolumeClaimName": "data"},
            "executionHookInfos": [{"executionHookTemplateName": "mysql"}]});
        let mut object = ApplicationSnapshot::new("nightly", serde_json::from_value(spec).unwrap());
        object.metadata.finalizers = finalizer.then(|| vec![THAW_FINALIZER.to_owned()]);
        let api: Api<ApplicationSnapshot> = Api::namespaced(client.clone(), "default");
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    fn mark(name: &str, uid: &str) -> Effect {
        let (name, uid) = (name.to_owned(), uid.to_owned());
        Effect::MarkSnapshot { name, uid, hooks: vec![], consistency: Consistency::Application }
    }

    #[tokio::test]
    async fn a_volume_snapshot_that_took_the_name_of_another_is_not_marked_as_it_was() {
        let world = world("nothing-is-refused").await;
        let object = stored(&world.client, true).await;
        let client = world.client.clone();
        let controller = controller(world);
        let snapshots: Api<VolumeSnapshot> = Api::namespaced(client, "default");
        let source = json!({"source": {"persistentVolumeClaimName": "data"}});
        let new = VolumeSnapshot::new("nightly", serde_json::from_value(source).unwrap());
        let new = snapshots.create(&PostParams::default(), &new).await.unwrap();
        for (uid, marked) in [("of-another", None), (new.metadata.uid.as_deref().unwrap(), Some("Application"))] {
            assert!(!act(&controller, &object, vec![mark("nightly", uid)]).await.unwrap());
            let said = snapshots.get("nightly").await.unwrap().annotations().get(CONSISTENCY).cloned();
            assert_eq!(said.as_deref(), marked);
        }
        let of_another = json!({"metadata": {"uid": "of-another"}});
        let patched =
            writes::patch::<VolumeSnapshot>(&controller.surroundings.client, "default", "nightly", "mark", of_another);
        assert!(patched.await.is_ok(), "there is nothing to do, and nobody to tell");
    }

    #[tokio::test]
    async fn who_refuses_to_have_a_volume_snapshot_changed_does_not_hold_the_object() {
        let world = world("volumesnapshots").await;
        let object = stored(&world.client, true).await;
        let controller = controller(world);
        let effects = vec![
            Effect::DeleteSnapshot { name: "one".to_owned(), uid: "u".to_owned() },
            mark("two", "v"),
            Effect::RemoveFinalizer,
        ];
        assert!(!act(&controller, &object, effects).await.unwrap());
        let api: Api<ApplicationSnapshot> = Api::namespaced(controller.surroundings.client.clone(), "default");
        assert!(api.get("nightly").await.unwrap().finalizers().is_empty());
    }

    #[tokio::test]
    async fn a_hook_that_may_not_be_created_ends_the_freeze_in_words_that_a_person_reads() {
        let world = world("executionhooks").await;
        let mut object = stored(&world.client, true).await;
        let api: Api<ApplicationSnapshot> = Api::namespaced(world.client.clone(), "default");
        let hook = json!({"name": "first", "executionHookTemplateName": "mysql"});
        let status = json!({"phase": "Freezing", "executionHookNames": ["first"], "hooks": [hook]});
        let patch = Patch::Merge(json!({"status": status}));
        object = api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await.unwrap();
        let controller = controller(world);
        let again = controller.reconcile(Arc::new(object)).await.unwrap();
        assert_eq!(again, Some(Duration::ZERO), "it is looked at again at once");
        controller.reconcile(Arc::new(api.get("nightly").await.unwrap())).await.unwrap();
        let status = api.get("nightly").await.unwrap().status.unwrap();
        assert_eq!(status.phase, Phase::Thawing);
        assert!(status.failure.unwrap().message.contains("exceeded quota"));
        controller.reconcile(Arc::new(api.get("nightly").await.unwrap())).await.unwrap();
        let ended = api.get("nightly").await.unwrap();
        assert!(ended.finalizers().is_empty());
        let conditions = ended.status.unwrap().conditions;
        assert!(conditions.iter().any(|one| one.type_ == condition::FAILED && one.status == "True"));
    }

    #[tokio::test]
    async fn a_hook_whose_name_somebody_took_in_the_meantime_is_looked_at_at_once_and_fails_the_freeze() {
        let world = world("nothing-is-refused").await;
        let client = world.client.clone();
        let mut object = stored(&client, true).await;
        let api: Api<ApplicationSnapshot> = Api::namespaced(client.clone(), "default");
        let hook = json!({"name": "first", "executionHookTemplateName": "mysql"});
        let status = json!({"phase": "Freezing", "executionHookNames": ["first"], "hooks": [hook]});
        let patch = Patch::Merge(json!({"status": status}));
        object = api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await.unwrap();
        let controller = controller(world);
        let meant = boathook_decide::application_snapshot::hook(&object, object.status.as_ref().unwrap(), 0);
        let made = || vec![Effect::CreateHook(Box::new(meant.clone()))];
        assert!(!act(&controller, &object, made()).await.unwrap(), "nobody was before it");
        let hooks: Api<ExecutionHook> = Api::namespaced(client, "default");
        let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        hooks.patch("first", &PatchParams::default(), &let_go).await.unwrap();
        hooks.delete("first", &DeleteParams::default()).await.unwrap();
        let spec = json!({"executionHookTemplateName": "harmless", "podSelector": {}});
        let theirs = ExecutionHook::new("first", serde_json::from_value(spec).unwrap());
        hooks.create(&PostParams::default(), &theirs).await.unwrap();
        assert!(act(&controller, &object, made()).await.unwrap(), "no watch tells of somebody else's");
        controller.reconcile(Arc::new(object)).await.unwrap();
        let status = api.get("nightly").await.unwrap().status.unwrap();
        assert_eq!(status.phase, Phase::Thawing);
        let failure = status.failure.unwrap();
        assert_eq!(failure.reason, reason::HOOK_FAILED);
        assert!(failure.message.contains("ExecutionHook `first` already exists"), "{}", failure.message);
    }

    #[tokio::test]
    async fn lease_lost_at_one_effect_stops_the_next() {
        let world = world_losing_lease("/nightly/status").await;
        let client = world.client.clone();
        let object = stored(&client, true).await;
        let controller = controller(world);
        let status: ApplicationSnapshotStatus =
            serde_json::from_value(json!({"phase": "Freezing", "executionHookNames": ["first"],
                "hooks": [{"name": "first", "executionHookTemplateName": "mysql"}]}))
            .unwrap();
        let hook = boathook_decide::application_snapshot::hook(&object, &status, 0);
        let effects = vec![Effect::WriteStatus(Box::new(status)), Effect::CreateHook(Box::new(hook))];
        assert!(matches!(act(&controller, &object, effects).await, Err(Error::LeaseLost)));
        let hooks: Api<ExecutionHook> = Api::namespaced(client, "default");
        assert_eq!(hooks.get_opt("first").await.unwrap(), None);
    }
}
