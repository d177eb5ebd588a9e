//! A snapshot that nobody has begun.

use boathook_api::{application_snapshot::Phase, words::condition};
use boathook_decide::{
    Gravity, Leadership,
    application_snapshot::{Decision, Effect, hook_name},
};
use kube::ResourceExt;
use serde_json::json;

use super::{Look, claim, deeds, said, snapshot, user};

/// Nothing is frozen or cut, and it is said why.
#[track_caller]
fn assert_refused(look: Look, reason: &str, text: &str) {
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write Failed"]);
    assert_eq!((decision.reports[0].gravity, decision.reports[0].reason.as_str()), (Gravity::Warning, reason));
    let look = look.done();
    let status = look.status();
    assert_eq!(status.failure.as_ref().map(|failure| failure.message.as_str()), Some(text));
    assert_eq!(said(&status, condition::FAILED), format!("True {reason}"));
    assert_eq!(said(&status, condition::COMPLETE), "nothing");
    assert_eq!(said(&status, condition::THAWED), "True NothingToUndo");
    assert!(status.consistency.is_none() && status.hooks.is_empty() && status.complete_time.is_some());
    assert_eq!(look.decide(), Decision::default(), "and nothing follows");
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_frozen() {
    let mut look = Look::with(json!({}));
    look.claims.clear();
    assert_refused(
        look,
        "ClaimNotFound",
        "claim `data` not found in this namespace: create it, or fix source.persistentVolumeClaimName",
    );
    let mut look = Look::with(json!({"source": {"selector": {}}}));
    look.claims.clear();
    assert_refused(
        look,
        "ClaimNotFound",
        "source.selector matches no claim in this namespace: fix the selector or the labels of the claims",
    );
    let operator = json!({"matchExpressions": [{"key": "app", "operator": "Has"}]});
    let look = Look::with(json!({"source": {"selector": operator}}));
    let unknown = r#"matchExpressions[0].operator: "Has" is unknown: write In, NotIn, Exists, DoesNotExist"#;
    assert_refused(look, "Invalid", &format!("source.selector.{unknown}"));
    let look =
        Look::with(json!({"executionHookInfos": [{"executionHookTemplateName": "fs", "podSelector": operator}]}));
    assert_refused(look, "Invalid", &format!("executionHookInfos[0].podSelector.{unknown}"));
    let mut look = Look::with(json!({}));
    look.missing_templates = vec!["fs".to_owned()];
    let text = "ExecutionHookTemplate `fs` not found in this namespace: create it, or fix executionHookTemplateName";
    assert_refused(look, "TemplateNotFound", text);
    let mut look = Look::with(json!({}));
    look.snapshots = vec![snapshot("snap")];
    look.snapshots[0].ours = false;
    assert_refused(
        look,
        "SnapshotExists",
        "VolumeSnapshot `snap` already exists, so Boathook ran no hook: delete it, or give the ApplicationSnapshot \
         another name",
    );
    // Also one that says that it is this one's: nothing was frozen when it was cut, or when the storage began.
    for cut in [true, false] {
        let mut look = Look::with(json!({}));
        look.snapshots = vec![snapshot("snap")];
        look.snapshots[0].cut = cut;
        assert_eq!(deeds(&look.decide()), ["write Failed"], "{cut}");
        assert_eq!(look.done().outcome(), (Phase::Failed, None, "SnapshotExists".to_owned()));
    }
    for on_hook_failure in ["Fail", "CrashConsistent"] {
        let mut look = Look::with(json!({"onHookFailure": on_hook_failure}));
        look.missing_class = Some("VolumeSnapshotClass `fats` not found".to_owned());
        let text = "VolumeSnapshotClass `fats` not found: create it, or name an existing class. Boathook ran no hook";
        assert_refused(look, "SnapshotClassNotFound", text);
    }
    let mut look = Look::with(json!({}));
    look.claims[0].pods.clear();
    let text = "claim `data` is attached to a node, but no running container mounts it: name the pods to freeze in \
                executionHookInfos, or retry";
    assert_refused(look, "NoTarget", text);
    // One of two is not enough.
    let mut look = Look::with(json!({"source": {"selector": {}}}));
    look.claims = vec![claim("other"), claim("data")];
    look.claims[1].pods[0].running = false;
    assert_refused(look, "NoTarget", text);
}

#[test]
fn hooks_of_an_unchecked_author_are_refused() {
    let mut look = Look::with(json!({}));
    look.author_checked = false;
    let text = "the ApplicationSnapshot was created before Boathook's webhooks answered, so Boathook did not check \
                whether its author may `create executionhooks`: delete the ApplicationSnapshot and create it again";
    assert_refused(look, "Refused", text);
    let mut plain = Look::with(json!({"executionHookInfos": []}));
    plain.author_checked = false;
    assert_eq!(deeds(&plain.decide()), ["hold", "write Cutting", "cut snap"]);
}

#[test]
fn what_is_refused_and_held_is_let_go() {
    let mut look = Look::with(json!({}));
    look.object.finalizers_mut().push("boathook.dev/thaw".to_owned());
    look.claims.clear();
    assert_eq!(deeds(&look.decide()), ["write Failed", "let go"]);
}

#[test]
fn the_first_hook_is_made_after_everything_was_pinned() {
    let look = Look::with(json!({}));
    assert_eq!(deeds(&look.decide()), ["hold", "write Freezing"]);
    assert_eq!(deeds(&look.done_once().decide()), ["write Freezing", "freeze app"]);
    let look = Look::with(json!({})).done();
    let status = look.status();
    assert_eq!(said(&status, condition::FROZEN), "False Freezing");
    assert_eq!(status.execution_hook_names, [hook_name(&look.object, 0), hook_name(&look.object, 1)]);
    assert_eq!(
        (status.snapshots[0].volume_snapshot_name.as_str(), &status.snapshots[0].pod_uids[..]),
        ("snap", &["uid-0".to_owned()][..])
    );
    let hook = &look.hooks[0];
    assert_eq!(
        (hook.name_any(), hook.finalizers()),
        (hook_name(&look.object, 0), &["boathook.dev/thaw".to_owned()][..])
    );
    assert_eq!(hook.owner_references()[0].uid, "snap-uid");
}

#[test]
fn without_a_target_those_that_mount_the_claims_are_meant() {
    let mut look = Look::with(json!({"source": {"selector": {}}}));
    look.claims = vec![claim("data"), claim("log")];
    look.claims[1].pods = vec![user(0), user(1)];
    look.claims[1].pods[0].containers = vec!["shipper".to_owned(), "main".to_owned()];
    let look = look.done();
    let found = serde_json::to_value(&look.hooks[0].spec.pod_container_names_list).expect("it is plain");
    let db_0 = json!({"podName": "db-0", "containerNames": ["main", "shipper"]});
    assert_eq!(found, json!([db_0, {"podName": "db-1", "containerNames": ["main"]}]));
    let names: Vec<_> = look.status().snapshots.into_iter().map(|one| one.volume_snapshot_name).collect();
    assert_eq!(names, ["snap-data", "snap-log"]);
}

#[test]
fn a_hook_that_names_its_target_runs_there() {
    let list = json!([{"podName": "db-9", "containerNames": ["x"]}]);
    let infos = json!([{"executionHookTemplateName": "app", "podContainerNamesList": list},
                       {"executionHookTemplateName": "fs", "podSelector": {"matchLabels": {"a": "b"}},
                        "containerSelector": {"containerName": "y"}}]);
    let mut look = Look::at_freezing(json!({"executionHookInfos": infos}));
    assert_eq!(serde_json::to_value(&look.hooks[0].spec).expect("it is plain")["podContainerNamesList"], list);
    look.hooks[0].status = Look::at_cutting(json!({})).hooks[0].status.clone();
    let look = look.done();
    let second = serde_json::to_value(&look.hooks[1].spec).expect("it is plain");
    assert_eq!(
        (&second["podSelector"]["matchLabels"]["a"], &second["containerSelector"]["containerName"]),
        (&"b".into(), &"y".into())
    );
    assert!(second.get("podContainerNamesList").is_none());
}

#[test]
fn a_claim_that_nothing_uses_is_cut_without_hooks() {
    let mut look = Look::with(json!({}));
    (look.claims[0].attached, look.claims[0].pods) = (false, vec![]);
    assert_eq!(deeds(&look.decide()), ["hold", "write Cutting", "cut snap"]);
    assert_eq!(said(&look.done().status(), condition::FROZEN), "True NotInUse");
}

#[test]
fn without_hooks_a_claim_in_use_is_cut_as_it_is() {
    let look = Look::with(json!({"executionHookInfos": []}));
    assert_eq!(deeds(&look.decide()), ["hold", "write Cutting", "cut snap"]);
    assert_eq!(said(&look.done().status(), condition::FROZEN), "False NoHooks");
}

#[test]
fn crash_consistent_goes_on_without_a_template_or_a_target() {
    let mut look = Look::with(json!({"onHookFailure": "CrashConsistent"}));
    look.missing_templates = vec!["fs".to_owned()];
    assert_eq!(look.done().phase(), Phase::Freezing, "the hook itself says that it is missing");
    let mut look = Look::with(json!({"onHookFailure": "CrashConsistent"}));
    look.claims[0].pods.clear();
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Cutting, None, "NoTarget".to_owned()));
    assert_eq!(look.snapshots.len(), 1);
}

