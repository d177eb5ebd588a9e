//! Giving up an undo that is owed: the annotation `boathook.dev/abandon-undo` asks for the right to `abandon` the object,
//! and is the only way. A finalizer that keeps an undo stays: with it the record would go of who gave the undo up.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    words::{ABANDON_UNDO, THAW_FINALIZER, UNDO_FINALIZER},
};
use boathook_decide::{application_snapshot, execution_hook, pod_notification};
use boathook_runtime::webhook::{Ask, refuse};
use kube::{Resource, ResourceExt, api::DynamicObject, core::admission::AdmissionResponse};
use serde::de::DeserializeOwned;

use super::access::{AbandonedKind, Access, Right};

/// Whether the user who sets the annotation may give the undo up.
pub(super) async fn review(access: &Access, ask: &Ask) -> AdmissionResponse {
    let Some(kind) = kind(ask) else {
        return refuse(ask, 422, "Invalid", format!("`{}` do not have an undo", ask.resource.resource));
    };
    let name = Some(ask.name.clone()).filter(|name| !name.is_empty());
    match access.check(ask, &[Right::Abandon { kind, name }]).await {
        Ok(()) => AdmissionResponse::from(ask),
        Err(refusal) => *refusal,
    }
}

/// Refuses to remove a finalizer that keeps an undo.
pub(super) fn review_finalizers(ask: &Ask) -> AdmissionResponse {
    let (finalizer, what) = match kind(ask) {
        Some(AbandonedKind::PodNotification) => (UNDO_FINALIZER, "its undo"),
        Some(AbandonedKind::ExecutionHook) => (THAW_FINALIZER, "its PostAction"),
        Some(AbandonedKind::ApplicationSnapshot) => (THAW_FINALIZER, "the PostAction of its hooks"),
        None => return AdmissionResponse::from(ask),
    };
    let has = |object: &DynamicObject| object.finalizers().iter().any(|one| one == finalizer);
    let dropped = ask.old_object.as_ref().filter(|old| has(old)).filter(|_| !ask.object.as_ref().is_some_and(has));
    let Some(old) = dropped else { return AdmissionResponse::from(ask) };
    if !is_needed(ask, old) {
        return AdmissionResponse::from(ask);
    }
    let kinds = &ask.resource.resource;
    let message = format!(
        "finalizer `{finalizer}` must stay until {what} has succeeded: then Boathook removes it. To run it now, delete \
         the object. To give it up, set the annotation `{ABANDON_UNDO}: \"true\"` first, which requires the right to \
         `abandon {kinds}`"
    );
    refuse(ask, 403, "Forbidden", message)
}

fn is_needed(ask: &Ask, old: &DynamicObject) -> bool {
    match kind(ask) {
        Some(AbandonedKind::PodNotification) => reads(old, pod_notification::needs_finalizer),
        Some(AbandonedKind::ExecutionHook) => reads(old, execution_hook::needs_finalizer),
        Some(AbandonedKind::ApplicationSnapshot) => reads(old, application_snapshot::needs_finalizer),
        None => false,
    }
}

/// An object that cannot be read is taken to need its finalizer: the API server has selected it as one that does.
fn reads<K>(object: &DynamicObject, needs_finalizer: impl Fn(&K) -> bool) -> bool
where
    K: DeserializeOwned,
{
    let read = serde_json::to_value(object).and_then(serde_json::from_value::<K>);
    read.map_or(true, |object| needs_finalizer(&object))
}

