//! `boathook snapshot create`: one ApplicationSnapshot, created and watched to its end.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, ExecutionHookTemplate, application_snapshot::ApplicationSnapshotSpec,
    volume_snapshot::VolumeSnapshot, words::APPLICATION_SNAPSHOT_LABEL,
};
use boathook_controllers::application_snapshot::missing_class;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Client, runtime::watcher};
use tokio::time::{Instant, sleep_until};

use super::{
    result::{Verdict, verdict},
    view::View,
};
use crate::{
    cli::called_as,
    hooks::snapshot_of,
    mirror::Mirror,
    objects,
    output::{
        self, Screen,
        duration::shown,
        format::{self, Format},
    },
    pods::Scope,
    server,
    waiting::{INTERRUPTED, NOBODY_LOOKED, PATIENCE, frames},
};

/// There is a snapshot, but it is only crash-consistent though there were hooks.
const ONLY_CRASH_CONSISTENT: u8 = 3;

/// There is a snapshot, but a PostAction failed: something is still frozen.
pub(crate) const NOT_THAWED: u8 = 4;

/// The longest value of a label: the hooks of a snapshot with a longer name are found by their owner alone.
const LONGEST_LABEL: usize = 63;

/// What a person asked for.
pub(crate) struct Create {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) spec: ApplicationSnapshotSpec,
    pub(crate) wait: bool,
    pub(crate) timeout: Duration,
    pub(crate) format: Format,
}

/// Why watching ended.
enum End {
    Over,
    TimeOver,
    Interrupted,
    /// Somebody deleted it.
    Deleted,
}

impl Create {
    pub(crate) async fn run(self, client: &Client) -> Result<ExitCode> {
        let mut screen = if self.format.is_for_programs() { Screen::aside() } else { Screen::new() };
        let scope = Scope::Namespace(self.namespace.clone());
        self.check(client, &scope, &mut screen).await?;
        let mut object = ApplicationSnapshot::new(&self.name, self.spec.clone());
        object.metadata.namespace = Some(self.namespace.clone());
        let mut view = View::new(screen);
        if !self.wait {
            let created = objects::create(client, &scope, &object).await?;
            if !self.format.is_for_programs() {
                view.created(&created)?;
            }
            self.print_object(&created)?;
            return Ok(ExitCode::SUCCESS);
        }
        self.follow(client, &scope, &object, &mut view).await
    }

    /// What can be seen to be missing before anything is created.
    async fn check(&self, client: &Client, scope: &Scope, screen: &mut Screen) -> Result<()> {
        let Self { namespace, name, .. } = self;
        // A caller without the right to read them learns it from the API server or the result.
        if let Ok(Some(_)) = objects::find::<ApplicationSnapshot>(client, scope, name).await {
            bail!(
                "ApplicationSnapshot `{name}` already exists {}: choose another name, or look at it with {} timeline \
                 {name} -n {namespace}",
                scope.place(),
                called_as()
            );
        }
        if let Some(claim) = &self.spec.source.persistent_volume_claim_name {
            objects::get::<PersistentVolumeClaim>(client, scope, claim).await?;
            if let Ok(Some(_)) = objects::find::<VolumeSnapshot>(client, scope, name).await {
                bail!(
                    "VolumeSnapshot `{name}` already exists {}, and nothing was frozen: choose another name, or delete it \
                     with kubectl delete volumesnapshot {name} -n {namespace}",
                    scope.place()
                );
            }
        }
        for info in &self.spec.execution_hook_infos {
            objects::get::<ExecutionHookTemplate>(client, scope, &info.execution_hook_template_name).await?;
        }
        if let Some(missing) = missing_class(client, self.spec.volume_snapshot_class_name.as_deref()).await? {
            bail!(missing);
        }
        if self.spec.execution_hook_infos.is_empty() {
            screen.warn("nothing is frozen without --template: the snapshot will only be crash-consistent");
        }
        Ok(())
    }

