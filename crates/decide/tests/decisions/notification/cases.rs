//! Each decision in a sentence.

use boathook_api::{
    Notification, PodNotification,
    notification::{NotificationStatus, PodSelectionPolicy},
    pod_notification::State,
};
use boathook_decide::{
    Leadership,
    notification::{Decision, Effect, Observed, Pod, decide},
};
use kube::ResourceExt;

use super::{at, ended, notification, pod, undeclared};

fn look(object: &Notification, pods: Vec<Pod>, children: Vec<PodNotification>) -> Decision {
    let leadership = Leadership::Leader;
    decide(&Observed { object, leadership, enabled: true, author_checked: true, pods: Ok(pods), children }, at(5))
}

fn children(decision: &Decision) -> Vec<PodNotification> {
    let child = |effect: &Effect| match effect {
        Effect::CreateChild(child) => Some((**child).clone()),
        Effect::WriteStatus(_) => None,
    };
    decision.effects.iter().filter_map(child).collect()
}

fn told(decision: &Decision) -> Vec<String> {
    children(decision).into_iter().map(|child| child.spec.pod_name).collect()
}

fn status(decision: &Decision) -> Option<NotificationStatus> {
    decision.effects.iter().find_map(|effect| match effect {
        Effect::CreateChild(_) => None,
        Effect::WriteStatus(status) => Some((**status).clone()),
    })
}

fn condition(status: &NotificationStatus, kind: &str) -> (String, String) {
    let found = status.conditions.iter().find(|one| one.type_ == kind).expect("there is one of each type");
    (found.status.clone(), found.reason.clone())
}

#[test]
fn every_running_pod_is_told_by_a_child_that_is_its_own_and_bound_to_its_uid() {
    let object = notification(PodSelectionPolicy::AllPods, None);
    let decision = look(&object, vec![pod(1, -9), pod(2, 3), Pod { running: false, ..pod(3, -9) }], vec![]);
    assert_eq!(told(&decision), ["pod-1", "pod-2"]);
    let [first, second] = &children(&decision)[..] else { panic!("two are told") };
    assert_ne!(first.name_any(), second.name_any());
    assert_eq!((first.spec.pod_uid.as_deref(), first.spec.notifier.as_deref()), (Some("uid-1"), Some("reload")));
    assert_eq!(first.spec.ttl_seconds_after_finished, None);
    assert_eq!(first.owner_references()[0].uid, "notification-uid");
    assert_eq!(first.labels()["boathook.dev/notification"], "all");
    // Whoever looks gives it the same name; under another object, or for another pod of that name, it is another one.
    let again = look(&object, vec![pod(1, -9)], vec![]);
    assert_eq!(children(&again)[0], *first);
    let elsewhere = look(&object, vec![Pod { uid: "other".to_owned(), ..pod(1, -9) }], vec![]);
    assert_ne!(children(&elsewhere)[0].name_any(), first.name_any());
}

#[test]
fn a_name_stays_valid_however_long_that_of_the_notification_is() {
    let mut object = notification(PodSelectionPolicy::AllPods, None);
    object.metadata.name = Some(format!("{}.{}", "a".repeat(229), "b".repeat(23)));
    let child = children(&look(&object, vec![pod(1, -9)], vec![])).remove(0);
    let name = child.name_any();
    assert!(name.len() <= 253 && !name.contains(".-"), "{name}");
    assert!(child.labels().is_empty());
}

#[test]
fn pre_existing_pods_are_those_that_are_strictly_older() {
    let object = notification(PodSelectionPolicy::PreExistingPods, None);
    assert_eq!(told(&look(&object, vec![pod(1, -1), pod(2, 0), pod(3, 1)], vec![])), ["pod-1"]);
}

#[test]
fn as_many_pods_are_told_at_once_as_parallelism_allows_the_oldest_first() {
    let object = notification(PodSelectionPolicy::PreExistingPods, Some(2));
    let pods = vec![pod(1, -1), pod(2, -3), pod(3, -2)];
    let first = look(&object, pods.clone(), vec![]);
    assert_eq!(told(&first), ["pod-2", "pod-3"]);
    let mut made = children(&first);
    assert_eq!(told(&look(&object, pods.clone(), made.clone())).len(), 0);
    made[0] = ended(&made[0], State::Failed);
    assert_eq!(told(&look(&object, pods, made)), ["pod-1"]);
}

#[test]
fn it_is_complete_when_every_pre_existing_pod_has_been_told() {
    let object = notification(PodSelectionPolicy::PreExistingPods, None);
    let pods = vec![pod(1, -1), pod(2, -1)];
    let first = look(&object, pods.clone(), vec![]);
    let written = status(&first).unwrap();
    assert_eq!(condition(&written, "Complete"), ("False".to_owned(), "InProgress".to_owned()));
    let made = children(&first);
    let made = vec![ended(&made[0], State::Succeeded), ended(&made[1], State::Failed)];
    let last = status(&look(&object, pods.clone(), made.clone())).unwrap();
    assert_eq!((last.succeeded_count, last.failed_count, last.complete_time.is_some()), (1, 1, true));
    assert_eq!(condition(&last, "Complete"), ("True".to_owned(), "Failed".to_owned()));
    // Then nothing changes any more.
    let object = Notification { status: Some(last), ..object };
    assert_eq!(look(&object, vec![pod(1, -1), pod(9, -1)], made), Decision::default());
}

