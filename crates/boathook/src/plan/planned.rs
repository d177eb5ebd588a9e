//! The plan of one object: what would happen, whether the caller may, and whether the API server would take it.

use anyhow::Result;
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate,
    hook_action::{HookAction, HookPolicy},
    snapshot_mark::{self, Mark},
    volume_snapshot::VolumeSnapshot,
    words::{EXECUTION_HOOK_INFOS, EXECUTION_HOOK_TEMPLATE_LABEL},
};
use boathook_controllers::{
    application_snapshot::missing_class,
    webhooks::{Right, fits, intended, seconds_for_hooks},
};
use boathook_decide::application_snapshot::{Claim, SeenSnapshot, snapshot_name};
use kube::{Resource, ResourceExt};
use serde::Serialize;

use super::{
    layout::{Layout, Place},
    risks,
};
use crate::{
    objects::{self, Kind},
    rights::{self, Answer},
};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Planned {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) would_work: bool,
    /// Only of a template: what it would do, wherever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) template: Option<Template>,
    #[serde(flatten)]
    pub(super) layout: Layout,
    pub(super) rights: Vec<Answer>,
}

/// A pair of actions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Template {
    pub(super) policy: HookPolicy,
    pub(super) pre_action: HookAction,
    pub(super) post_action: Option<HookAction>,
    pub(super) expiration_seconds: Option<i32>,
}

pub(super) async fn of_snapshot(place: &Place<'_>, object: &ApplicationSnapshot) -> Result<Planned> {
    let mut layout = place.snapshot(object, async |claims| in_the_way(place, object, claims).await).await?;
    let class = object.spec.volume_snapshot_class_name.as_deref();
    layout.reasons.extend(missing_class(place.client, class).await?);
    finished(place, object, layout, &[]).await
}

pub(super) async fn of_hook(place: &Place<'_>, object: &ExecutionHook) -> Result<Planned> {
    let layout = place.hook(object).await?;
    finished(place, object, layout, &[]).await
}

/// A template by itself; its risks are told with the hooks that name it, if any does.
pub(super) async fn of_template(place: &Place<'_>, object: &ExecutionHookTemplate, used: bool) -> Result<Planned> {
    let spec = object.spec.clone();
    let mut layout = Layout::default();
    for (field, action) in [("preAction", Some(&spec.pre_action)), ("postAction", spec.post_action.as_ref())] {
        let wrong = action.and_then(|action| action.validate().err());
        layout.reasons.extend(wrong.map(|wrong| format!("{field}: {wrong}")));
    }
    if !used {
        let holds = spec.pre_action.holds();
        let thaws = holds || spec.post_action.is_some();
        layout.risks = risks::of_actions(&object.name_any(), thaws, holds, spec.expiration_seconds);
    }
    let mut planned = finished(place, object, layout, &[]).await?;
    planned.template = Some(Template {
        policy: spec.policy,
        pre_action: spec.pre_action,
        post_action: spec.post_action,
        expiration_seconds: spec.expiration_seconds,
    });
    Ok(planned)
}

/// The second door.
pub(super) async fn of_marked(place: &Place<'_>, object: &VolumeSnapshot) -> Result<Planned> {
    let (layout, marked) = match snapshot_mark::of(object.annotations(), object.labels()) {
        Err(mistake) => (failing(mistake.to_string()), true),
        Ok(None) => {
            let risk = format!(
                "it is not marked, so nothing is frozen: write the annotation `{EXECUTION_HOOK_INFOS}` or the label \
                 `{EXECUTION_HOOK_TEMPLATE_LABEL}`"
            );
            (Layout { risks: vec![risk], ..Layout::default() }, false)
        }
        Ok(Some(mark)) => (of_mark(place, object, mark).await?, true),
    };
    let besides: &[Right] = if marked { &[Right::Hook] } else { &[] };
    finished(place, object, layout, besides).await
}

async fn of_mark(place: &Place<'_>, object: &VolumeSnapshot, mark: Mark) -> Result<Layout> {
    let mut hooks = Vec::new();
    for info in &mark.infos {
        let template = place.template(&info.execution_hook_template_name).await?;
        hooks.extend(template.map(|template| (info.clone(), template)));
    }
    let claim = object.spec.source.persistent_volume_claim_name.as_deref().unwrap_or_default();
    let seconds = seconds_for_hooks();
    let mut layout = place.snapshot(&intended(object, mark, seconds), async |_| Ok(vec![])).await?;
    layout.reasons.extend(fits(place.client, place.namespace, claim, &hooks, seconds).await?.err());
    let class = object.spec.volume_snapshot_class_name.as_deref();
    layout.reasons.extend(missing_class(place.client, class).await?);
    Ok(layout)
}

fn failing(reason: String) -> Layout {
    Layout { reasons: vec![reason], ..Layout::default() }
}

/// VolumeSnapshots under the names that it would give: nobody made them for an object that is not there yet.
async fn in_the_way(place: &Place<'_>, object: &ApplicationSnapshot, claims: &[Claim]) -> Result<Vec<SeenSnapshot>> {
    let mut found = Vec::new();
    for claim in claims {
        let name = snapshot_name(object, &claim.name, claims.len());
        if let Some(there) = objects::find::<VolumeSnapshot>(place.client, &place.scope(), &name).await? {
            found.push(SeenSnapshot {
                name,
                uid: there.uid().unwrap_or_default(),
                ours: false,
                deleted: false,
                cut: false,
                error: None,
                last_error: None,
                consistency: None,
            });
        }
    }
    Ok(found)
}

async fn finished<K: Kind>(place: &Place<'_>, object: &K, mut layout: Layout, besides: &[Right]) -> Result<Planned> {
    let namespace = place.namespace.to_owned();
    let rights = rights::to_create(place.client, &namespace, object, besides).await?;
    let missing: Vec<_> = rights.iter().filter(|answer| !answer.granted).collect();
    layout
        .reasons
        .extend(missing.iter().map(|answer| format!("you may not {} in namespace `{namespace}`", answer.right)));
    if missing.is_empty() {
        let mut tried = object.clone();
        tried.meta_mut().namespace = Some(namespace.clone());
        let is_template = K::kind(&()) == ExecutionHookTemplate::kind(&());
        match objects::try_to_create(place.client, &place.scope(), &tried).await? {
            Ok(()) => {}
            // It would be replaced by `kubectl apply`.
            Err(refused) if refused.is_there && is_template => {}
            Err(refused) => layout.reasons.push(refused.message),
        }
    }
    let would_work = layout.reasons.is_empty();
    let (kind, name) = (K::kind(&()).into_owned(), object.name_any());
    Ok(Planned { kind, name, namespace, would_work, template: None, layout, rights })
}
