//! What another user has made before an attempt, and does with it afterwards.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate, Notification, PodNotification,
    application_snapshot::Phase,
    words::{EXECUTION_HOOK_LABEL, condition},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        application_snapshots, conditions,
        execution_hooks::{self, is_thawed},
        notifications::{pod_notification, state},
        recording::recorder_on,
    },
    claims::claim,
    snapshots::{VolumeSnapshot, snapshot},
    watch::Watchable,
};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::attacks::{ANNOTATION, APPLICATION_SNAPSHOT, HOOK_KIND, Kind, LABEL, Place, TEMPLATE, Victim, records};

/// Longer than any scenario: no freeze ends by itself.
const NEVER: i32 = 86_400;

impl Victim {
    /// Creates it, and waits for nothing.
    pub(super) async fn create(self, ctx: &Ctx, place: &Place) -> Result<()> {
        let (freeze, thaw) = (records(&freeze(place)), records(&thaw(place)));
        let inline = json!({"preAction": freeze, "postAction": thaw, "expirationSeconds": NEVER});
        match self {
            Self::None | Self::Pod => {}
            Self::Unscheduled => {
                let mut pod = recorder_on(ctx, &place.claim, &place.victim()).build();
                pod.spec.get_or_insert_default().scheduler_name = Some("nobody".to_owned());
                ctx.create(&pod).await?;
            }
            Self::FrozenSnapshot => {
                // A claim of its own, and a pod that uses it: another snapshot of the same claim would be waited for.
                ctx.create(&claim(&place.victim()).build()).await?;
                ctx.create(&recorder_on(ctx, &place.victim(), &place.victim()).build()).await?;
                ctx.create(&written::<ExecutionHookTemplate>(&TEMPLATE, place, inline)?).await?;
            }
            Self::Notification => {
                let spec = json!({"podName": place.pod, "action": freeze, "undo": {"action": thaw}});
                let mut object = pod_notification(&place.victim(), spec)?;
                object.labels_mut().insert(LABEL.to_owned(), place.number.to_string());
                object.annotations_mut().insert(ANNOTATION.to_owned(), String::new());
                ctx.create(&object).await?;
            }
            Self::Hook | Self::Child => {
                let mut spec = inline;
                spec["podContainerNamesList"] = place.target();
                ctx.create(&written::<ExecutionHook>(&HOOK_KIND, place, spec)?).await?;
            }
            Self::Template => {
                ctx.create(&written::<ExecutionHookTemplate>(&TEMPLATE, place, inline)?).await?;
            }
            Self::Traced => {
                let spec = json!({"preAction": place.command(), "postAction": place.command()});
                ctx.create(&written::<ExecutionHookTemplate>(&TEMPLATE, place, spec)?).await?;
            }
            Self::ApplicationSnapshot => {
                let spec = json!({"source": {"persistentVolumeClaimName": "absent"}});
                ctx.create(&written::<ApplicationSnapshot>(&APPLICATION_SNAPSHOT, place, spec)?).await?;
            }
            Self::VolumeSnapshot => {
                let mut object = snapshot(&place.victim(), &place.claim);
                object.labels_mut().insert(LABEL.to_owned(), place.number.to_string());
                object.annotations_mut().insert(ANNOTATION.to_owned(), String::new());
                ctx.create(&object).await?;
            }
        }
        Ok(())
    }

    /// Waits until it is as the attempt needs it, and returns the name of what is attacked.
    pub(super) async fn ready(self, ctx: &Ctx, place: &Place) -> Result<String> {
        let name = place.victim();
        match self {
            Self::Notification => _ = ctx.ended(&name).await?,
            Self::Hook => _ = ctx.tried(&name).await?,
            Self::Child => {
                ctx.tried(&name).await?;
                let selector = ListParams::default().labels(&format!("{EXECUTION_HOOK_LABEL}={name}"));
                let children = ctx.api::<PodNotification>().list(&selector).await?;
                return Ok(children.items.first().context("a hook without a notification")?.name_any());
            }
            Self::ApplicationSnapshot => _ = ctx.over(&name).await?,
            Self::FrozenSnapshot => {
                ctx.ready(&name).await?;
                let info = json!({"executionHookTemplateName": name, "podContainerNamesList": place.target()});
                let spec = json!({"source": {"persistentVolumeClaimName": name}, "executionHookInfos": [info],
                    "volumeSnapshotClassName": place.silent_class, "cutTimeoutSeconds": 3600});
                ctx.create(&written::<ApplicationSnapshot>(&APPLICATION_SNAPSHOT, place, spec)?).await?;
                ctx.in_phase(&name, Phase::Cutting).await?;
            }
            Self::Pod => return Ok(place.pod.clone()),
            Self::None | Self::Template | Self::Traced | Self::VolumeSnapshot | Self::Unscheduled => {}
        }
        Ok(name)
    }

