//! Notification: one PodNotification for each pod that it selects, as many at a time as it allows.

use boathook_api::{
    Notification, PodNotification,
    notification::{NotificationStatus, PodSelectionPolicy},
    pod_notification::{DEFAULT_START_DEADLINE_SECONDS, PodNotificationSpec, Retry, State},
    words::{NOTIFICATION_LABEL, condition, reason},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt, core::ObjectMeta};

use crate::{
    About, Gravity, Leadership, Report,
    conditions::{self, Saying},
    moment::moment,
    naming, succeeded,
};

/// What one look found.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    pub object: &'a Notification,
    pub leadership: Leadership,
    /// The feature gate `ContainerNotifier`.
    pub enabled: bool,
    /// The webhooks were asked whether its author may create PodNotifications.
    pub author_checked: bool,
    /// The pods that the selector finds, or what is wrong with the selector.
    pub pods: Result<Vec<Pod>, String>,
    /// The PodNotifications that this object owns. They may be seen as they were a moment ago, but none that was made may
    /// be missing: neither one of this process (which knows of it before its watch does), nor one of the leader before
    /// it. Otherwise too many pods are told at once, and the object is complete too soon.
    pub children: Vec<PodNotification>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    pub created: Timestamp,
    /// In the phase Running, and not being deleted.
    pub running: bool,
}

/// What to do, in this order; whether this process still leads is asked again before each.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// One that is there already is as good.
    CreateChild(Box<PodNotification>),
    WriteStatus(Box<NotificationStatus>),
}

pub type Decision = crate::Decision<Effect>;

/// Looks at one object at one moment.
pub fn decide(observed: &Observed<'_>, now: Timestamp) -> Decision {
    let object = observed.object;
    let mut decision = look(observed, now);
    for effect in &mut decision.effects {
        if let Effect::WriteStatus(status) = effect {
            let word = succeeded::of_notification(status);
            succeeded::set(&mut status.conditions, word, object.metadata.generation, now);
        }
    }
    let unchanged =
        |effect: &Effect| matches!(effect, Effect::WriteStatus(status) if object.status.as_ref() == Some(&**status));
    decision.effects.retain(|effect| !unchanged(effect));
    decision
}

fn look(observed: &Observed<'_>, now: Timestamp) -> Decision {
    let object = observed.object;
    let status = object.status.clone().unwrap_or_default();
    let ended = conditions::is_true(&status.conditions, condition::COMPLETE);
    if observed.leadership != Leadership::Leader || object.metadata.deletion_timestamp.is_some() || ended {
        return Decision::default();
    }
    if !observed.enabled {
        let message = "the feature gate ContainerNotifier is off: start the controller with \
                       --feature-gates ContainerNotifier=true";
        return refuse(object, status, reason::FEATURE_DISABLED, message, now);
    }
    if !observed.author_checked {
        let message = "the Notification was created before Boathook's webhooks answered, so Boathook did not check \
                       whether its author may `create podnotifications`: delete the Notification and create it again";
        return refuse(object, status, reason::REFUSED, message, now);
    }
    let parallelism = object.spec.parallelism.unwrap_or_default();
    let (Ok(parallelism), Ok(pods)) = (usize::try_from(parallelism), &observed.pods) else {
        let wrong = match &observed.pods {
            Err(wrong) => format!("selector.{wrong}"),
            Ok(_) => format!(
                "parallelism: {parallelism} is negative: write a positive number, or omit it to notify all pods at once"
            ),
        };
        return refuse(object, status, reason::INVALID, &wrong, now);
    };
    notify(observed, status, pods, parallelism, now)
}

fn notify(
    observed: &Observed<'_>,
    mut status: NotificationStatus,
    pods: &[Pod],
    parallelism: usize,
    now: Timestamp,
) -> Decision {
    let object = observed.object;
    let told = |pod: &Pod| observed.children.iter().any(|child| child.spec.pod_uid.as_ref() == Some(&pod.uid));
    let mut waiting: Vec<_> = pods.iter().filter(|pod| is_meant(object, pod) && !told(pod)).collect();
    waiting.sort_by_key(|pod| (pod.created, &pod.name));
    let in_state = |state| observed.children.iter().filter(move |child| state_of(child) == state).count();
    let room = match parallelism {
        0 => usize::MAX,
        most => most.saturating_sub(in_state(State::New)),
    };
    let mut decision = Decision::default();
    let chosen = waiting.iter().take(room).map(|pod| Effect::CreateChild(Box::new(child(object, pod))));
    decision.effects.extend(chosen);

    let count = |state| i32::try_from(in_state(state)).unwrap_or(i32::MAX);
    let undeclared = observed.children.iter().filter(|child| is_undeclared(child)).count();
    status.undeclared_count = i32::try_from(undeclared).unwrap_or(i32::MAX);
    status.succeeded_count = count(State::Succeeded) - status.undeclared_count;
    status.failed_count = count(State::Failed);
    status.start_time.get_or_insert(moment(now));
    let generation = object.metadata.generation;
    let accepted = Saying { kind: condition::ACCEPTED, status: "True", reason: reason::PINNED, message: "" };
    conditions::set(&mut status.conditions, accepted, generation, now);
    let over =
        waiting.is_empty() && in_state(State::New) == 0 && object.spec.policy == PodSelectionPolicy::PreExistingPods;
    let (why, message) = result(&status, &object.spec.notifier);
    let complete = match over {
        false => Saying { kind: condition::COMPLETE, status: "False", reason: reason::IN_PROGRESS, message: "" },
        true => Saying { kind: condition::COMPLETE, status: "True", reason: why, message: &message },
    };
    if over {
        status.complete_time = Some(moment(now));
        let gravity = if why == reason::SUCCEEDED { Gravity::Normal } else { Gravity::Warning };
        decision.reports.push(report(gravity, why, message.clone()));
    }
    conditions::set(&mut status.conditions, complete, generation, now);
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision
}

