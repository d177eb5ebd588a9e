//! The webhook configurations `boathook`, without the CAs, which the webhooks' servers add themselves.
//!
//! Each webhook is narrow: `matchConditions`, decided in the API server, let through exactly the requests that matter,
//! so an outage of Boathook can stop only those. Everything is stated, also what the API server would default, so that
//! what is stored can be compared with what is wanted.
//!
//! The annotations of a pod change by an update of the pod and of `pods/status`, and by the annotations of the Binding
//! that assigns it to a node; other subresources keep the metadata, but are watched likewise: it costs nothing. The labels
//! of a pod change likewise.

mod abandonment;
mod gate;
mod hook_pods;

use boathook_api::words::{
    EXECUTION_HOOK_INFOS, EXECUTION_HOOK_TEMPLATE_LABEL, GROUP, NOTIFIERS_PREFIX, SNAPSHOT_MARKS,
};
use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::api::ObjectMeta;

/// The configuration's name.
pub const NAME: &str = "boathook";

/// Where the authors of commands, and of what runs commands, are checked.
pub const AUTHORS: &str = "/authors";

/// Where the declarations of a new pod are validated.
pub const POD_DECLARATIONS: &str = "/pod-declarations";

/// Where the declarations in the template of a workload are validated.
pub const TEMPLATE_DECLARATIONS: &str = "/template-declarations";

/// Where changes of declarations are refused.
pub const DECLARATION_CHANGES: &str = "/declaration-changes";

/// Where a marked VolumeSnapshot waits until the application is frozen.
pub const VOLUME_SNAPSHOTS: &str = "/volume-snapshots";

/// Where the annotations that only Boathook sets on a VolumeSnapshot are refused from other users.
pub const SNAPSHOT_VERDICTS: &str = "/snapshot-verdicts";

/// Where statuses that only Boathook's controller writes are refused from other users.
pub const RECORDS: &str = "/records";

/// Where hook pods of other users are refused.
pub const HOOK_PODS: &str = "/hook-pods";

/// Where the right to give up an undo is checked.
pub const ABANDONMENTS: &str = "/abandonments";

/// Where the removal of a finalizer is refused while it keeps an undo from being lost.
pub const FINALIZERS: &str = "/finalizers";

/// Where the user who gives up an undo is written down.
pub const ABANDONED_BY: &str = "/abandoned-by";

pub use gate::{DEPLOYMENT_STATUSES, DEPLOYMENTS, GATE_MARKS, REPLICA_SETS, ROLLOUT_REQUESTS, SCALES, mutating};

/// How long the API server waits. The server gives up earlier, in its own words.
const TIMEOUT_SECONDS: i32 = 10;

/// Hooks take their time: as long as Kubernetes lets a webhook have.
pub const HOLD_SECONDS: i32 = 30;

const WRITES: &[&str] = &["CREATE", "UPDATE"];

/// What becomes of a request when the webhook cannot be asked.
#[derive(Clone, Copy)]
enum WithoutAnswer {
    Refuse,
    /// For a webhook that is a courtesy.
    LetThrough,
}

