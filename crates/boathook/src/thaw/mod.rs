//! `boathook thaw`: asks hooks for their PostActions now, and says how it went in each container.

mod outcome;
mod view;

use std::{
    io::{self, BufRead, IsTerminal},
    iter,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    words::{ABANDON_UNDO, EXECUTION_HOOK_LABEL, UNDO_NOW},
};
use jiff::Timestamp;
use kube::{Client, ResourceExt, runtime::watcher};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::{
    hooks::{State, state},
    mirror::Mirror,
    objects,
    output::{Screen, duration::shown, plain::in_words},
    pods::Scope,
    server,
    subject::{Name, Subject},
    waiting::{INTERRUPTED, NOBODY_LOOKED, PATIENCE, frames},
};
use outcome::{Before, Outcome, Seen, outcome};

/// After a hook went, news of its PodNotifications may come for so long: two watches have no common order.
const LATE_NEWS: Duration = Duration::from_secs(3);

/// What a person asked for.
pub(crate) struct Thaw {
    pub(crate) namespace: String,
    pub(crate) name: Name,
    /// Give up what cannot be thawed, and record that.
    pub(crate) force: bool,
    /// Do not ask whether that is meant.
    pub(crate) yes: bool,
    pub(crate) wait: bool,
    pub(crate) timeout: Duration,
}

/// Why watching one hook ended.
enum End {
    Known(Outcome),
    TimeOver,
    Interrupted,
}

impl Thaw {
    pub(crate) async fn run(self, client: &Client) -> Result<ExitCode> {
        let scope = Scope::Namespace(self.namespace.clone());
        let mut screen = Screen::new();
        let hooks = match self.name.find(client, &scope).await? {
            Subject::Hook(hook) => vec![*hook],
            Subject::Snapshot(snapshot, mut hooks) => {
                say_of_snapshot(&snapshot, hooks.len(), &mut screen);
                // As they would be thawed anyway.
                hooks.reverse();
                hooks
            }
        };
        let mut worst = ExitCode::SUCCESS;
        let mut open = Vec::new();
        for hook in hooks {
            let Some(outcome) = outcome(&hook, &[], &Before::default()) else {
                open.push(hook);
                continue;
            };
            // It is over, and its own record is complete.
            view::show(&hook, iter::empty(), outcome, &mut screen)?;
            if !outcome.is_good(self.force) {
                worst = ExitCode::FAILURE;
            }
        }
        if self.force && !open.is_empty() && !self.yes {
            confirm(&open, &mut screen)?;
        }
        for hook in open {
            match self.thaw(client, &scope, hook, &mut screen).await? {
                None => {}
                Some(code) if code == INTERRUPTED => return Ok(ExitCode::from(code)),
                Some(code) => worst = ExitCode::from(code),
            }
        }
        Ok(worst)
    }

    /// Asks one hook; returns the exit code if it is none of success.
    async fn thaw(
        &self,
        client: &Client,
        scope: &Scope,
        hook: ExecutionHook,
        screen: &mut Screen,
    ) -> Result<Option<u8>> {
        let name = hook.name_any();
        let labels = format!("{EXECUTION_HOOK_LABEL}={name}");
        let mut hooks: Mirror<ExecutionHook> =
            Mirror::new(client, &self.namespace, watcher::Config::default().fields(&format!("metadata.name={name}")));
        let mut children: Mirror<PodNotification> =
            Mirror::new(client, &self.namespace, watcher::Config::default().labels(&labels));
        let deadline = Instant::now() + self.timeout;
        while self.wait && !(hooks.is_ready() && children.is_ready()) {
            tokio::select! {
                changed = hooks.next() => changed?,
                changed = children.next() => changed?,
                () = sleep_until(deadline) => bail!("{} did not answer within {}", server::named(), shown(self.timeout)),
            }
        }
        let before = Before::of(children.all());
        let asked: ExecutionHook = objects::merge(client, scope, &name, &request(false)).await?;
        if !self.wait {
            screen.line(&format!("executionhook.boathook.dev/{name}: thaw requested"))?;
            return Ok(None);
        }
        let mut seen = Seen::of(&asked);
        let mut end = watch(&mut hooks, &mut children, Some(&before), &asked, &mut seen, deadline, screen).await;
        if self.force && matches!(end, Ok(End::Known(Outcome::Failed) | End::TimeOver)) {
            // It was tried, and cannot be thawed now.
            let _: ExecutionHook = objects::merge(client, scope, &name, &request(true)).await?;
            let deadline = Instant::now() + self.timeout;
            end = watch(&mut hooks, &mut children, None, &asked, &mut seen, deadline, screen).await;
        }
        screen.clear();
        let last = hooks.get(&name).unwrap_or(&asked).clone();
        match end? {
            End::Known(outcome) => {
                view::show(&last, children.all(), outcome, screen)?;
                Ok((!outcome.is_good(self.force)).then_some(1))
            }
            End::TimeOver => {
                view::show(&last, children.all(), Outcome::Failed, screen)?;
                let again = "Boathook retries until it succeeds";
                screen.note(&format!("error: `{name}` is not thawed after {}: {again}", shown(self.timeout)));
                Ok(Some(1))
            }
            End::Interrupted => {
                screen.note(&format!("interrupted: the thaw of `{name}` continues without this command"));
                Ok(Some(INTERRUPTED))
            }
        }
    }
}

