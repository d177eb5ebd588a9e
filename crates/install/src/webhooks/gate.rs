//! The MutatingWebhookConfiguration: the gate that holds ReplicaSets at the stages of a rollout.
//!
//! All of the gate's rule but the check of a drain stands in these conditions, so to be asked is to be held: a ReplicaSet
//! that is open, and one that is only scaled, never needs the webhook. What they say is what
//! `boathook_decide::deployment_lifecycle::gate` says; a test compares the two.

use boathook_api::words::{ABORT_PREFIX, GATE, GROUP, LIFECYCLE, ROLLOUT_REQUEST, ROLLOUT_REQUESTED_BY};
use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::api::ObjectMeta;

use super::{ABANDONED_BY, NAME, TIMEOUT_SECONDS, WithoutAnswer, abandonment, condition, rule};

/// Where a change of a ReplicaSet's replicas is held.
pub const REPLICA_SETS: &str = "/replica-sets";

/// Where marks of the gate that Boathook did not write are taken back.
pub const GATE_MARKS: &str = "/gate-marks";

/// The same, through the subresource `scale`.
pub const SCALES: &str = "/scales";

/// Where the annotation of a Deployment is put back.
pub const DEPLOYMENTS: &str = "/deployments";

/// Where a new rollout is told from the one that was aborted.
pub const DEPLOYMENT_STATUSES: &str = "/deployment-statuses";

/// Where it is written down who asks for a stage to be retried or skipped.
pub const ROLLOUT_REQUESTS: &str = "/rollout-requests";

/// What is mutated, by webhooks that are reached at each path as `reach` says. `own` is Boathook's own user name.
pub fn mutating(own: &str, reach: impl Fn(&str) -> WebhookClientConfig) -> MutatingWebhookConfiguration {
    let webhook = |name: &str, path, rule: RuleWithOperations, conditions, without_answer| MutatingWebhook {
        name: format!("{name}.{GROUP}"),
        client_config: reach(path),
        rules: Some(vec![rule]),
        match_conditions: Some(conditions),
        failure_policy: Some(
            match without_answer {
                WithoutAnswer::Refuse => "Fail",
                WithoutAnswer::LetThrough => "Ignore",
            }
            .to_owned(),
        ),
        match_policy: Some("Equivalent".to_owned()),
        reinvocation_policy: Some("Never".to_owned()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector::default()),
    };
    let webhooks = vec![
        // First: `replica-sets` itself takes the annotation from a ReplicaSet that is let go.
        webhook(
            "gate-marks",
            GATE_MARKS,
            // A status write takes labels and annotations along.
            rule(&["CREATE", "UPDATE"], "apps", &["replicasets", "replicasets/status"]),
            vec![
                condition("changes-a-mark", &changes_a_mark()),
                condition("not-by-us", &format!("request.userInfo.username != {}", quoted(own))),
            ],
            WithoutAnswer::Refuse,
        ),
        webhook(
            "replica-sets",
            REPLICA_SETS,
            rule(&["CREATE", "UPDATE"], "apps", &["replicasets"]),
            held(),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "scales",
            SCALES,
            rule(&["UPDATE"], "apps", &["replicasets/scale"]),
            vec![condition("moves", "object.spec.?replicas.orValue(0) != oldObject.spec.?replicas.orValue(0)")],
            WithoutAnswer::LetThrough,
        ),
        webhook(
            "deployments",
            DEPLOYMENTS,
            rule(&["UPDATE"], "apps", &["deployments", "deployments/status"]),
            vec![
                condition("drops-the-annotation", &format!("{} && !{}", annotated("oldObject"), annotated("object"))),
                condition("not-by-us", &format!("request.userInfo.username != {}", quoted(own))),
            ],
            WithoutAnswer::Refuse,
        ),
        webhook(
            "deployment-statuses",
            DEPLOYMENT_STATUSES,
            rule(&["UPDATE"], "apps", &["deployments/status"]),
            vec![
                condition(
                    "sees-a-new-template",
                    "object.status.?observedGeneration.orValue(0) > oldObject.status.?observedGeneration.orValue(0)",
                ),
                condition(
                    "was-aborted",
                    &format!(
                        "object.status.?conditions.orValue([]).exists(c, c.type == 'Progressing' && c.status == 'False' \
                         && c.?message.orValue('').startsWith({}))",
                        quoted(ABORT_PREFIX)
                    ),
                ),
            ],
            WithoutAnswer::LetThrough,
        ),
        webhook(
            "rollout-requests",
            ROLLOUT_REQUESTS,
            rule(&["CREATE", "UPDATE"], GROUP, &["deploymentlifecycles"]),
            vec![condition("asks-or-says-who-asked", &asks())],
            WithoutAnswer::Refuse,
        ),
        webhook(
            "abandoned-by",
            ABANDONED_BY,
            rule(&["CREATE", "UPDATE"], GROUP, &abandonment::KINDS),
            vec![
                condition("gives-up-or-says-who-did", &abandonment::changes_an_abandonment()),
                condition("not-by-us", &abandonment::not_by_us(own)),
            ],
            WithoutAnswer::Refuse,
        ),
    ];
    let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
    MutatingWebhookConfiguration { metadata, webhooks: Some(webhooks) }
}

