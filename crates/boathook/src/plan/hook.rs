//! One hook of a plan: in which containers, with which commands, for how long.

use std::time::Duration;

use boathook_api::{
    HookAction,
    execution_hook::{ExecutionHookSpec, RecordedHook},
    hook_action::{HookPolicy, ValidHookAction},
};
use boathook_decide::execution_hook::{Pod, Surroundings, Target, plan};
use serde::Serialize;

use crate::output::{
    action::{deed_text, hook_action_text},
    duration::shown,
    plain::one_line,
};

/// A hook that would freeze.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hook {
    /// Its template; or its own name, if it names none.
    pub(crate) name: String,
    pub(crate) policy: HookPolicy,
    pub(crate) expiration_seconds: Option<i32>,
    /// The session of its PreAction is held until the thaw.
    pub(crate) holds_session: bool,
    /// Something takes its PreAction back.
    pub(crate) thaws: bool,
    pub(crate) containers: Vec<Container>,
    /// How many pods are selected; with ExecuteOnce it runs in one of them.
    pub(crate) selected_pods: usize,
    #[serde(skip)]
    pub(crate) spec: ExecutionHookSpec,
}

/// One container that would be frozen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Container {
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) pre_action: Step,
    pub(crate) post_action: Option<Step>,
}

/// What is run there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// As a person would say it.
    pub(crate) what: String,
    pub(crate) timeout_seconds: u64,
}

impl Hook {
    /// As the controller would pin it; or why it would not freeze.
    pub(crate) fn new(name: String, spec: &ExecutionHookSpec, surroundings: &Surroundings) -> Result<Self, String> {
        let (recorded, targets) = plan(spec, surroundings).map_err(|refusal| refusal.message)?;
        let mut containers = Vec::new();
        for Target { pod_name, pod_uid, containers: names } in &targets {
            let pod = surroundings.pods.iter().find(|pod| pod.uid == *pod_uid);
            for container in names {
                let step = |action: &HookAction| step(action, pod, container);
                containers.push(Container {
                    pod: pod_name.clone(),
                    container: container.clone(),
                    pre_action: step(&recorded.pre_action)?,
                    post_action: recorded.post_action.as_ref().map(step).transpose()?,
                });
            }
        }
        let RecordedHook { policy, pre_action, post_action, expiration_seconds } = recorded;
        let holds_session = pre_action.holds();
        Ok(Self {
            name,
            policy,
            expiration_seconds,
            holds_session,
            thaws: holds_session || post_action.is_some(),
            containers,
            selected_pods: surroundings.pods.len(),
            spec: spec.clone(),
        })
    }

    /// The longest that its freeze may take.
    pub(crate) fn freeze_timeout(&self) -> Duration {
        let longest = self.containers.iter().map(|container| container.pre_action.timeout_seconds).max();
        Duration::from_secs(longest.unwrap_or_default())
    }
}

impl Step {
    pub(crate) fn text(&self) -> String {
        format!("{} (at most {})", self.what, shown(Duration::from_secs(self.timeout_seconds)))
    }
}

fn step(action: &HookAction, pod: Option<&Pod>, container: &str) -> Result<Step, String> {
    match action.validate()? {
        ValidHookAction::Inline(action) => {
            Ok(Step { what: deed_text(&action.deed), timeout_seconds: action.timeout.as_secs() })
        }
        ValidHookAction::Notifier(name) => {
            let name = one_line(&name);
            let pod = pod.ok_or_else(|| hook_action_text(action))?;
            let declared = pod.declared.as_ref().map_err(|wrong| format!("pod `{}`: {}", pod.name, one_line(wrong)))?;
            let mut of = declared.of(&name).filter(|(declaring, _)| *declaring == container);
            let (_, notifier) = of.next().ok_or_else(|| {
                format!("container `{container}` of pod `{}` declares no notifier `{name}`", pod.name)
            })?;
            let what = format!("{} (notifier {name})", deed_text(&notifier.action.deed));
            Ok(Step { what, timeout_seconds: notifier.action.timeout.as_secs() })
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use boathook_api::Declarations;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn pod(name: &str, declared: &str) -> Pod {
        let containers: Vec<_> = ["main", "log"].map(str::to_owned).into();
        let annotations = [("notifiers.boathook.dev/main".to_owned(), declared.to_owned())].into();
        let declared = Declarations::parse(&annotations, &containers).map_err(|mistake| mistake.to_string());
        let created = jiff::Timestamp::UNIX_EPOCH;
        Pod { name: name.to_owned(), uid: name.to_owned(), created, running: true, ready: true, containers, declared }
    }

    pub(crate) fn hook(name: &str, mut spec: Value, pods: Vec<Pod>) -> Result<Hook, String> {
        spec["podSelector"] = json!({"matchLabels": {"app": "db"}});
        let spec = serde_json::from_value(spec).unwrap();
        Hook::new(name.to_owned(), &spec, &Surroundings { template: None, pods, author_checked: true })
    }

    #[test]
    fn a_notifier_is_what_its_pod_declares() {
        let declared = "[{name: freeze, handler: {exec: {command: [quiesce, now]}}, timeoutSeconds: 7}]";
        let spec = json!({"preAction": {"notifier": "freeze"}, "postAction": {"exec": {"command": ["thaw"]}}});
        let planned = hook("db", spec.clone(), vec![pod("db-0", declared)]).unwrap();
        assert_eq!(planned.containers.len(), 1, "{planned:?}");
        assert_eq!(planned.containers[0].pre_action.text(), "quiesce now (notifier freeze) (at most 7s)");
        assert_eq!(planned.containers[0].post_action.as_ref().unwrap().text(), "thaw (at most 10s)");
        assert_eq!(planned.freeze_timeout(), Duration::from_secs(7));
        let refused = hook("db", spec, vec![pod("db-0", "[]")]).unwrap_err();
        assert!(refused.contains("declares notifier `freeze`"), "{refused}");
        let undeclared = json!({"preAction": {"notifier": "freeze"}, "postAction": {"notifier": "thaw"}});
        let refused = hook("db", undeclared, vec![pod("db-0", declared)]).unwrap_err();
        assert_eq!(refused, "container `main` of pod `db-0` declares no notifier `thaw`");
    }
}
