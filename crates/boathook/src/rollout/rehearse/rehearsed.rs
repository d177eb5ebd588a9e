//! What would come of a change to one Deployment, its lifecycle, or both: decided as the controller does, from what the
//! API server says it would store. Nothing is written.

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{RolloutPhase, Stage},
    words::{LIFECYCLE, LIFECYCLE_REQUIRED, condition},
};
use boathook_decide::deployment_lifecycle::{Deployment, Strategy, strategy_mistake};
use kube::ResourceExt;
use serde::Serialize;

use super::{
    risks::risks,
    stage::{Staged, staged},
};
use crate::{output::plain::in_words, rights::Answer};

/// What is there, and what would be.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) deployment: Pair<Deployment>,
    pub(super) lifecycle: Pair<DeploymentLifecycle>,
    pub(super) rights: Vec<Answer>,
    /// What the API server refused of it.
    pub(super) refusals: Vec<String>,
}

/// One object: as it is, and as it would be.
#[derive(Clone, Debug)]
pub(super) struct Pair<T> {
    pub(super) now: Option<T>,
    pub(super) then: Option<T>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rehearsed {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) would_work: bool,
    /// What kind of rollout the change makes.
    pub(super) rollout: Outlook,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strategy: Option<&'static str>,
    pub(super) replicas: i32,
    pub(super) stages: Vec<Staged>,
    /// Why it would fail.
    pub(super) reasons: Vec<String>,
    /// What may go wrong though it would work.
    pub(super) risks: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) rights: Vec<Answer>,
}

/// What the change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Outlook {
    /// A new version is rolled out, and held at its stages.
    Held,
    /// A new version is rolled out, and nothing holds it.
    NotHeld,
    /// The template is as it was: no rollout. The hooks are for the next one.
    None,
}

pub(super) fn rehearsed(change: Change) -> Rehearsed {
    let Change { name, namespace, deployment, lifecycle, rights, refusals } = change;
    let mut reasons: Vec<_> = rights
        .iter()
        .filter(|answer| !answer.granted)
        .map(|answer| format!("you may not {} in namespace `{namespace}`", answer.right))
        .collect();
    reasons.extend(refusals);
    let outlook = outlook(&deployment);
    let (mut risks_found, mut notes) = (Vec::new(), Vec::new());
    let mut stages = Vec::new();
    if let (Some(after), Some(hooks)) = (&deployment.then, &lifecycle.then) {
        reasons.extend(strategy_mistake(&hooks.spec, after.strategy));
        stages = staged(hooks, after, deployment.now.is_none());
        reasons.extend(stages.iter().filter(|staged| staged.pod.is_none()).map(|staged| unknown(staged, hooks, after)));
        risks_found = risks(&stages);
        risks_found.extend(of_moment(&deployment, &lifecycle, outlook));
        if after.paused {
            notes.push("the Deployment is paused: nothing starts before `kubectl rollout resume`".to_owned());
        }
        if deployment.now.as_ref().zip(Some(after)).is_some_and(|(now, then)| now.replicas != then.replicas) {
            notes.push(format!("it is scaled to {}: no hook runs for that", after.replicas));
        }
    }
    Rehearsed {
        would_work: reasons.is_empty(),
        rollout: outlook,
        strategy: deployment.then.as_ref().map(|after| strategy_name(after.strategy)),
        replicas: deployment.then.as_ref().map_or(0, |after| after.replicas),
        stages,
        reasons,
        risks: risks_found,
        notes,
        rights,
        name,
        namespace,
    }
}

fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::RollingUpdate => "RollingUpdate",
        Strategy::Recreate => "Recreate",
    }
}

/// That there is a lifecycle holds nothing: its Deployment must have been adopted, which is what the annotation says.
fn outlook(deployment: &Pair<Deployment>) -> Outlook {
    match (&deployment.now, &deployment.then) {
        (Some(now), Some(then)) if now.template == then.template => Outlook::None,
        (Some(now), Some(_)) if now.lifecycle.is_some() => Outlook::Held,
        (None, Some(then)) if then.lifecycle.as_deref() == Some(LIFECYCLE_REQUIRED) => Outlook::Held,
        (_, Some(_)) => Outlook::NotHeld,
        (_, None) => Outlook::None,
    }
}

/// What is risky because of how things stand now.
fn of_moment(deployment: &Pair<Deployment>, lifecycle: &Pair<DeploymentLifecycle>, outlook: Outlook) -> Option<String> {
    if outlook == Outlook::NotHeld {
        return Some(not_held(deployment, lifecycle.now.as_ref()));
    }
    let rollout = lifecycle.now.as_ref()?.status.as_ref()?.rollout.as_ref()?;
    let revision = rollout.revision.as_deref().unwrap_or("(not created yet)");
    match (rollout.phase, outlook) {
        (RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Rolling | RolloutPhase::Post, Outlook::Held) => {
            Some(format!(
                "revision {revision} is under way ({}) and would be superseded: its running hook would be stopped",
                in_words(&rollout.phase)
            ))
        }
        (RolloutPhase::Complete | RolloutPhase::Aborted, _) | (_, Outlook::None | Outlook::NotHeld) => None,
    }
}