fn kind(ask: &Ask) -> Option<AbandonedKind> {
    let resource = ask.resource.resource.as_str();
    let kinds = [
        (PodNotification::plural(&()), AbandonedKind::PodNotification),
        (ExecutionHook::plural(&()), AbandonedKind::ExecutionHook),
        (ApplicationSnapshot::plural(&()), AbandonedKind::ApplicationSnapshot),
    ];
    kinds.into_iter().find(|(plural, _)| plural == resource).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        NamespaceResourceScope,
        api::{
            admissionregistration::v1::WebhookClientConfig,
            rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
        },
    };
    use kube::{
        Api, Client,
        api::{ObjectMeta, Patch, PatchParams, PostParams},
    };
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::test_asks::{ask, client_with_kinds};

    const EARLY: &str = "2026-01-01T00:00:00.000000Z";
    const LATE: &str = "2026-01-01T01:00:00.000000Z";

    /// No server listens there: what a webhook is asked about is refused.
    async fn without_answer(client: &Client, own: &str) {
        let unanswered = |path: &str| WebhookClientConfig {
            url: Some(format!("https://127.0.0.1:1{path}")),
            ..WebhookClientConfig::default()
        };
        let configuration = boathook_install::webhooks::validating(own, unanswered);
        Api::all(client.clone()).create(&PostParams::default(), &configuration).await.unwrap();
    }

    /// The webhook that was asked about this change.
    async fn asked<K>(api: &Api<K>, name: &str, change: Value) -> Option<String>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let error = api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.err()?.to_string();
        let name = error.split('"').find_map(|part| part.trim_end_matches('\\').strip_suffix(".boathook.dev"));
        Some(name.unwrap_or_else(|| panic!("{error}")).to_owned())
    }

    /// Whether the condition selects the removal of the finalizer, of each of these specs and statuses, exactly where
    /// `needs_finalizer` says that it keeps something.
    async fn is_selected_where_needed<K>(
        finalizer: &str,
        needs_finalizer: impl Fn(&K) -> bool,
        cases: Vec<(Value, Value, Value, bool)>,
    ) where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Serialize
            + std::fmt::Debug,
    {
        let client = client_with_kinds().await;
        let api: Api<K> = Api::namespaced(client.clone(), "default");
        for (place, (spec, status, annotations, _)) in cases.iter().enumerate() {
            let name = format!("n-{place}");
            let metadata = json!({"name": name, "finalizers": [finalizer], "annotations": annotations});
            let object = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata,
                "spec": spec});
            let created = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await;
            created.unwrap_or_else(|error| panic!("{spec}: {error}"));
            let both = Patch::Merge(json!({"status": status, "metadata": {"finalizers": null}}));
            let stored = api.patch_status(&name, &PatchParams::default(), &both).await.unwrap();
            assert_eq!(stored.finalizers(), [finalizer], "a write of the status leaves it");
        }
        without_answer(&client, "boathook").await;
        for (place, (spec, status, annotations, needed)) in cases.iter().enumerate() {
            let name = format!("n-{place}");
            let object = api.get(&name).await.unwrap();
            let case = format!("{spec} {status} {annotations}");
            assert_eq!(needs_finalizer(&object), *needed, "{case}");
            let label = json!({"metadata": {"labels": {"a": "b"}, "finalizers": [finalizer, "example.com/other"]}});
            assert_eq!(asked(&api, &name, label).await, None, "{case}");
            let asked = asked(&api, &name, json!({"metadata": {"finalizers": ["example.com/other"]}})).await;
            assert_eq!(asked.is_some_and(|name| name.ends_with("-finalizers")), *needed, "{case}");
        }
    }

    fn undone(reason: &str) -> Value {
        condition("Undone", reason)
    }

    fn condition(kind: &str, reason: &str) -> Value {
        json!([{"type": kind, "status": "False", "reason": reason, "message": "", "lastTransitionTime": EARLY}])
    }

    /// A claimed PodNotification with an undo that says this of it.
    fn claimed(conditions: Value, containers: Value) -> Value {
        json!({"executor": "api", "state": "Succeeded", "claim": {"holder": "me", "time": EARLY}, "completeTime": EARLY,
            "conditions": conditions, "containers": containers})
    }

    fn may_remain(undo_began: &str) -> Value {
        let undo = json!({"action": {"exec": {"command": ["thaw"]}}, "startTime": undo_began,
            "completeTime": undo_began, "succeeded": true});
        json!([{"name": "main", "processMayRemain": true, "undo": undo}])
    }

    fn given_up() -> Value {
        json!({ABANDON_UNDO: "true"})
    }

    #[tokio::test]
    async fn finalizer_of_an_owed_undo_is_kept() {
        let with = json!({"podName": "db-0", "notifier": "freeze", "undo": {"notifier": "thaw", "afterSeconds": 60}});
        let without = json!({"podName": "db-0", "notifier": "freeze"});
        let accepted = json!({"executor": "agent", "state": "New"});
        let refused = json!({"executor": "agent", "state": "Failed"});
        let (none, nothing) = (json!([]), json!({}));
        let mut cases = vec![
            (with.clone(), nothing.clone(), nothing.clone(), false),
            (with.clone(), accepted.clone(), nothing.clone(), true),
            (without.clone(), accepted, nothing.clone(), false),
            (with.clone(), refused, nothing.clone(), false),
            (with.clone(), claimed(none.clone(), none.clone()), nothing.clone(), true),
            (without, claimed(none.clone(), none.clone()), nothing.clone(), false),
            (with.clone(), claimed(undone("Armed"), none.clone()), given_up(), false),
            (with.clone(), claimed(undone("UndoSucceeded"), may_remain(EARLY)), nothing.clone(), true),
        ];
        for (reason, needed) in [
            ("Armed", true),
            ("UndoFailed", true),
            ("UndoSucceeded", false),
            ("SessionEnded", false),
            ("PodGone", false),
            ("ThawUnconfirmed", false),
            ("NothingToUndo", false),
            ("Abandoned", false),
        ] {
            cases.push((with.clone(), claimed(undone(reason), none.clone()), nothing.clone(), needed));
        }
        is_selected_where_needed(UNDO_FINALIZER, pod_notification::needs_finalizer, cases).await;
    }

    #[tokio::test]
    async fn finalizer_of_an_owed_thaw_is_kept() {
        let spec = json!({"executionHookTemplateName": "db", "podSelector": {}});
        let (exec, nothing) = (json!({"exec": {"command": ["freeze"]}}), json!({}));
        let held = json!({"exec": {"command": ["freeze"], "hold": true}});
        let both = json!({"policy": "ExecuteAll", "preAction": exec, "postAction": exec});
        let status = |recorded: Value, succeeded: Option<bool>, conditions: Value| {
            json!({"startTime": EARLY, "acceptedBy": "me", "recorded": recorded, "postActionSucceed": succeeded,
                "conditions": conditions})
        };
        let thawed = |reason: &str| condition("Thawed", reason);
        let cases = vec![
            (nothing.clone(), nothing.clone(), false),
            (json!({"startTime": EARLY}), nothing.clone(), false),
            (status(both.clone(), None, json!([])), nothing.clone(), true),
            (status(both.clone(), None, json!([])), given_up(), false),
            (status(both.clone(), Some(false), thawed("ThawFailed")), nothing.clone(), true),
            (status(both.clone(), Some(true), thawed("Thawed")), nothing.clone(), false),
            (status(both.clone(), Some(false), thawed("Abandoned")), nothing.clone(), false),
            (status(both, Some(false), thawed("ThawUnconfirmed")), nothing.clone(), false),
            (status(json!({"policy": "ExecuteAll", "preAction": exec}), None, json!([])), nothing.clone(), false),
            (status(json!({"policy": "ExecuteAll", "preAction": held}), None, json!([])), nothing, true),
        ];
        let cases = cases.into_iter().map(|(status, marks, needed)| (spec.clone(), status, marks, needed)).collect();
        is_selected_where_needed(THAW_FINALIZER, execution_hook::needs_finalizer, cases).await;
    }

    #[tokio::test]
    async fn finalizer_of_a_snapshot_under_way_is_kept() {
        let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": []});
        let hooks = json!([{"name": "first", "executionHookTemplateName": "db"}]);
        let mut cases = vec![];
        for (phase, under_way) in [
            ("Pending", false),
            ("Freezing", true),
            ("Cutting", true),
            ("Thawing", true),
            ("ThawFailed", false),
            ("Complete", false),
            ("Failed", false),
        ] {
            let status = json!({"phase": phase, "hooks": hooks});
            cases.push((spec.clone(), status.clone(), json!({}), under_way));
            cases.push((spec.clone(), status, given_up(), false));
            cases.push((spec.clone(), json!({"phase": phase}), json!({}), false));
        }
        is_selected_where_needed(THAW_FINALIZER, application_snapshot::needs_finalizer, cases).await;
    }

    #[test]
    fn refused_finalizer_says_how_to_give_up() {
        let object = |finalizers: &[&str], status: Value| {
            json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "PodNotification",
                "metadata": {"name": "n", "finalizers": finalizers}, "status": status,
                "spec": {"podName": "db-0", "notifier": "freeze", "undo": {"notifier": "thaw", "afterSeconds": 60}}})
        };
        let dropped = |status: Value| {
            let mut asked = ask("UPDATE", Some(object(&[], status.clone())), Some(object(&[UNDO_FINALIZER], status)));
            asked.resource.resource = "podnotifications".to_owned();
            review_finalizers(&asked)
        };
        let refused = dropped(claimed(undone("Armed"), json!([])));
        assert_eq!((refused.allowed, refused.result.code), (false, 403));
        for words in [UNDO_FINALIZER, ABANDON_UNDO, "`abandon podnotifications`"] {
            assert!(refused.result.message.contains(words), "{}", refused.result.message);
        }
        let last = |undo_began: &str| dropped(claimed(undone("UndoSucceeded"), may_remain(undo_began)));
        assert!(!last(EARLY).allowed, "it is to run once more");
        assert!(last(LATE).allowed, "it ran once more");
    }

    #[tokio::test]
    async fn giving_up_is_asked_about_and_thawing_is_not() {
        for (own, expected) in [("boathook", Some("abandonments")), ("admin", None)] {
            let client = client_with_kinds().await;
            let api: Api<PodNotification> = Api::namespaced(client.clone(), "default");
            let spec = json!({"podName": "db-0", "notifier": "freeze"});
            let mut object = PodNotification::new("one", serde_json::from_value(spec).unwrap());
            api.create(&PostParams::default(), &object).await.unwrap();
            without_answer(&client, own).await;
            let expected = expected.map(str::to_owned);
            let thaw = json!({"metadata": {"annotations": {ABANDON_UNDO: "no"}}, "spec": {"undoRequested": true}});
            assert_eq!(asked(&api, "one", thaw).await, None, "{own}");
            let give_up = json!({"metadata": {"annotations": given_up()}});
            assert_eq!(asked(&api, "one", give_up).await, expected, "{own}");
            object.metadata = ObjectMeta { name: Some("new".to_owned()), ..ObjectMeta::default() };
            object.annotations_mut().insert(ABANDON_UNDO.to_owned(), "true".to_owned());
            assert_eq!(api.create(&PostParams::default(), &object).await.is_err(), expected.is_some(), "{own}");
        }
    }

    /// Who has these rights.
    async fn grant(client: &Client, name: &str, rules: Vec<PolicyRule>) {
        let metadata = || ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let group = || "rbac.authorization.k8s.io".to_owned();
        let role = Role { metadata: metadata(), rules: Some(rules) };
        Api::namespaced(client.clone(), "default").create(&PostParams::default(), &role).await.unwrap();
        let role_ref = RoleRef { api_group: group(), kind: "Role".to_owned(), name: name.to_owned() };
        let subject =
            Subject { api_group: Some(group()), kind: "User".to_owned(), name: name.to_owned(), namespace: None };
        let binding = RoleBinding { metadata: metadata(), role_ref, subjects: Some(vec![subject]) };
        Api::namespaced(client.clone(), "default").create(&PostParams::default(), &binding).await.unwrap();
    }

    #[tokio::test]
    async fn only_the_right_to_abandon_gives_an_undo_up() {
        use boathook_install::roles;
        let client = client_with_kinds().await;
        let access = Access::new(client.clone()).await.unwrap();
        grant(&client, "notifier", roles::notifier()).await;
        grant(&client, "snapshotter", roles::snapshotter()).await;
        let one = PolicyRule {
            api_groups: Some(vec!["boathook.dev".to_owned()]),
            resources: Some(vec!["podnotifications".to_owned()]),
            resource_names: Some(vec!["one".to_owned()]),
            verbs: vec!["abandon".to_owned()],
            ..PolicyRule::default()
        };
        grant(&client, "joe", vec![one]).await;
        for (user, kind, name, allowed) in [
            ("notifier", "podnotifications", "one", false),
            ("notifier", "executionhooks", "one", false),
            ("snapshotter", "executionhooks", "one", true),
            ("snapshotter", "podnotifications", "one", false),
            ("snapshotter", "applicationsnapshots", "one", false),
            ("joe", "podnotifications", "one", true),
            ("joe", "podnotifications", "two", false),
        ] {
            let mut ask = ask("UPDATE", None, None);
            (ask.name, ask.resource.resource) = (name.to_owned(), kind.to_owned());
            ask.user_info.username = Some(user.to_owned());
            let answer = review(&access, &ask).await;
            assert_eq!(answer.allowed, allowed, "{user} {kind} {name}: {answer:?}");
            let right = format!("`abandon {kind}`");
            assert!(allowed || answer.result.message.contains(&right), "{}", answer.result.message);
        }
    }
}
