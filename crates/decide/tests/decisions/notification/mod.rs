//! Notification, decision by decision, and in a small model of its world.

mod cases;
mod model;

use boathook_api::{
    Notification, PodNotification,
    notification::{NotificationSpec, PodSelectionPolicy},
    pod_notification::State,
};
use boathook_decide::notification::Pod;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000 + seconds)
}

/// Created at second 0.
fn notification(policy: PodSelectionPolicy, parallelism: Option<i32>) -> Notification {
    let selector = LabelSelector::default();
    let spec = NotificationSpec { selector, policy, notifier: "reload".to_owned(), parallelism };
    let mut object = Notification::new("all", spec);
    object.metadata.uid = Some("notification-uid".to_owned());
    object.metadata.creation_timestamp = Some(Time(at(0)));
    object
}

fn pod(number: usize, created: i64) -> Pod {
    Pod { name: format!("pod-{number}"), uid: format!("uid-{number}"), created: at(created), running: true }
}

/// The same child, in this state.
fn ended(child: &PodNotification, state: State) -> PodNotification {
    let mut child = child.clone();
    child.status.get_or_insert_default().state = state;
    child
}

/// The same child, of a pod that declares no such notifier.
fn undeclared(child: &PodNotification) -> PodNotification {
    let mut child = ended(child, State::Succeeded);
    let condition = Condition {
        type_: "Complete".to_owned(),
        status: "True".to_owned(),
        reason: "NoMatchingNotifier".to_owned(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time(at(0)),
    };
    child.status.get_or_insert_default().conditions.push(condition);
    child
}
