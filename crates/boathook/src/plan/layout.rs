//! What would be frozen and cut, in which order: what the controllers would decide, from what is there now. Nothing is
//! written.

use std::time::Duration;

use anyhow::Result;
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate,
    application_snapshot::{ApplicationSnapshotStatus, OnHookFailure, OtherPods, Phase, SnapshotRecord},
    execution_hook::ExecutionHookSpec,
    words::{condition, reason},
};
use boathook_controllers::{
    application_snapshot::{attached_volumes, before, claims_and_pods, used},
    execution_hook::look_at,
};
use boathook_decide::{
    Leadership,
    application_snapshot::{Claim, Effect, Observed, SeenSnapshot, Surroundings, User, covers, decide, hook},
};
use boathook_runtime::{Classified, ErrorClass};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Client, ResourceExt};
use serde::Serialize;

use super::{hook::Hook, risks::risks};
use crate::{objects, output::duration::shown, pods::Scope};

/// What would happen.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Layout {
    /// In the order of their PreActions.
    pub(crate) hooks: Vec<Hook>,
    pub(crate) cuts: Vec<Cut>,
    /// Why it would fail.
    pub(crate) reasons: Vec<String>,
    /// What may go wrong though it would work.
    pub(crate) risks: Vec<String>,
    /// What could not be found out.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cut {
    pub(crate) persistent_volume_claim_name: String,
    pub(crate) volume_snapshot_name: String,
    pub(crate) timeout_seconds: u64,
}

/// Where it is looked, and what counts as if it were there.
pub(crate) struct Place<'a> {
    pub(crate) client: &'a Client,
    pub(crate) namespace: &'a str,
    pub(crate) templates: &'a [ExecutionHookTemplate],
}

impl Place<'_> {
    pub(crate) fn scope(&self) -> Scope {
        Scope::Namespace(self.namespace.to_owned())
    }

    /// One of this namespace, from the file or from the cluster.
    pub(crate) async fn template(&self, name: &str) -> Result<Option<ExecutionHookTemplate>> {
        match self.templates.iter().find(|template| template.name_any() == name) {
            Some(template) => Ok(Some(template.clone())),
            None => objects::find(self.client, &self.scope(), name).await,
        }
    }

    pub(crate) async fn hook(&self, object: &ExecutionHook) -> Result<Layout> {
        let name = object.spec.execution_hook_template_name.clone().unwrap_or_else(|| object.name_any());
        let mut layout = Layout::default();
        match self.one(name, &object.spec).await? {
            Ok(hook) => layout.hooks.push(hook),
            Err(why) => layout.reasons.push(why),
        }
        layout.risks = risks(&layout.hooks, None);
        Ok(layout)
    }

    async fn one(&self, name: String, spec: &ExecutionHookSpec) -> Result<Result<Hook, String>> {
        let mut surroundings = look_at(self.client, self.namespace, spec).await?;
        if let Some(name) = &spec.execution_hook_template_name {
            surroundings.template = self.template(name).await?;
        }
        Ok(Hook::new(name, spec, &surroundings))
    }

    /// `snapshots` are those VolumeSnapshots that would be in its way.
    pub(crate) async fn snapshot(
        &self,
        object: &ApplicationSnapshot,
        snapshots: impl AsyncFnOnce(&[Claim]) -> Result<Vec<SeenSnapshot>>,
    ) -> Result<Layout> {
        let now = Timestamp::now();
        let mut object = object.clone();
        // As if it were created now: whatever is there came first.
        object.metadata.creation_timestamp = Some(Time(now));
        let mut layout = Layout::default();
        if let Err(wrong) = object.spec.validate() {
            layout.reasons.push(wrong);
            return Ok(layout);
        }
        let claims = self.claims(&object, &mut layout).await?;
        if let Some(other) = before(self.client, self.namespace, &object, &claims).await?.first() {
            layout.risks.push(format!(
                "ApplicationSnapshot `{}` is under way with the same claim: this one would share its freeze, if it has \
                 the same hooks, or come after it",
                other.name_any()
            ));
        }
        let missing_templates = self.missing_templates(&object).await?;
        let snapshots = snapshots(&claims).await?;
        // The caller adds a missing class to the reasons: the rest of the plan is worth showing.
        let surroundings = Surroundings {
            claims: claims.clone(),
            missing_templates,
            missing_class: None,
            before: None,
            author_checked: true,
        };
        let status = decided(&object, surroundings, snapshots, now);
        match &status.failure {
            Some(failure) if status.phase == Phase::Failed => {
                layout.reasons.push(failure.message.clone());
                return Ok(layout);
            }
            Some(failure) => layout.risks.push(format!("it would be cut without a freeze: {}", failure.message)),
            None => {}
        }
        let cut_timeout = u64::try_from(object.spec.cut_timeout_seconds).unwrap_or_default();
        let cut = |record: &SnapshotRecord| Cut {
            persistent_volume_claim_name: record.persistent_volume_claim_name.clone(),
            volume_snapshot_name: record.volume_snapshot_name.clone(),
            timeout_seconds: cut_timeout,
        };
        layout.cuts = status.snapshots.iter().map(cut).collect();
        self.hooks(&object, &status, &mut layout).await?;
        layout.risks.extend(risks(&layout.hooks, Some(Duration::from_secs(cut_timeout))));
        layout.risks.extend(of_snapshot(&object, &status, &claims, &layout.hooks));
        Ok(layout)
    }

    async fn claims(&self, object: &ApplicationSnapshot, layout: &mut Layout) -> Result<Vec<Claim>> {
        let (claims, pods) = claims_and_pods(self.client, self.namespace, &object.spec.source).await?;
        let attached = match attached_volumes(self.client).await {
            Ok(attached) => attached,
            Err(error) if error.class() == ErrorClass::Forbidden => {
                let note = "without the right to list volumeattachments this plan cannot see whether volumes are attached to a \
                            node: it counts only the pods that mount them";
                layout.notes.push(note.to_owned());
                vec![]
            }
            Err(error) => return Err(error.into()),
        };
        Ok(used(&claims, &pods, &attached))
    }

    async fn missing_templates(&self, object: &ApplicationSnapshot) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for info in &object.spec.execution_hook_infos {
            let name = &info.execution_hook_template_name;
            if self.template(name).await?.is_none() {
                missing.push(name.clone());
            }
        }
        Ok(missing)
    }

    async fn hooks(
        &self,
        object: &ApplicationSnapshot,
        status: &ApplicationSnapshotStatus,
        layout: &mut Layout,
    ) -> Result<()> {
        let all = status.hooks.len();
        for (place, record) in status.hooks.iter().enumerate() {
            let name = &record.execution_hook_template_name;
            let why = match self.one(name.clone(), &hook(object, status, place).spec).await? {
                Ok(hook) => {
                    layout.hooks.push(hook);
                    continue;
                }
                Err(why) => format!("hook {} of {all} (`{name}`): {why}", place + 1),
            };
            match object.spec.on_hook_failure {
                OnHookFailure::Fail => layout.reasons.push(why),
                OnHookFailure::CrashConsistent => layout.risks.push(format!("{why}; it would be cut anyway")),
            }
        }
        Ok(())
    }
}

