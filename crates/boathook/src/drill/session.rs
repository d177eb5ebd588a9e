//! The hooks of one drill, from the first that is created to the last that is deleted.

use std::time::Duration;

use anyhow::{Result, bail};
use boathook_api::{ApplicationSnapshot, ExecutionHook, application_snapshot::Phase};
use kube::{Api, Client, ResourceExt, api::DeleteParams, runtime::watcher};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::outcome::Outcome;
use crate::{
    commands::signals::Signals,
    hooks::{State, state, why},
    mirror::Mirror,
    objects,
    output::{Screen, duration::shown, said_once},
    pods::Scope,
    server,
    snapshot::View,
    waiting::{NOBODY_LOOKED, PATIENCE, frames},
};

pub(super) struct Session {
    client: Client,
    scope: Scope,
    /// Those of this drill.
    hooks: Mirror<ExecutionHook>,
    /// In the order of their creation.
    created: Vec<String>,
    story: ApplicationSnapshot,
    view: View,
    signals: Signals,
    begun: Instant,
    hinted: bool,
}

/// What came of waiting for a hook.
enum Waited<T> {
    Known(T),
    TimeOver,
    Interrupted,
}

impl Session {
    pub(super) fn new(
        client: &Client,
        namespace: &str,
        (label, word): (&str, &str),
        story: ApplicationSnapshot,
        screen: Screen,
        signals: Signals,
    ) -> Self {
        let ours = watcher::Config::default().labels(&format!("{label}={word}"));
        Self {
            client: client.clone(),
            scope: Scope::Namespace(namespace.to_owned()),
            hooks: Mirror::new(client, namespace, ours),
            created: vec![],
            story,
            view: View::new(screen),
            signals,
            begun: Instant::now(),
            hinted: false,
        }
    }

    pub(super) fn story(&self) -> &ApplicationSnapshot {
        &self.story
    }

    pub(super) fn into_screen(self) -> Screen {
        self.view.screen
    }

    /// Freezes in this order, thaws in reverse, and returns how it went and what the hooks said last.
    pub(super) async fn run(
        &mut self,
        hooks: Vec<ExecutionHook>,
        timeout: Duration,
    ) -> Result<(Outcome, Vec<ExecutionHook>)> {
        let deadline = Instant::now() + timeout;
        // Nothing is frozen before it is certain that the end will be seen.
        while !self.hooks.is_ready() {
            tokio::select! {
                changed = self.hooks.next() => changed?,
                () = self.signals.received() => return Ok((Outcome::Interrupted, vec![])),
                () = sleep_until(deadline) => bail!("{} did not answer within {}", server::named(), shown(timeout)),
            }
        }
        let frozen = self.freeze(hooks, deadline).await;
        let deadline = Instant::now() + timeout;
        let not_thawed = self.thaw(deadline).await;
        let last: Vec<_> = self.hooks.all().cloned().collect();
        self.delete().await;
        let gone = not_thawed.is_empty() && self.gone(deadline).await;
        self.view.screen.clear();
        let outcome = match frozen {
            _ if !not_thawed.is_empty() => Outcome::NotThawed(not_thawed),
            Ok(Outcome::Good { .. }) => Outcome::Good { gone },
            Ok(outcome) => outcome,
            Err(error) => Outcome::NotFrozen(said_once(&error)),
        };
        Ok((outcome, last))
    }

    async fn freeze(&mut self, hooks: Vec<ExecutionHook>, deadline: Instant) -> Result<Outcome> {
        for hook in hooks {
            let name = hook.name_any();
            // Before it is there: if nobody hears that it was created, it is thawed all the same.
            self.created.push(name.clone());
            objects::create(&self.client, &self.scope, &hook).await?;
            match self.wait(&name, deadline, is_frozen).await? {
                Waited::Known(Ok(())) => {}
                Waited::Known(Err(why)) => return Ok(Outcome::NotFrozen(why)),
                Waited::TimeOver => {
                    return Ok(Outcome::NotFrozen(format!("hook `{name}` was not frozen within the timeout")));
                }
                Waited::Interrupted => return Ok(Outcome::Interrupted),
            }
        }
        Ok(Outcome::Good { gone: false })
    }