#[test]
fn undeclared_pods_are_counted_apart() {
    let object = notification(PodSelectionPolicy::PreExistingPods, None);
    let pods = vec![pod(1, -1), pod(2, -1)];
    let made = children(&look(&object, pods.clone(), vec![]));
    let some = vec![ended(&made[0], State::Succeeded), undeclared(&made[1])];
    let some = status(&look(&object, pods.clone(), some)).unwrap();
    assert_eq!((some.succeeded_count, some.failed_count, some.undeclared_count), (1, 0, 1));
    assert_eq!(condition(&some, "Succeeded"), ("True".to_owned(), "Succeeded".to_owned()));
    let none = vec![undeclared(&made[0]), undeclared(&made[1])];
    let none = status(&look(&object, pods, none)).unwrap();
    assert_eq!((none.succeeded_count, none.failed_count, none.undeclared_count), (0, 0, 2));
    assert_eq!(condition(&none, "Complete"), ("True".to_owned(), "NoMatchingNotifier".to_owned()));
    assert_eq!(condition(&none, "Succeeded"), ("False".to_owned(), "NoMatchingNotifier".to_owned()));
    let empty = status(&look(&object, vec![], vec![])).unwrap();
    assert_eq!(condition(&empty, "Succeeded"), ("False".to_owned(), "NoPod".to_owned()));
}

#[test]
fn one_condition_tells_success_from_failure() {
    let object = notification(PodSelectionPolicy::PreExistingPods, None);
    let pods = vec![pod(1, -1)];
    let first = look(&object, pods.clone(), vec![]);
    assert_eq!(condition(&status(&first).unwrap(), "Succeeded").0, "Unknown");
    let made = children(&first);
    for (state, truth) in [(State::Succeeded, "True"), (State::Failed, "False")] {
        let last = status(&look(&object, pods.clone(), vec![ended(&made[0], state)])).unwrap();
        assert_eq!(condition(&last, "Succeeded").0, truth);
    }
    // A failed pod stays failed, whatever pods come later.
    let all = notification(PodSelectionPolicy::AllPods, None);
    let made = children(&look(&all, pods.clone(), vec![]));
    let failed = status(&look(&all, pods, vec![ended(&made[0], State::Failed)])).unwrap();
    assert_eq!(condition(&failed, "Succeeded").0, "False");
}

#[test]
fn under_all_pods_it_is_never_complete() {
    let object = notification(PodSelectionPolicy::AllPods, None);
    let made = children(&look(&object, vec![pod(1, -1)], vec![]));
    let decision = look(&object, vec![pod(1, -1)], vec![ended(&made[0], State::Succeeded)]);
    let written = status(&decision).unwrap();
    assert_eq!((written.succeeded_count, &written.complete_time), (1, &None));
    assert_eq!(condition(&written, "Complete").0, "False");
    let object = Notification { status: Some(written), ..object };
    assert_eq!(look(&object, vec![], vec![ended(&made[0], State::Succeeded)]), Decision::default());
}

#[test]
fn what_cannot_be_carried_out_fails_at_once_by_its_condition() {
    let negative = notification(PodSelectionPolicy::PreExistingPods, Some(-1));
    let object = notification(PodSelectionPolicy::AllPods, None);
    let (leadership, children) = (Leadership::Leader, vec![]);
    let (pods, author_checked) = (Err("no".to_owned()), true);
    let selector = Observed { object: &object, leadership, enabled: true, author_checked, pods, children };
    let gate = Observed { enabled: false, pods: Ok(vec![pod(1, -1)]), ..selector.clone() };
    let parallelism = Observed { object: &negative, pods: Ok(vec![pod(1, -1)]), ..selector.clone() };
    let author = Observed { author_checked: false, pods: Ok(vec![pod(1, -1)]), ..selector.clone() };
    for (observed, why) in
        [(selector, "Invalid"), (gate, "FeatureDisabled"), (parallelism, "Invalid"), (author, "Refused")]
    {
        let decision = decide(&observed, at(5));
        assert_eq!(told(&decision).len(), 0);
        let written = status(&decision).unwrap();
        assert_eq!(condition(&written, "Accepted"), ("False".to_owned(), why.to_owned()));
        assert_eq!(condition(&written, "Complete"), ("True".to_owned(), "Failed".to_owned()));
        assert_eq!(written.complete_time, None);
    }
}

#[test]
fn nobody_but_the_leader_tells_and_nobody_when_it_is_being_deleted() {
    let mut object = notification(PodSelectionPolicy::AllPods, None);
    let (leadership, pods, children) = (Leadership::ThawOnly, Ok(vec![pod(1, -1)]), vec![]);
    let observed = Observed { object: &object, leadership, enabled: true, author_checked: true, pods, children };
    assert_eq!(decide(&observed, at(5)), Decision::default());
    object.metadata.deletion_timestamp = object.metadata.creation_timestamp.clone();
    assert_eq!(look(&object, vec![pod(1, -1)], vec![]), Decision::default());
}