/// Why a rollout is not held, and what to do first.
fn not_held(deployment: &Pair<Deployment>, lifecycle: Option<&DeploymentLifecycle>) -> String {
    let nothing = "nothing holds this rollout, and its hooks run only at the next one";
    if deployment.now.is_none() {
        return format!("{nothing}: annotate the Deployment `{LIFECYCLE}: {LIFECYCLE_REQUIRED}`");
    }
    let first = match lifecycle {
        None => "create the DeploymentLifecycle first, and wait for its condition Accepted".to_owned(),
        Some(lifecycle) => {
            let conditions = lifecycle.status.iter().flat_map(|status| &status.conditions);
            let mut refusals = conditions.filter(|known| known.type_ == condition::ACCEPTED && known.status == "False");
            let why = refusals.next().map(|refusal| format!(" (it is not now: {})", refusal.message));
            format!(
                "wait until its DeploymentLifecycle has the condition Accepted{}, and change the template after that",
                why.unwrap_or_default()
            )
        }
    };
    match deployment.then.as_ref().is_some_and(|then| then.lifecycle.is_some()) {
        true => format!(
            "`{LIFECYCLE}` comes together with a new template: it holds the new version, but not the one that runs, \
             which Kubernetes begins to end at once; annotate the Deployment in a write of its own before, or {first}"
        ),
        false => format!("{nothing}: {first}"),
    }
}

