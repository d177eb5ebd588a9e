//! `boathook drill`: freezes and thaws as a snapshot would, cuts nothing, and says how long it took.
//!
//! Whatever happens after the first hook was created, every hook is asked to thaw and deleted.

mod outcome;
mod session;

use std::{process::ExitCode, time::Duration};

use anyhow::{Result, bail};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate,
    application_snapshot::{ApplicationSnapshotSpec, HookRecord, Phase, SnapshotSource},
    snapshot_mark,
    words::DRILL_LABEL,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Client, ResourceExt, core::ObjectMeta};
use serde_json::json;

use crate::{
    commands::signals::Signals,
    manifest::{Manifest, Wanted},
    objects,
    output::{self, Screen, format::Format},
    plan::{Hook, Layout, Place},
    timeline, unique,
    waiting::INTERRUPTED,
};
use session::Session;

/// What a person asked for.
pub(crate) struct Drill {
    pub(crate) namespace: String,
    pub(crate) manifest: Manifest,
    pub(crate) timeout: Duration,
    pub(crate) format: Format,
}

impl Drill {
    pub(crate) async fn run(self, client: &Client, mut signals: Signals) -> Result<ExitCode> {
        let mut screen = if self.format.is_for_programs() { Screen::aside() } else { Screen::new() };
        let [wanted] = self.manifest.wanted.as_slice() else {
            bail!("the file must contain exactly one ApplicationSnapshot, ExecutionHook or marked VolumeSnapshot")
        };
        let namespace = wanted.namespace().unwrap_or_else(|| self.namespace.clone());
        let place = Place { client, namespace: &namespace, templates: &[] };
        let layout = tokio::select! {
            layout = layout(&place, wanted) => layout?,
            () = signals.received() => {
                screen.note("interrupted: nothing was frozen");
                return Ok(ExitCode::from(INTERRUPTED));
            }
        };
        layout.risks.iter().for_each(|risk| screen.warn(risk));
        if !layout.reasons.is_empty() {
            bail!("nothing was frozen: {}", layout.reasons.join("; "));
        }
        if layout.hooks.is_empty() {
            bail!("nothing was frozen: no running pod uses the claims");
        }
        let word = unique::word();
        let hooks = layout.hooks.iter().enumerate().map(|(place, hook)| made(hook, &word, place, &namespace));
        let story = story(&layout.hooks, &word);
        let mut session = Session::new(client, &namespace, (DRILL_LABEL, &word), story, screen, signals);
        let (outcome, hooks) = session.run(hooks.collect(), self.timeout).await?;
        let timeline = timeline::of_snapshot(session.story(), &hooks, Timestamp::now());
        let mut screen = session.into_screen();
        if !self.format.is_for_programs() {
            timeline::print(&timeline, &mut screen)?;
        }
        outcome.tell(&namespace, &mut screen)?;
        let mut object = timeline::value(&timeline);
        object["kind"] = json!("Drill");
        object["namespace"] = json!(namespace);
        object["outcome"] = json!(outcome.word());
        if let Some(text) = self.format.text(&object)? {
            output::print(&text)?;
        }
        Ok(outcome.code())
    }
}

/// What a snapshot by these words would freeze. Nothing is cut, so nothing can be in the way of a cut.
async fn layout(place: &Place<'_>, wanted: &Wanted) -> Result<Layout> {
    let snapshot = match wanted {
        Wanted::Hook(hook) => return place.hook(hook).await,
        Wanted::Snapshot(snapshot) => {
            check(place, &snapshot.spec).await?;
            (**snapshot).clone()
        }
        Wanted::Marked(marked) => {
            let mark = snapshot_mark::of(marked.annotations(), marked.labels())?;
            let source = SnapshotSource {
                persistent_volume_claim_name: marked.spec.source.persistent_volume_claim_name.clone(),
                ..SnapshotSource::default()
            };
            let spec = ApplicationSnapshotSpec::new(source, mark.map(|mark| mark.infos).unwrap_or_default());
            ApplicationSnapshot::new(&marked.name_any(), spec)
        }
    };
    place.snapshot(&snapshot, async |_| Ok(vec![])).await
}

/// That the claim and the templates exist; else an error that names those there are.
async fn check(place: &Place<'_>, spec: &ApplicationSnapshotSpec) -> Result<()> {
    if let Some(claim) = &spec.source.persistent_volume_claim_name {
        objects::get::<PersistentVolumeClaim>(place.client, &place.scope(), claim).await?;
    }
    for info in &spec.execution_hook_infos {
        let name = &info.execution_hook_template_name;
        objects::get::<ExecutionHookTemplate>(place.client, &place.scope(), name).await?;
    }
    Ok(())
}

fn name(word: &str, place: usize) -> String {
    format!("drill-{word}-{place}")
}

fn made(hook: &Hook, word: &str, place: usize, namespace: &str) -> ExecutionHook {
    let metadata = ObjectMeta {
        name: Some(name(word, place)),
        namespace: Some(namespace.to_owned()),
        labels: Some([(DRILL_LABEL.to_owned(), word.to_owned())].into()),
        ..ObjectMeta::default()
    };
    ExecutionHook { metadata, spec: hook.spec.clone(), status: None }
}

/// The snapshot that this would be: what is told of a snapshot's hooks is told of these.
fn story(hooks: &[Hook], word: &str) -> ApplicationSnapshot {
    let record = |(place, hook): (usize, &Hook)| HookRecord {
        name: name(word, place),
        execution_hook_template_name: hook.name.clone(),
        ..HookRecord::default()
    };
    let mut story = ApplicationSnapshot::new("drill", ApplicationSnapshotSpec::new(SnapshotSource::default(), vec![]));
    let status = story.status.get_or_insert_default();
    status.phase = Phase::Freezing;
    status.hooks = hooks.iter().enumerate().map(record).collect();
    story
}