/// A write that moves the replicas of a managed ReplicaSet, and is none of those that always may.
fn held() -> Vec<MatchCondition> {
    let desired = |object: &str| annotation(object, "deployment.kubernetes.io/desired-replicas");
    let (old_desired, new_desired) = (desired("oldObject"), desired("object"));
    let revision = annotation("object", "deployment.kubernetes.io/revision");
    let gate = label("oldObject");
    let (old, new) = ("oldObject.spec.?replicas.orValue(1)", "object.spec.?replicas.orValue(1)");
    let unless = |what: &str| format!("request.operation == 'CREATE' || !({what})");
    vec![
        condition(
            "managed",
            &format!(
                // Also a write that takes both away.
                "({0} && {1}) || (request.operation == 'UPDATE' && {2} && {3})",
                annotated("object"),
                controlled("object"),
                annotated("oldObject"),
                controlled("oldObject")
            ),
        ),
        condition("moves", &format!("request.operation == 'CREATE' ? {new} > 0 : {new} != {old}")),
        condition(
            "not-scaling",
            &unless(&format!("{old} > 0 && {old_desired} != '' && {old_desired} != {new_desired}")),
        ),
        condition("not-correction", &unless(&format!("{new} < {old} && string({new}) == {new_desired}"))),
        condition(
            "not-open",
            &unless(&format!(
                "{new} > {old} && {revision} != '' && {gate} in ['open.' + {revision}, 'done.' + {revision}]"
            )),
        ),
    ]
}

/// Whether the label of the gate is new or another one, or the annotation is dropped.
fn changes_a_mark() -> String {
    let (new, old) = (label("object"), label("oldObject"));
    let dropped = format!("{} && !{}", annotated("oldObject"), annotated("object"));
    format!("request.operation == 'CREATE' ? {new} != '' : ({new} != {old} || ({dropped}))")
}

fn label(object: &str) -> String {
    format!("{object}.metadata.?labels[?'{GATE}'].orValue('')")
}

/// Whether a Deployment controls it.
fn controlled(object: &str) -> String {
    format!(
        "{object}.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'Deployment' && o.?controller.orValue(false))"
    )
}

fn annotated(object: &str) -> String {
    format!("{object}.metadata.?annotations[?'{LIFECYCLE}'].hasValue()")
}

pub(super) fn annotation(object: &str, key: &str) -> String {
    format!("{object}.metadata.?annotations[?'{key}'].orValue('')")
}

/// Whether either annotation about requests is new, or another one.
fn asks() -> String {
    let changes = |key: &str| {
        let (new, old) = (annotation("object", key), annotation("oldObject", key));
        format!("(request.operation == 'CREATE' ? {new} != '' : {new} != {old})")
    };
    format!("{} || {}", changes(ROLLOUT_REQUEST), changes(ROLLOUT_REQUESTED_BY))
}

/// A text as CEL writes it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_quotes_stays_a_text() {
        assert_eq!(quoted(r"o'neill\x"), r"'o\'neill\\x'");
    }

    #[test]
    fn scaling_by_hand_and_statuses_go_on_without_an_answer_and_nothing_else_does() {
        let configuration = mutating("boathook", |_| WebhookClientConfig::default());
        for webhook in configuration.webhooks.unwrap() {
            let name = webhook.name.strip_suffix(".boathook.dev").unwrap();
            let expected = if ["scales", "deployment-statuses"].contains(&name) { "Ignore" } else { "Fail" };
            assert_eq!(webhook.failure_policy.as_deref(), Some(expected), "{name}");
        }
    }
}