/// To thaw, or to give up what is not thawed.
fn request(gives_up: bool) -> serde_json::Value {
    // A moment that is not the same as last time: an undo that waits for its next round goes at once.
    let mut annotations = json!({UNDO_NOW: format!("{:.6}", Timestamp::now())});
    if gives_up {
        annotations[ABANDON_UNDO] = json!("true");
    }
    json!({"metadata": {"annotations": annotations}, "spec": {"thawRequested": true}})
}

/// With `before`, until a PostAction fails that had not before; without, until the hook itself says how it ended.
async fn watch(
    hooks: &mut Mirror<ExecutionHook>,
    children: &mut Mirror<PodNotification>,
    before: Option<&Before>,
    asked: &ExecutionHook,
    seen: &mut Seen,
    deadline: Instant,
    screen: &mut Screen,
) -> Result<End> {
    let mut frames = frames();
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    let begun = Instant::now();
    let (mut hinted, mut gone_since) = (false, None);
    let name = &asked.name_any();
    loop {
        // Another one of this name is not the hook that was asked.
        let hook = hooks.get(name).filter(|hook| hook.uid() == asked.uid());
        seen.note(hook, children.all());
        let ended = match (hook, before) {
            (Some(hook), Some(before)) => outcome(hook, &children.all().collect::<Vec<_>>(), before),
            (Some(hook), None) => outcome(hook, &[], &Before::default()),
            (None, _) if seen.is_thawed() => Some(Outcome::Thawed),
            (None, _) => {
                let since: &mut Instant = gone_since.get_or_insert_with(Instant::now);
                (since.elapsed() >= LATE_NEWS).then_some(Outcome::Gone)
            }
        };
        if let Some(outcome) = ended {
            return Ok(End::Known(outcome));
        }
        tokio::select! {
            changed = hooks.next() => changed?,
            changed = children.next() => changed?,
            _ = frames.tick() => {
                screen.progress(&format!("thawing {name} ({}s)", begun.elapsed().as_secs()));
                let untouched = hooks.get(name).is_some_and(|hook| matches!(state(hook), State::New | State::Frozen));
                if untouched && !hinted && begun.elapsed() > PATIENCE {
                    hinted = true;
                    screen.warn(NOBODY_LOOKED);
                }
            }
            interrupted = &mut interrupt => {
                interrupted.context("failed to wait for Ctrl-C")?;
                return Ok(End::Interrupted);
            }
            () = sleep_until(deadline) => return Ok(End::TimeOver),
        }
    }
}

/// A snapshot is not ended by this: it sees by itself that its hooks are thawed.
fn say_of_snapshot(snapshot: &ApplicationSnapshot, hooks: usize, screen: &mut Screen) {
    let name = snapshot.name_any();
    let phase = snapshot.status.as_ref().map(|status| status.phase).unwrap_or_default();
    let namespace = snapshot.namespace().unwrap_or_default();
    let (is_over, phase) = (phase.is_terminal(), in_words(&phase));
    match (is_over, hooks) {
        (true, 0) => screen.note(&format!("ApplicationSnapshot `{name}` is {phase}, and none of its hooks is left")),
        (true, _) => {}
        (false, 0) => screen.note(&format!(
            "ApplicationSnapshot `{name}` is {phase} and has frozen nothing yet; to stop it: kubectl delete \
             applicationsnapshot {name} -n {namespace}"
        )),
        (false, _) => screen.note(&format!(
            "ApplicationSnapshot `{name}` is {phase}: thawing its hooks ends its freeze; the snapshot itself is kept"
        )),
    }
}

/// To give up means that something may stay frozen: whoever asks for it says so by name.
fn confirm(hooks: &[ExecutionHook], screen: &mut Screen) -> Result<()> {
    if !io::stdin().is_terminal() {
        bail!("--force gives up what cannot be thawed: add --yes to confirm it, because stdin is not a terminal");
    }
    let name = hooks.first().map(ResourceExt::name_any).unwrap_or_default();
    screen.note(
        "a hook that cannot be thawed now will be given up: its application may stay frozen until you thaw it by hand",
    );
    screen.note(&format!("type `{name}` to continue:"));
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed).context("failed to read")?;
    if typed.trim() != name {
        bail!("the typed name is not `{name}`: nothing was done");
    }
    Ok(())
}
