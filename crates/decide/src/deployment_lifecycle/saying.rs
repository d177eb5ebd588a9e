//! What people read: conditions of the lifecycle and of the Deployment, and reports.

use boathook_api::words::{ABORT_PREFIX, HOLDS, condition, reason};

use super::{Decision, Deployment, DeploymentCondition, Effect, HookPod, Look, Observed, drain::LONG};
use crate::{About, Gravity, Report, conditions};

impl Look<'_> {
    /// Whether the hooks can be run for the Deployment; else why not.
    pub(super) fn set_accepted(&mut self, refusal: Option<(&'static str, &str)>) {
        match refusal {
            None => self.set(condition::ACCEPTED, "True", reason::MANAGED, "Boathook manages the Deployment"),
            Some((reason, message)) => {
                let before = conditions::find(&self.status.conditions, condition::ACCEPTED);
                let known = before.is_some_and(|before| before.status == "False" && before.reason == reason);
                if !known {
                    self.warn(reason, "Accept", message.to_owned());
                }
                self.set(condition::ACCEPTED, "False", reason, message);
            }
        }
    }

    pub(super) fn set_complete(&mut self, reason: &'static str, message: &str) {
        self.set(condition::COMPLETE, "True", reason, message);
        self.set(condition::FAILED, "False", reason, "");
    }

    pub(super) fn set_under_way(&mut self, reason: &'static str, message: &str) {
        self.set(condition::COMPLETE, "False", reason, message);
        self.set(condition::FAILED, "False", reason, "");
    }

    pub(super) fn set_failed(&mut self, message: &str) {
        self.set(condition::COMPLETE, "False", reason::ABORTED, message);
        self.set(condition::FAILED, "True", reason::ABORTED, message);
    }

    fn set(&mut self, kind: &'static str, status: &'static str, reason: &'static str, message: &str) {
        let saying = conditions::Saying { kind, status, reason, message };
        conditions::set(&mut self.status.conditions, saying, self.observed.object.metadata.generation, self.now);
    }

    pub(super) fn refused(mut self, reason: &'static str, message: &str) -> Decision {
        self.set_accepted(Some((reason, message)));
        self.write_status();
        self.decision
    }

    pub(super) fn without_a_deployment(mut self) -> Decision {
        let name = self.observed.object.metadata.name.clone().unwrap_or_default();
        let message = format!("Deployment `{name}` not found in this namespace: Boathook waits until you create it");
        self.set_accepted(Some((reason::DEPLOYMENT_NOT_FOUND, &message)));
        self.set_under_way(reason::DEPLOYMENT_NOT_FOUND, &message);
        self.write_status();
        self.decision
    }

    /// Says on the Deployment how far its rollout is, if that does not stand there yet.
    pub(super) fn say(&mut self, deployment: &Deployment, reason: &'static str, message: &str) {
        let status = if reason == reason::COMPLETE { "True" } else { "False" };
        let before = deployment.ours.as_ref();
        if before.is_some_and(|ours| ours.status == status && ours.reason == reason && ours.message == message) {
            return;
        }
        let since = before.filter(|ours| ours.status == status && ours.reason == reason);
        self.decision.effects.push(Effect::SetCondition(DeploymentCondition {
            kind: condition::LIFECYCLE,
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_update: self.now,
            last_transition: since.map_or(self.now, |ours| ours.last_transition),
        }));
    }

    /// Nothing goes on beside a hook that still ends.
    pub(super) fn wait_for_a_hook(&mut self, deployment: &Deployment, reason: &'static str, message: &str) {
        let pod = self.observed.hook_pods.iter().find(|pod| pod.live).map_or("", |pod| &pod.name);
        self.wait(deployment, reason, &format!("{message}: pod `{pod}`"));
    }

    /// A hook's pod that should have gone by now, and what to do: its node may be gone.
    pub(super) fn overdue(&mut self) -> Option<String> {
        let ending = self.observed.hook_pods.iter().filter(|pod| pod.live);
        let (gone_by, pod) = ending.filter_map(|pod| Some((pod.gone_by?, pod))).min_by_key(|(gone_by, _)| *gone_by)?;
        if self.now < gone_by + LONG {
            self.again(gone_by + LONG);
            return None;
        }
        Some(way_out(self.observed, pod))
    }

    /// What the Deployment controller was told of an abort is over: somebody has had the stage retried or skipped.
    pub(super) fn take_back_the_abort(&mut self, deployment: &Deployment) {
        let progressing = deployment.progressing.as_ref();
        let Some(told) = progressing.filter(|told| told.status == "False" && told.message.starts_with(ABORT_PREFIX))
        else {
            return;
        };
        if deployment.observed_generation < deployment.generation {
            // Admission takes it back when the new template is seen.
            return;
        }
        self.decision.effects.push(Effect::SetCondition(DeploymentCondition {
            status: "True",
            reason: reason::REPLICA_SET_UPDATED.to_owned(),
            message: HOLDS.to_owned(),
            last_update: self.now,
            last_transition: self.now,
            ..told.clone()
        }));
    }

    pub(super) fn report(&mut self, reason: &'static str, action: &'static str, note: String) {
        self.tell(Gravity::Normal, reason, action, note);
    }

    pub(super) fn warn(&mut self, reason: &'static str, action: &'static str, note: String) {
        self.tell(Gravity::Warning, reason, action, note);
    }

    fn tell(&mut self, gravity: Gravity, reason: &'static str, action: &'static str, note: String) {
        let reason = reason.to_owned();
        self.decision.reports.push(Report { about: About::ObjectAndSubject, gravity, reason, action, note });
    }
}

/// What a person does about a hook's pod that should have gone.
pub(super) fn way_out(observed: &Observed<'_>, pod: &HookPod) -> String {
    let (name, namespace) = (&pod.name, observed.object.metadata.namespace.as_deref().unwrap_or_default());
    format!(
        "hook pod `{name}` was deleted and has not ended: check its node. If it runs nowhere, run `kubectl delete pod \
         {name} -n {namespace} --force`"
    )
}

/// The name of what it is about.
pub(super) fn name(observed: &Observed<'_>) -> String {
    observed.object.metadata.name.clone().unwrap_or_default()
}