fn unknown(staged: &Staged, lifecycle: &DeploymentLifecycle, deployment: &Deployment) -> String {
    let stage: Stage = staged.stage;
    let named = lifecycle.spec.hook(stage).map(|hook| hook.exec_new_pod.container_name.as_str()).unwrap_or_default();
    let there = deployment.pod_template.spec.iter().flat_map(|spec| &spec.containers);
    let there: Vec<_> = there.map(|container| format!("`{}`", container.name)).collect();
    format!(
        "{stage}: the template of Deployment `{}` has no container `{named}`; it has: {}",
        lifecycle.name_any(),
        there.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::super::verdict::tests::{condition as refusal, deployment, lifecycle, template},
        *,
    };

    /// From `v2` to `v3` with these hooks.
    fn change(then: Value, hooks: Value) -> Change {
        let mut next = json!({"spec": {"template": template("v3"), "progressDeadlineSeconds": 60}});
        next["spec"]["strategy"] = json!({"type": "RollingUpdate"});
        for (key, value) in then.as_object().unwrap() {
            next["spec"][key] = value.clone();
        }
        let mut lifecycle = lifecycle("Complete", json!({}));
        lifecycle.spec = serde_json::from_value(hooks).unwrap();
        let seen = |more| Some(deployment(more).seen().unwrap());
        Change {
            name: "web".to_owned(),
            namespace: "sea".to_owned(),
            deployment: Pair { now: seen(json!({})), then: seen(next) },
            lifecycle: Pair { now: Some(lifecycle.clone()), then: Some(lifecycle) },
            rights: vec![],
            refusals: vec![],
        }
    }

    fn hook(policy: &str, more: Value) -> Value {
        let mut run = json!({"containerName": "web", "command": ["test", "now"]});
        for (key, value) in more.as_object().unwrap() {
            run[key] = value.clone();
        }
        json!({"failurePolicy": policy, "execNewPod": run})
    }

    #[test]
    fn the_pod_of_a_stage_is_made_from_the_new_template() {
        let found = rehearsed(change(json!({}), json!({"pre": hook("Abort", json!({"env": [{"name": "A"}]}))})));
        assert_eq!((found.rollout, found.would_work, found.risks.len()), (Outlook::Held, true, 0), "{found:?}");
        assert_eq!(found.stages[0].pod_text().unwrap(), "container web of image v3, env A");
        assert_eq!(found.stages[0].policy_text(), "Abort, at most 1m");
        assert_eq!(found.stages[0].held, "the new version is held, the old one serves");
    }

    #[test]
    fn a_first_version_is_held_while_nothing_serves() {
        let mut first = change(json!({}), json!({"pre": hook("Abort", json!({}))}));
        first.deployment.now = None;
        assert_eq!(rehearsed(first).stages[0].held, "the first version is held, nothing serves yet");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (then, hooks, words) in [
            (json!({}), json!({"mid": hook("Abort", json!({}))}), "mid needs the strategy `Recreate`"),
            (json!({}), json!({"post": hook("Abort", json!({}))}), "post with `failurePolicy: Abort`"),
            (
                json!({}),
                json!({"pre": hook("Abort", json!({"containerName": "wob"}))}),
                "no container `wob`; it has: `web`",
            ),
        ] {
            let found = rehearsed(change(then, hooks));
            assert!(!found.would_work && found.reasons.iter().any(|why| why.contains(words)), "{words}: {found:?}");
        }
        let mut refused = change(json!({}), json!({"pre": hook("Abort", json!({}))}));
        refused.rights = vec![Answer { right: "create pods".to_owned(), granted: false }];
        assert_eq!(rehearsed(refused).reasons, ["you may not create pods in namespace `sea`"]);
    }

    #[test]
    fn what_is_risky_is_said() {
        let volumes = json!({"volumes": ["data"]});
        let data = json!({"spec": {"containers": [{"name": "web"}], "volumes": [{"name": "data"}]}});
        let recreate = json!({"type": "Recreate"});
        for (then, hooks, words) in [
            (
                json!({"strategy": recreate}),
                json!({"mid": hook("Abort", json!({}))}),
                "mid stops everything: no version serves",
            ),
            (
                json!({"strategy": recreate}),
                json!({"post": hook("Abort", json!({}))}),
                "a failed post fails the rollout",
            ),
            (json!({"progressDeadlineSeconds": 600}), json!({"pre": hook("Retry", json!({}))}), "retried for 10m"),
            (json!({}), json!({"pre": hook("Ignore", json!({}))}), "it cannot veto the rollout"),
            (json!({}), json!({"pre": hook("Abort", volumes.clone())}), "volumes data, which the template lacks"),
            (json!({"template": data}), json!({"pre": hook("Abort", volumes)}), "which its container does not mount"),
        ] {
            let found = rehearsed(change(then, hooks));
            assert!(found.would_work, "{found:?}");
            assert!(found.risks.len() == 1 && found.risks[0].contains(words), "{words}: {:?}", found.risks);
        }
    }

    #[test]
    fn whether_it_is_held_depends_on_what_was_there_before() {
        let hooks = || json!({"pre": hook("Abort", json!({}))});
        let same = rehearsed(change(json!({"template": template("v2")}), hooks()));
        assert_eq!(same.rollout, Outlook::None);
        let mut new = change(json!({}), hooks());
        (new.deployment.now, new.lifecycle.now) = (None, None);
        let not_held = rehearsed(new.clone());
        assert_eq!(not_held.rollout, Outlook::NotHeld);
        assert!(not_held.risks[0].contains("`boathook.dev/lifecycle: required`"), "{:?}", not_held.risks);
        new.deployment.then.as_mut().unwrap().lifecycle = Some(LIFECYCLE_REQUIRED.to_owned());
        assert_eq!(rehearsed(new).rollout, Outlook::Held);

        let mut under_way = change(json!({}), hooks());
        under_way.lifecycle.now = Some(lifecycle("Mid", json!({})));
        let risks = rehearsed(under_way).risks;
        assert!(risks[0].contains("revision 2 is under way (Mid) and would be superseded"), "{risks:?}");
    }

    #[test]
    fn a_deployment_that_is_not_adopted_is_not_held() {
        let mut mended = change(json!({"strategy": {"type": "Recreate"}}), json!({"mid": hook("Abort", json!({}))}));
        let (now, then) = (mended.deployment.now.as_mut().unwrap(), mended.deployment.then.as_mut().unwrap());
        (now.strategy, now.lifecycle, then.lifecycle) = (Strategy::RollingUpdate, None, None);
        let refused = json!({"status": {"conditions": [refusal("Accepted", "False", "Strategy", "mid needs it")]}});
        mended.lifecycle.now = Some(lifecycle("Complete", refused));
        let found = rehearsed(mended.clone());
        assert_eq!(found.rollout, Outlook::NotHeld);
        let words = "the condition Accepted (it is not now: mid needs it), and change the template after that";
        assert!(found.risks[1].starts_with("nothing holds this rollout"), "{:?}", found.risks);
        assert!(found.risks[1].ends_with(words), "{:?}", found.risks);

        mended.lifecycle.now = None;
        let risks = rehearsed(mended.clone()).risks;
        assert!(
            risks[1].ends_with("create the DeploymentLifecycle first, and wait for its condition Accepted"),
            "{risks:?}"
        );
        mended.deployment.then.as_mut().unwrap().lifecycle = Some(LIFECYCLE_REQUIRED.to_owned());
        let risks = rehearsed(mended).risks;
        assert!(
            risks[1].contains("comes together with a new template: it holds the new version, but not"),
            "{risks:?}"
        );
    }
}