#[test]
fn one_that_shares_a_claim_waits_and_says_so_once() {
    let mut look = Look::with(json!({}));
    look.before = Some("first".to_owned());
    assert_eq!(deeds(&look.decide()), ["write Pending"]);
    let mut look = look.done();
    assert_eq!(said(&look.status(), condition::FROZEN), "False Waiting");
    assert_eq!(look.decide(), Decision::default());
    look.before = None;
    assert_eq!(deeds(&look.decide()), ["hold", "write Freezing"]);
}

#[test]
fn what_is_deleted_before_it_began_does_nothing() {
    assert_eq!(Look::with(json!({})).deleted().decide(), Decision::default());
    let mut held = Look::with(json!({})).deleted();
    held.object.finalizers_mut().push("boathook.dev/thaw".to_owned());
    assert_eq!(deeds(&held.decide()), ["let go"]);
}

#[test]
fn whoever_does_not_lead_does_nothing() {
    for make in [Look::with, Look::at_freezing, Look::at_cutting, Look::at_cut, Look::at_thawing] {
        let mut look = make(json!({}));
        look.leadership = Leadership::ThawOnly;
        assert_eq!(look.decide(), Decision::default());
    }
}

#[test]
fn the_volume_snapshot_is_its_own_and_of_the_class_that_was_asked_for() {
    let mut look = Look::at_freezing(json!({"volumeSnapshotClassName": "fast"}));
    look.freeze_last();
    let mut look = look.done();
    look.freeze_last();
    let mut decision = look.decide();
    let Some(Effect::CreateSnapshot(made)) = decision.effects.pop() else { panic!("nothing is cut") };
    assert_eq!(made.spec.volume_snapshot_class_name.as_deref(), Some("fast"));
    assert_eq!(made.spec.source.persistent_volume_claim_name.as_deref(), Some("data"));
    assert!(made.owner_references().is_empty(), "deleting the one keeps the other");
    assert_eq!(made.annotations()["boathook.dev/application-snapshot-uid"], "snap-uid");
}