    /// In reverse; returns those that are not known to be thawed.
    async fn thaw(&mut self, deadline: Instant) -> Vec<String> {
        self.story.status.get_or_insert_default().phase = Phase::Thawing;
        let mut open = Vec::new();
        let mut patient = true;
        for name in self.created.clone().into_iter().rev() {
            let request = json!({"spec": {"thawRequested": true}});
            let asked = objects::merge::<ExecutionHook>(&self.client, &self.scope, &name, &request).await;
            if let Err(error) = asked {
                // One that was never created needs no thaw.
                if self.hooks.get(&name).is_some() {
                    self.view.screen.warn(&said_once(&error));
                    open.push(name);
                }
                continue;
            }
            if !patient {
                open.push(name);
                continue;
            }
            match self.wait(&name, deadline, is_thawed).await {
                Ok(Waited::Known(true)) => {}
                Ok(Waited::Interrupted) => {
                    // The others are asked, and not waited for.
                    patient = false;
                    open.push(name);
                }
                Ok(Waited::Known(false) | Waited::TimeOver) => open.push(name),
                Err(error) => {
                    self.view.screen.warn(&said_once(&error));
                    open.push(name);
                }
            }
        }
        open
    }

    /// What is not thawed yet goes when it is.
    async fn delete(&mut self) {
        let (api, params): (Api<ExecutionHook>, _) = (self.scope.api(&self.client), DeleteParams::default());
        for name in &self.created {
            let request = api.delete(name, &params);
            let deleted = objects::answered::<ExecutionHook, _>(request, "delete", &self.scope).await;
            if let Err(error) = deleted
                && self.hooks.get(name).is_some()
            {
                self.view.screen.warn(&said_once(&error));
            }
        }
    }

    /// Waits until the controller has let go of all of them; false if that takes too long, or nobody wants to wait.
    async fn gone(&mut self, deadline: Instant) -> bool {
        while self.hooks.all().next().is_some() {
            tokio::select! {
                Ok(()) = self.hooks.next() => {}
                () = self.signals.received() => return false,
                () = sleep_until(deadline) => return false,
                else => return false,
            }
        }
        true
    }

    async fn wait<T>(
        &mut self,
        name: &str,
        deadline: Instant,
        known: impl Fn(&ExecutionHook) -> Option<T>,
    ) -> Result<Waited<T>> {
        let mut frames = frames();
        loop {
            let hooks: Vec<_> = self.hooks.all().collect();
            self.view.show(&self.story, &hooks, self.begun.elapsed())?;
            if let Some(known) = self.hooks.get(name).and_then(&known) {
                return Ok(Waited::Known(known));
            }
            tokio::select! {
                changed = self.hooks.next() => changed?,
                _ = frames.tick() => {
                    let hooks: Vec<_> = self.hooks.all().collect();
                    self.view.progress(Some(&self.story), &hooks, self.begun.elapsed());
                    let untouched = self.hooks.get(name).is_none_or(|hook| state(hook) == State::New);
                    if untouched && !self.hinted && self.begun.elapsed() > PATIENCE {
                        self.hinted = true;
                        self.view.screen.warn(NOBODY_LOOKED);
                    }
                }
                () = self.signals.received() => return Ok(Waited::Interrupted),
                () = sleep_until(deadline) => return Ok(Waited::TimeOver),
            }
        }
    }
}

/// That it is frozen, or why it will not be. None while nobody knows.
fn is_frozen(hook: &ExecutionHook) -> Option<Result<(), String>> {
    match (state(hook), why(hook)) {
        (State::Frozen, _) => Some(Ok(())),
        (_, Some(why)) => Some(Err(format!("{}: {}", why.reason, why.message))),
        (State::New | State::Freezing, None) => None,
        (_, None) => Some(Err("its thaw was requested meanwhile".to_owned())),
    }
}

/// Whether it was; none while it goes on.
fn is_thawed(hook: &ExecutionHook) -> Option<bool> {
    match state(hook) {
        State::Thawed | State::Refused => Some(true),
        State::ThawFailed | State::Abandoned | State::ThawUnconfirmed | State::MayFreezeAgain => Some(false),
        State::New | State::Freezing | State::Frozen | State::Thawing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::tests::hook;

    #[test]
    fn a_hook_says_when_the_drill_may_go_on() {
        let accepted = ("Accepted", "True", "Pinned");
        assert_eq!(is_frozen(&hook(&[])), None);
        assert_eq!(is_frozen(&hook(&[accepted, ("Frozen", "False", "Freezing")])), None);
        assert_eq!(is_frozen(&hook(&[accepted, ("Frozen", "True", "Frozen")])), Some(Ok(())));
        let failed = hook(&[accepted, ("Frozen", "False", "PreActionFailed")]);
        assert_eq!(is_frozen(&failed), Some(Err("PreActionFailed: it says why".to_owned())));
        let asked = hook(&[("Frozen", "False", "ThawRequested"), ("Thawed", "False", "Thawing")]);
        assert!(is_frozen(&asked).is_some_and(|frozen| frozen.is_err()));
        assert_eq!(is_thawed(&asked), None);
        assert_eq!(is_thawed(&hook(&[("Thawed", "True", "Thawed")])), Some(true));
        assert_eq!(is_thawed(&hook(&[("Thawed", "False", "ThawFailed")])), Some(false));
    }
}