/// What the controller would write down of it at its first look.
fn decided(
    object: &ApplicationSnapshot,
    surroundings: Surroundings,
    snapshots: Vec<SeenSnapshot>,
    now: Timestamp,
) -> ApplicationSnapshotStatus {
    let observed = Observed {
        object,
        identity: "plan",
        leadership: Leadership::Leader,
        surroundings: Some(surroundings),
        snapshots,
        refused: None,
        hooks: vec![],
        others: vec![],
        present: None,
        at_the_cut: None,
    };
    let written = decide(&observed, now).effects.into_iter().find_map(|effect| match effect {
        Effect::WriteStatus(status) => Some(*status),
        Effect::AddFinalizer
        | Effect::RemoveFinalizer
        | Effect::Follow(_)
        | Effect::CreateHook(_)
        | Effect::ThawHook(_)
        | Effect::DeleteHook { .. }
        | Effect::CreateSnapshot(_)
        | Effect::DeleteSnapshot { .. }
        | Effect::MarkSnapshot { .. }
        | Effect::SetOwner(_)
        | Effect::Delete => None,
    });
    written.unwrap_or_default()
}

/// What may go wrong with the whole.
fn of_snapshot(
    object: &ApplicationSnapshot,
    status: &ApplicationSnapshotStatus,
    claims: &[Claim],
    hooks: &[Hook],
) -> Vec<String> {
    let mut risks = Vec::new();
    let idle =
        status.conditions.iter().any(|said| said.type_ == condition::FROZEN && said.reason == reason::NOT_IN_USE);
    if object.spec.execution_hook_infos.is_empty() {
        risks.push("there are no executionHookInfos: nothing is frozen, and it is only crash-consistent".to_owned());
    } else if idle {
        risks.push("no running pod uses the claims: nothing would be frozen".to_owned());
    }
    let freezes: Duration = hooks.iter().map(Hook::freeze_timeout).sum();
    let given = object.spec.freeze_timeout_seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs().into()));
    if let Some(given) = given.filter(|given| *given < freezes) {
        let (needed, given) = (shown(freezes), shown(given));
        risks.push(format!("the PreActions may take {needed}, but freezeTimeoutSeconds allows only {given}"));
    }
    if hooks.is_empty() {
        return risks;
    }
    let is_covered = |user: &User| {
        let runs_there = |hook: &Hook| hook.containers.iter().any(|frozen| frozen.pod == user.name);
        hooks.iter().any(|hook| runs_there(hook) || covers(&hook.spec, hook.policy, user))
    };
    for claim in claims {
        for user in claim.pods.iter().filter(|user| !is_covered(user)) {
            risks.push(uncovered(object.spec.other_pods, user, &claim.name));
        }
    }
    risks
}

fn uncovered(other_pods: OtherPods, user: &User, claim: &str) -> String {
    let name = &user.name;
    match (user.running, other_pods) {
        (false, _) => format!("pod `{name}` (it is not Running) mounts claim `{claim}` and is not frozen"),
        (true, OtherPods::MustBeCovered) => {
            format!("pod `{name}` mounts claim `{claim}` and no hook covers it: the snapshot is only crash-consistent")
        }
        (true, OtherPods::Vouched) => {
            format!("pod `{name}` mounts claim `{claim}` and no hook covers it: `otherPods: Vouched` vouches for it")
        }
    }
}