/// Whether it notifies already: its author was checked before that.
pub fn is_accepted(object: &Notification) -> bool {
    object.status.as_ref().is_some_and(|status| conditions::is_true(&status.conditions, condition::ACCEPTED))
}

/// The result of a Notification that is complete: reason and message.
fn result(status: &NotificationStatus, notifier: &str) -> (&'static str, String) {
    let NotificationStatus { succeeded_count: succeeded, failed_count: failed, undeclared_count: undeclared, .. } =
        status;
    let counts = match undeclared {
        0 => format!("{succeeded} succeeded, {failed} failed"),
        _ => format!("{succeeded} succeeded, {failed} failed, {undeclared} without `{notifier}`"),
    };
    match (succeeded, failed, undeclared) {
        (0, 0, 0) => (reason::NO_POD, "the selector matched no Running pod: check its labels".to_owned()),
        (0, 0, _) => {
            let message = format!(
                "no pod was notified: none of {undeclared} declares notifier `{notifier}`. List the declared notifiers \
                 with `boathook notifiers`"
            );
            (reason::NO_MATCHING_NOTIFIER, message)
        }
        (_, 0, _) => (reason::SUCCEEDED, counts),
        (_, _, _) => (reason::FAILED, counts),
    }
}

/// Whether its pod declares no such notifier.
fn is_undeclared(child: &PodNotification) -> bool {
    let conditions = child.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let complete = conditions::find(conditions, condition::COMPLETE);
    state_of(child) == State::Succeeded
        && complete.is_some_and(|complete| complete.reason == reason::NO_MATCHING_NOTIFIER)
}

/// Whether the object speaks of this pod: a Running one, and under PreExistingPods one that is strictly older.
fn is_meant(object: &Notification, pod: &Pod) -> bool {
    let created = object.metadata.creation_timestamp.as_ref().map(|Time(time)| *time);
    let old_enough = match object.spec.policy {
        PodSelectionPolicy::AllPods => true,
        PodSelectionPolicy::PreExistingPods => created.is_some_and(|created| pod.created < created),
    };
    pod.running && old_enough
}

fn state_of(child: &PodNotification) -> State {
    child.status.as_ref().map(|status| status.state).unwrap_or_default()
}

/// The PodNotification for one pod: its name is the same whoever makes it, so no pod is told twice.
fn child(object: &Notification, pod: &Pod) -> PodNotification {
    let name = object.name_any();
    let name = naming::derived(&name, &[object.uid().unwrap_or_default().as_str(), &pod.uid]);
    let spec = PodNotificationSpec {
        pod_name: pod.name.clone(),
        pod_uid: Some(pod.uid.clone()),
        notifier: Some(object.spec.notifier.clone()),
        action: None,
        containers: None,
        start_deadline_seconds: DEFAULT_START_DEADLINE_SECONDS,
        retry: Retry::Never,
        undo: None,
        undo_requested: false,
        ttl_seconds_after_finished: None,
    };
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: object.namespace(),
        owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
        labels: naming::label(NOTIFICATION_LABEL, object.name_any()),
        ..ObjectMeta::default()
    };
    PodNotification { metadata, spec, status: None }
}

fn refuse(
    object: &Notification,
    mut status: NotificationStatus,
    why: &'static str,
    message: &str,
    now: Timestamp,
) -> Decision {
    let generation = object.metadata.generation;
    status.start_time.get_or_insert(moment(now));
    for (kind, truth, reason) in [(condition::ACCEPTED, "False", why), (condition::COMPLETE, "True", reason::FAILED)] {
        conditions::set(&mut status.conditions, Saying { kind, status: truth, reason, message }, generation, now);
    }
    Decision {
        effects: vec![Effect::WriteStatus(Box::new(status))],
        reports: vec![report(Gravity::Warning, why, message.to_owned())],
        again: None,
    }
}

fn report(gravity: Gravity, reason: &'static str, note: String) -> Report {
    Report { about: About::Object, gravity, reason: reason.to_owned(), action: "Notify", note }
}