    async fn follow(
        &self,
        client: &Client,
        scope: &Scope,
        object: &ApplicationSnapshot,
        view: &mut View,
    ) -> Result<ExitCode> {
        let by_name = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let mut by_label = watcher::Config::default();
        if self.name.len() <= LONGEST_LABEL {
            by_label = by_label.labels(&format!("{APPLICATION_SNAPSHOT_LABEL}={}", self.name));
        }
        let mut snapshots: Mirror<ApplicationSnapshot> = Mirror::new(client, &self.namespace, by_name);
        let mut hooks: Mirror<ExecutionHook> = Mirror::new(client, &self.namespace, by_label);
        // Nothing is frozen before it is certain that the end will be seen.
        let deadline = Instant::now() + self.timeout;
        while !(snapshots.is_ready() && hooks.is_ready()) {
            tokio::select! {
                changed = snapshots.next() => changed?,
                changed = hooks.next() => changed?,
                () = sleep_until(deadline) => bail!("{} did not answer within {}", server::named(), shown(self.timeout)),
            }
        }
        let created = objects::create(client, scope, object).await?;
        view.created(&created)?;
        let end = self.watch(&mut snapshots, &mut hooks, deadline, view).await;
        view.screen.clear();
        let end = end?;
        let last = snapshots.get(&self.name).cloned().unwrap_or(created);
        let code = match end {
            End::Over => {
                view.end(&last)?;
                match verdict(&last) {
                    Some(Verdict::Complete) => ExitCode::SUCCESS,
                    Some(Verdict::OnlyCrashConsistent) => ExitCode::from(ONLY_CRASH_CONSISTENT),
                    Some(Verdict::NotThawed) => ExitCode::from(NOT_THAWED),
                    Some(Verdict::Failed) | None => ExitCode::FAILURE,
                }
            }
            End::Deleted => bail!("ApplicationSnapshot `{}` was deleted meanwhile: its hooks are thawed", self.name),
            End::TimeOver => {
                view.screen.note(&format!("error: the snapshot has not ended within {}", shown(self.timeout)));
                view.left(&self.name, &self.namespace);
                ExitCode::FAILURE
            }
            End::Interrupted => {
                view.screen.note("interrupted");
                view.left(&self.name, &self.namespace);
                ExitCode::from(INTERRUPTED)
            }
        };
        self.print_object(&last)?;
        Ok(code)
    }

    async fn watch(
        &self,
        snapshots: &mut Mirror<ApplicationSnapshot>,
        hooks: &mut Mirror<ExecutionHook>,
        deadline: Instant,
        view: &mut View,
    ) -> Result<End> {
        let mut frames = frames();
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let begun = Instant::now();
        let (mut seen, mut hinted) = (false, false);
        loop {
            tokio::select! {
                changed = snapshots.next() => changed?,
                changed = hooks.next() => changed?,
                _ = frames.tick() => {
                    view.progress(snapshots.get(&self.name), &self.hooks_among(hooks), begun.elapsed());
                    let untouched = snapshots.get(&self.name).is_none_or(|snapshot| snapshot.status.is_none());
                    if untouched && !hinted && begun.elapsed() > PATIENCE {
                        hinted = true;
                        view.screen.warn(NOBODY_LOOKED);
                    }
                    continue;
                }
                interrupted = &mut interrupt => {
                    interrupted.context("failed to wait for Ctrl-C")?;
                    return Ok(End::Interrupted);
                }
                () = sleep_until(deadline) => return Ok(End::TimeOver),
            }
            let Some(snapshot) = snapshots.get(&self.name) else {
                if seen {
                    return Ok(End::Deleted);
                }
                continue;
            };
            seen = true;
            view.show(snapshot, &self.hooks_among(hooks), begun.elapsed())?;
            if verdict(snapshot).is_some() {
                return Ok(End::Over);
            }
        }
    }

    fn hooks_among<'a>(&self, hooks: &'a Mirror<ExecutionHook>) -> Vec<&'a ExecutionHook> {
        hooks.all().filter(|hook| snapshot_of(hook) == Some(&self.name)).collect()
    }

    /// For `-o json|yaml`.
    fn print_object(&self, object: &ApplicationSnapshot) -> Result<()> {
        let value = format::single(serde_json::to_value(object).context("failed to write the object")?);
        match self.format.text(&value)? {
            Some(text) => Ok(output::print(&text)?),
            None => Ok(()),
        }
    }
}
