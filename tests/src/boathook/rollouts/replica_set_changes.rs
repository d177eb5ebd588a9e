//! What may become of a ReplicaSet that is held: by everything that was seen before, was its rollout as far as that?

use anyhow::{Context, Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Rollout, RolloutPhase, Stage},
    words::GATE,
};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::PodTemplateSpec};
use kube::ResourceExt;

use super::{
    history::{History, exit_code, hook_stage, is_managed, template_of},
    invariants::{Rollouts, replicas_of},
    passed_stages::{StageThen, runs_for},
    story::{Now, Thing},
};
use crate::boathook::lifecycles::rollout;

const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";

/// One change of a ReplicaSet.
pub(super) struct SetChange<'a> {
    /// What there was just before it.
    pub(super) before: &'a Now,
    /// As it was after it.
    pub(super) set: &'a ReplicaSet,
    /// Which change it was of all.
    pub(super) place: usize,
    pub(super) rollouts: &'a Rollouts,
    pub(super) history: &'a History,
}

impl SetChange<'_> {
    pub(super) fn check(&self) -> Result<()> {
        let name = self.set.name_any();
        let Some(known) = self.before.sets.get(&name) else {
            ensure!(replicas_of(self.set) == 0, "ReplicaSet `{name}` was made with pods");
            return Ok(());
        };
        if is_open(self.set) && !is_open(known) {
            self.opens()?;
        }
        if is_draining(self.set) && gate(known) != gate(self.set) && is_managed(known) {
            self.is_let_go()?;
        }
        let (was, is) = (replicas_of(known), replicas_of(self.set));
        let scales = was > 0 && desired(known) != desired(self.set);
        match is.cmp(&was) {
            _ if scales => Ok(()),
            std::cmp::Ordering::Greater => self.grows(),
            std::cmp::Ordering::Less if desired(self.set) == Some(is.to_string()) => Ok(()),
            std::cmp::Ordering::Less => self.shrinks(known),
            std::cmp::Ordering::Equal => Ok(()),
        }
    }

    /// Only when pre and mid of its rollout have passed, unless with its Deployment, if it has pods already.
    fn grows(&self) -> Result<()> {
        let rollout = self.its_rollout()?;
        for stage in [Stage::Pre, Stage::Mid] {
            let passed = self.has_passed(rollout, stage);
            ensure!(passed, "ReplicaSet `{}` grew before {stage} of its rollout had passed", self.set.name_any());
        }
        Ok(())
    }

    /// Only what was let go, and not before pre of the rollout that is recorded has passed.
    ///
    /// For which rollout it was let go is not asked: a shrink that was allowed just before another template was written
    /// may be written just after it, until the mark is revoked, which is done before pre of that template is recorded.
    fn shrinks(&self, known: &ReplicaSet) -> Result<()> {
        let name = self.set.name_any();
        ensure!(is_draining(known), "ReplicaSet `{name}` shrank, and nobody had let it go");
        match self.recorded()? {
            Some((RolloutPhase::Pre, rollout)) => {
                ensure!(self.has_passed(rollout, Stage::Pre), "ReplicaSet `{name}` shrank before pre had passed");
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Only when pre of the rollout that is recorded has passed. While it is adopted, none is.
    fn is_let_go(&self) -> Result<()> {
        let passed = self.recorded()?.is_none_or(|(_, rollout)| self.has_passed(rollout, Stage::Pre));
        ensure!(passed, "ReplicaSet `{}` was let go before pre had passed", self.set.name_any());
        Ok(())
    }

    /// The rollout that was recorded just before, and the phase that it was in.
    fn recorded(&self) -> Result<Option<(RolloutPhase, &Rollout)>> {
        let Some(recorded) = self.before.lifecycle.as_ref().and_then(rollout) else { return Ok(None) };
        let at_last = self.rollouts.get(&recorded.start_time).context("a rollout that nobody recorded")?;
        Ok(Some((recorded.phase, at_last)))
    }

    /// Never when another template was already wanted. Whoever opens it has looked at the Deployment after its hooks had
    /// passed: what was written only after that may have come too late.
    fn opens(&self) -> Result<()> {
        // It was deleted after Boathook had looked at it, and its ReplicaSets go with it: none of them can roll out.
        let Some(deployment) = &self.before.deployment else { return Ok(()) };
        let wanted = deployment.spec.as_ref().map(|spec| &spec.template);
        if template_of(self.set).as_ref() == wanted {
            return Ok(());
        }
        // Whoever opened it was stopped before it recorded what for, and nobody ever did: no hook had passed for it.
        let Ok(rollout) = self.its_rollout() else { return Ok(()) };
        // A pod that has succeeded changes again, when it is deleted.
        let succeeded = |stage: Stage| {
            self.history.moments()[..self.place].iter().position(|moment| match &moment.thing {
                Thing::Pod(pod) => {
                    runs_for(pod, rollout) && hook_stage(pod) == Some(stage.as_str()) && exit_code(pod) == Some(0)
                }
                Thing::Lifecycle(_) | Thing::Deployment(_) | Thing::ReplicaSet(_) => false,
            })
        };
        let looked = Stage::ALL.into_iter().filter_map(succeeded).max();
        let name = self.set.name_any();
        ensure!(
            self.template_since(wanted) > looked,
            "ReplicaSet `{name}` was opened when another template was wanted already"
        );
        Ok(())
    }

    /// The rollout by which this ReplicaSet is let in: recorded before; or, of one that was made just now, soon.
    fn its_rollout(&self) -> Result<&Rollout> {
        let name = self.set.name_any();
        let of_set = |lifecycle: &DeploymentLifecycle| {
            let of_set = rollout(lifecycle).filter(|rollout| rollout.replica_set.as_ref() == Some(&name));
            of_set.map(|rollout| rollout.start_time.clone())
        };
        let recorded = self.before.lifecycle.as_ref().and_then(of_set);
        let soon = || {
            self.history.moments()[self.place..].iter().find_map(|moment| match &moment.thing {
                Thing::Lifecycle(lifecycle) => of_set(lifecycle),
                Thing::Deployment(_) | Thing::ReplicaSet(_) | Thing::Pod(_) => None,
            })
        };
        let began = recorded.or_else(soon).with_context(|| format!("ReplicaSet `{name}` moved for no rollout"))?;
        self.rollouts.get(&began).context("a rollout that nobody recorded")
    }

    fn has_passed(&self, rollout: &Rollout, stage: Stage) -> bool {
        let Self { before, place, history, .. } = *self;
        StageThen { rollout, stage, history, place, before }.has_passed()
    }

    /// Since when this template was wanted, without a break.
    fn template_since(&self, wanted: Option<&PodTemplateSpec>) -> Option<usize> {
        let template = |thing: &Thing| match thing {
            Thing::Deployment(one) => Some(one.spec.as_ref().map(|spec| spec.template.clone())),
            Thing::Lifecycle(_) | Thing::Pod(_) | Thing::ReplicaSet(_) => None,
        };
        let other = self.last_place(|thing| template(thing).is_some_and(|template| template.as_ref() != wanted))?;
        let since = &self.history.moments()[other + 1..self.place];
        since.iter().position(|moment| template(&moment.thing).is_some()).map(|place| other + 1 + place)
    }

    fn last_place(&self, holds: impl Fn(&Thing) -> bool) -> Option<usize> {
        self.history.moments()[..self.place].iter().rposition(|moment| holds(&moment.thing))
    }
}

/// Whether it is let in, by any revision.
fn is_open(set: &ReplicaSet) -> bool {
    gate(set).is_some_and(|gate| gate.starts_with("open."))
}

/// Whether its pods may go, for any target.
fn is_draining(set: &ReplicaSet) -> bool {
    gate(set).is_some_and(|gate| gate.starts_with("draining."))
}

fn gate(set: &ReplicaSet) -> Option<&String> {
    set.labels().get(GATE)
}

fn desired(set: &ReplicaSet) -> Option<String> {
    set.annotations().get(DESIRED_REPLICAS).cloned()
}