    /// What its owner does with it afterwards, so that what was written into it runs if it ever does.
    pub(super) async fn use_it(self, ctx: &Ctx, place: &Place) -> Result<()> {
        match self {
            Self::Notification => {
                let asked = Patch::Merge(json!({"spec": {"undoRequested": true}}));
                let api = ctx.api::<PodNotification>();
                if_there(api.patch(&place.victim(), &PatchParams::default(), &asked).await.map(drop))
            }
            Self::Template => {
                let mut hook = hook_of(&place.victim(), place)?;
                hook.metadata.name = Some(format!("use-{}", place.number));
                ctx.create(&hook).await.map(drop)
            }
            Self::Pod => {
                let spec = json!({"podName": place.pod, "notifier": place.trace()});
                ctx.create(&pod_notification(&format!("use-{}", place.number), spec)?).await.map(drop)
            }
            Self::Unscheduled => {
                let name = place.victim();
                let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": place.node}});
                let pods = ctx.api::<Pod>();
                let bound: kube::Result<Value> =
                    pods.create_subresource("binding", &name, &PostParams::default(), &binding).await;
                // The attempt may have bound it.
                let is_bound = matches!(&bound, Err(kube::Error::Api(status)) if status.code == 409);
                ensure!(bound.is_ok() || is_bound, "{bound:?}");
                ctx.ready(&name).await?;
                let spec = json!({"podName": name, "notifier": place.trace()});
                ctx.create(&pod_notification(&format!("use-{}", place.number), spec)?).await.map(drop)
            }
            // Its storage would never cut.
            Self::FrozenSnapshot => {
                let snapshots = ctx.api::<ApplicationSnapshot>();
                if_there(snapshots.delete(&place.victim(), &DeleteParams::default()).await.map(drop))
            }
            Self::None | Self::Hook | Self::Child | Self::Traced | Self::ApplicationSnapshot | Self::VolumeSnapshot => {
                Ok(())
            }
        }
    }

    /// Whether it writes when it freezes, and so must write when it thaws.
    pub(super) fn freezes(self) -> bool {
        match self {
            Self::Notification | Self::Hook | Self::Child | Self::Template | Self::FrozenSnapshot => true,
            Self::None
            | Self::Traced
            | Self::ApplicationSnapshot
            | Self::VolumeSnapshot
            | Self::Pod
            | Self::Unscheduled => false,
        }
    }
}

/// Runs the templates that the adversary has made.
pub(super) async fn run_new_templates(ctx: &Ctx, place: &Place) -> Result<()> {
    let selector = ListParams::default().labels(&format!("{LABEL}={}", place.number));
    for template in ctx.api::<ExecutionHookTemplate>().list(&selector).await?.items {
        let name = template.name_any();
        if name != place.victim() {
            ctx.create(&hook_of(&name, place)?).await?;
        }
    }
    Ok(())
}

/// A hook that runs this template in the attempt's pod.
fn hook_of(template: &str, place: &Place) -> Result<ExecutionHook> {
    let spec = json!({"executionHookTemplateName": template, "podContainerNamesList": place.target()});
    let mut hook: ExecutionHook = written(&HOOK_KIND, place, spec)?;
    hook.metadata.name = Some(format!("run-{template}"));
    Ok(hook)
}

/// Waits until everything has run that does not wait for a deletion.
pub(super) async fn settle(ctx: &Ctx) -> Result<()> {
    let said = |conditions: &[Condition], kind: &str| conditions::said(conditions, kind).map(|(status, _)| status);
    let is_true = |conditions: &[Condition], kind: &str| said(conditions, kind).as_deref() == Some("True");
    settled::<ApplicationSnapshot>(ctx, |object| application_snapshots::status(object).phase.is_terminal()).await?;
    settled::<Notification>(ctx, |object| {
        object.status.as_ref().is_some_and(|status| is_true(&status.conditions, condition::COMPLETE))
    })
    .await?;
    settled::<ExecutionHook>(ctx, |hook| {
        let status = execution_hooks::status(hook);
        let refused = said(&status.conditions, condition::ACCEPTED).as_deref() == Some("False");
        refused || status.pre_action_succeed.is_some() || is_thawed(hook)
    })
    .await?;
    settled::<PodNotification>(ctx, |object| state(object).is_terminal()).await
}

/// Waits until this holds for each object that is not being deleted.
async fn settled<K>(ctx: &Ctx, holds: impl Fn(&K) -> bool) -> Result<()>
where
    K: Watchable + Resource<Scope = NamespaceResourceScope>,
{
    let what = format!("the {} have settled", K::plural(&()));
    let open = |object: &K| object.meta().deletion_timestamp.is_none() && !holds(object);
    ctx.watch::<K>("").await?.until(DEADLINE, &what, |seen| !seen.now.values().any(open)).await.map(drop)
}

/// Deletes what there is, which thaws it, and waits until it is gone.
pub(super) async fn delete_all(ctx: &Ctx) -> Result<()> {
    delete::<Notification>(ctx).await?;
    delete::<ApplicationSnapshot>(ctx).await?;
    delete::<ExecutionHook>(ctx).await?;
    delete::<PodNotification>(ctx).await?;
    delete::<ExecutionHookTemplate>(ctx).await?;
    delete::<VolumeSnapshot>(ctx).await
}

/// Ends the round's pod and those of the victims.
pub(super) async fn delete_pods(ctx: &Ctx) -> Result<()> {
    delete::<Pod>(ctx).await
}

async fn delete<K>(ctx: &Ctx) -> Result<()>
where
    K: Watchable + Resource<Scope = NamespaceResourceScope>,
{
    ctx.api::<K>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let what = format!("the {} are gone", K::plural(&()));
    ctx.watch::<K>("").await?.until(DEADLINE, &what, |seen| seen.now.is_empty()).await.map(drop)
}

pub(super) fn freeze(place: &Place) -> String {
    format!("freeze-{}", place.number)
}

pub(super) fn thaw(place: &Place) -> String {
    format!("thaw-{}", place.number)
}

fn if_there(outcome: kube::Result<()>) -> Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => Ok(outcome?),
    }
}

fn written<K: DeserializeOwned>(kind: &Kind, place: &Place, spec: Value) -> Result<K> {
    let metadata = json!({"name": place.victim(), "labels": {LABEL: place.number.to_string()},
        "annotations": {ANNOTATION: ""}});
    let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
    serde_json::from_value(object).with_context(|| format!("a victim of kind {} has no such spec", kind.kind))
}