/// What is validated, by webhooks that are reached at each path as `reach` says. `own` is Boathook's own user name.
pub fn validating(own: &str, reach: impl Fn(&str) -> WebhookClientConfig) -> ValidatingWebhookConfiguration {
    let webhook = |name: &str, path, rule, condition, without_answer| ValidatingWebhook {
        name: format!("{name}.{GROUP}"),
        client_config: reach(path),
        rules: Some(vec![rule]),
        match_conditions: Some(vec![condition]),
        failure_policy: Some(
            match without_answer {
                WithoutAnswer::Refuse => "Fail",
                WithoutAnswer::LetThrough => "Ignore",
            }
            .to_owned(),
        ),
        match_policy: Some("Equivalent".to_owned()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector::default()),
    };
    let webhooks = vec![
        webhook(
            "inline-actions",
            AUTHORS,
            rule(&["CREATE"], GROUP, &["podnotifications"]),
            condition(
                "has-an-action",
                "has(object.spec.action) || (has(object.spec.undo) && has(object.spec.undo.action))",
            ),
            WithoutAnswer::Refuse,
        ),
        // It creates PodNotifications for its author.
        webhook(
            "notifications",
            AUTHORS,
            rule(&["CREATE"], GROUP, &["notifications"]),
            condition("names-a-notifier", "has(object.spec.notifier)"),
            WithoutAnswer::Refuse,
        ),
        // Its actions never change, and a thaw asks nobody.
        webhook(
            "hook-actions",
            AUTHORS,
            rule(&["CREATE"], GROUP, &["executionhooks"]),
            condition("has-an-action", "has(object.spec.preAction) || has(object.spec.postAction)"),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "template-actions",
            AUTHORS,
            rule(&["CREATE", "UPDATE"], GROUP, &["executionhooktemplates"]),
            // Actions, timeouts, policy and expiry all decide how a freeze is taken back.
            condition("changes-the-hook", "request.operation == 'CREATE' || object.spec != oldObject.spec"),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "snapshot-hooks",
            AUTHORS,
            rule(&["CREATE"], GROUP, &["applicationsnapshots"]),
            condition("has-hooks", "has(object.spec.executionHookInfos) && object.spec.executionHookInfos.size() > 0"),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "lifecycle-hooks",
            AUTHORS,
            rule(&["CREATE", "UPDATE"], GROUP, &["deploymentlifecycles"]),
            condition("changes-a-hook", "request.operation == 'CREATE' || object.spec != oldObject.spec"),
            WithoutAnswer::Refuse,
        ),
        // A hook and a rollout run what their statuses have recorded, the phase of a rollout confirms the gate's marks, and a
        // snapshot's status says how consistent it is.
        webhook(
            "records",
            RECORDS,
            rule(
                &["UPDATE"],
                GROUP,
                &[
                    "applicationsnapshots/status",
                    "deploymentlifecycles/status",
                    "executionhooks/status",
                    "notifications/status",
                ],
            ),
            condition("not-by-us", &format!("request.userInfo.username != {}", gate::quoted(own))),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "notification-records",
            RECORDS,
            rule(&["UPDATE"], GROUP, &["podnotifications/status"]),
            condition("not-by-us-nor-an-agent", &records_without_agent(own)),
            WithoutAnswer::Refuse,
        ),
        ValidatingWebhook {
            rules: Some(vec![rule(&["CREATE"], "", &["pods"]), rule(&["UPDATE"], "", &["pods", "pods/*"])]),
            ..webhook(
                "hook-pods",
                HOOK_PODS,
                rule(WRITES, "", &["pods"]),
                condition("creates-or-changes-a-hook-pod", &hook_pods::written(own)),
                WithoutAnswer::Refuse,
            )
        },
        // The labels of a Binding become those of its pod.
        webhook(
            "hook-pods-by-binding",
            HOOK_PODS,
            rule(&["CREATE"], "", &["bindings", "pods/binding"]),
            condition("labels-a-hook-pod", &hook_pods::labelled_by_binding(own)),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "pod-declarations",
            POD_DECLARATIONS,
            rule(&["CREATE"], "", &["pods"]),
            condition("declares", &declares("object")),
            WithoutAnswer::LetThrough,
        ),
        ValidatingWebhook {
            rules: Some(vec![
                rule(WRITES, "apps", &["daemonsets", "deployments", "replicasets", "statefulsets"]),
                rule(WRITES, "batch", &["cronjobs", "jobs"]),
                rule(WRITES, "", &["replicationcontrollers"]),
            ]),
            ..webhook(
                "template-declarations",
                TEMPLATE_DECLARATIONS,
                rule(WRITES, "apps", &["deployments"]),
                condition("writes-a-declaration", &template_declares()),
                WithoutAnswer::LetThrough,
            )
        },
        webhook(
            "declaration-changes",
            DECLARATION_CHANGES,
            rule(&["UPDATE"], "", &["pods", "pods/*"]),
            condition("changes-a-declaration", &changes_a_declaration()),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "declarations-by-binding",
            DECLARATION_CHANGES,
            rule(&["CREATE"], "", &["bindings", "pods/binding"]),
            condition("declares", &declares("object")),
            WithoutAnswer::Refuse,
        ),
        ValidatingWebhook {
            side_effects: "NoneOnDryRun".to_owned(),
            timeout_seconds: Some(HOLD_SECONDS),
            ..webhook(
                "volume-snapshots",
                VOLUME_SNAPSHOTS,
                rule(&["CREATE"], "snapshot.storage.k8s.io", &["volumesnapshots"]),
                condition("asks-for-hooks", &asks_for_hooks()),
                WithoutAnswer::Refuse,
            )
        },
        webhook(
            "snapshot-verdicts",
            SNAPSHOT_VERDICTS,
            rule(&["CREATE", "UPDATE"], "snapshot.storage.k8s.io", &["volumesnapshots", "volumesnapshots/*"]),
            condition("sets-a-verdict", &sets_a_verdict(own)),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "abandonments",
            ABANDONMENTS,
            rule(WRITES, GROUP, &abandonment::KINDS),
            condition("gives-up-an-undo", &abandonment::gives_up(own)),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "undo-finalizers",
            FINALIZERS,
            rule(&["UPDATE"], GROUP, &["podnotifications"]),
            condition("drops-an-owed-undo", &abandonment::drops_an_owed_undo(own)),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "hook-finalizers",
            FINALIZERS,
            rule(&["UPDATE"], GROUP, &["executionhooks"]),
            condition("drops-an-owed-thaw", &abandonment::drops_an_owed_thaw(own)),
            WithoutAnswer::Refuse,
        ),
        webhook(
            "snapshot-finalizers",
            FINALIZERS,
            rule(&["UPDATE"], GROUP, &["applicationsnapshots"]),
            condition("drops-hooks-under-way", &abandonment::drops_hooks_under_way(own)),
            WithoutAnswer::Refuse,
        ),
    ];
    let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
    ValidatingWebhookConfiguration { metadata, webhooks: Some(webhooks) }
}

fn rule(operations: &[&str], group: &str, resources: &[&str]) -> RuleWithOperations {
    let owned = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    RuleWithOperations {
        operations: owned(operations),
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec!["*".to_owned()]),
        resources: owned(resources),
        scope: Some("Namespaced".to_owned()),
    }
}

fn condition(name: &str, expression: &str) -> MatchCondition {
    MatchCondition { name: name.to_owned(), expression: expression.to_owned() }
}

/// Whether an object has an annotation that declares.
fn declares(object: &str) -> String {
    let annotations = format!("{object}.metadata.annotations");
    format!("has({annotations}) && {annotations}.exists(key, key.startsWith('{NOTIFIERS_PREFIX}'))")
}

/// Whether a write changes the spec of a workload whose template, or whose jobs' template, declares.
fn template_declares() -> String {
    let declares = |template: &str| {
        let annotations = format!("object.?spec.{template}.?metadata.?annotations");
        format!("{annotations}.orValue({{}}).exists(key, key.startsWith('{NOTIFIERS_PREFIX}'))")
    };
    format!(
        "({} || {}) && (request.operation == 'CREATE' || object.spec != oldObject.spec)",
        declares("?template"),
        declares("?jobTemplate.?spec.?template")
    )
}

/// Whether there is a declaration in one of them that the other has not, or has otherwise.
fn changes_a_declaration() -> String {
    let lacks = |one: &str, other: &str| {
        let (ours, theirs) = (format!("{one}.metadata.annotations"), format!("{other}.metadata.annotations"));
        format!(
            "(has({ours}) && {ours}.exists(key, key.startsWith('{NOTIFIERS_PREFIX}') && (!has({theirs}) || \
             !(key in {theirs}) || {theirs}[key] != {ours}[key])))"
        )
    };
    format!("{} || {}", lacks("object", "oldObject"), lacks("oldObject", "object"))
}

/// Whether a user other than Boathook writes the status of a PodNotification that no agent carries out. Agents have
/// identities that are not known here, and their undos must not depend on a webhook.
fn records_without_agent(own: &str) -> String {
    let executor = "oldObject.?status.?executor.orValue('')";
    format!("request.userInfo.username != {} && {executor} != 'agent'", gate::quoted(own))
}

/// Whether another user than Boathook sets an annotation that only Boathook sets. Removing one claims nothing, and
/// `kubectl replace` removes them.
fn sets_a_verdict(own: &str) -> String {
    let sets = |key: &&str| {
        let (new, old) = (gate::annotation("object", key), gate::annotation("oldObject", key));
        format!("({new} != '' && (request.operation == 'CREATE' || {new} != {old}))")
    };
    let sets: Vec<_> = SNAPSHOT_MARKS.iter().map(sets).collect();
    format!("request.userInfo.username != {} && ({})", gate::quoted(own), sets.join(" || "))
}

/// Whether a VolumeSnapshot of a claim is marked.
fn asks_for_hooks() -> String {
    let has = |map: &str, key: &str| format!("(has(object.metadata.{map}) && '{key}' in object.metadata.{map})");
    format!(
        "has(object.spec.source.persistentVolumeClaimName) && ({} || {})",
        has("annotations", EXECUTION_HOOK_INFOS),
        has("labels", EXECUTION_HOOK_TEMPLATE_LABEL)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_courtesies_let_requests_through_without_an_answer() {
        let configuration = validating("boathook", |_| WebhookClientConfig::default());
        for webhook in configuration.webhooks.unwrap() {
            let courtesies = ["pod-declarations.boathook.dev", "template-declarations.boathook.dev"];
            let expected = if courtesies.contains(&webhook.name.as_str()) { "Ignore" } else { "Fail" };
            assert_eq!(webhook.failure_policy.as_deref(), Some(expected), "{}", webhook.name);
            assert_eq!(webhook.match_conditions.map(|conditions| conditions.len()), Some(1), "{}", webhook.name);
        }
    }
}
