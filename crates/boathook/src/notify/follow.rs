//! Creates PodNotifications, as many at a time as there is room for, and watches them to their end.

use anyhow::{Context, Result, bail};
use boathook_api::PodNotification;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::time::{Instant, sleep_until};

use super::{
    round::{Ended, Key, Round, key},
    view::View,
};
use crate::{
    access::{Attempt, POD_NOTIFICATIONS, explained, is_forbidden},
    pods::Scope,
    waiting::{NOBODY_LOOKED, PATIENCE, frames},
};

/// Creates at once: a thousand connections would help nobody.
pub(super) const CREATES: usize = 50;

/// Why following ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    AllEnded,
    TimeOver,
    Interrupted,
}

pub(super) struct Following<'a> {
    pub(super) client: &'a Client,
    pub(super) scope: &'a Scope,
    /// Finds what is created here, and nothing else.
    pub(super) selector: &'a str,
    pub(super) deadline: Instant,
}

type Created = (Key, kube::Result<PodNotification>);

impl Following<'_> {
    /// Returns how it ended, and how it went with each pod that ended.
    pub(super) async fn follow(&self, round: &mut Round, view: &mut View) -> Result<(End, Vec<Ended>)> {
        let watched: Api<PodNotification> = self.scope.api(self.client);
        let events = watcher(watched, watcher::Config::default().labels(self.selector)).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut creates: FuturesUnordered<BoxFuture<'static, Created>> = FuturesUnordered::new();
        let mut frames = frames();
        let interrupt = tokio::signal::ctrl_c();
        let mut interrupt = std::pin::pin!(interrupt);
        let begun = Instant::now();
        let mut all = Vec::new();
        // Nobody is told before it is certain that the end will be seen.
        let (mut watching, mut hinted) = (false, false);
        while !round.is_over() {
            while watching
                && creates.len() < CREATES
                && let Some(next) = round.next()
            {
                creates.push(create(self.client.clone(), next).boxed());
            }
            let ended = tokio::select! {
                Some(created) = creates.next() => self.created(round, created)?,
                Some(event) = events.next() => {
                    watching |= matches!(event, Ok(Event::InitDone));
                    self.event(round, event)?
                }
                _ = frames.tick() => {
                    view.progress(round, begun.elapsed());
                    hinted = hinted || self.hint(round, view, begun);
                    None
                }
                interrupted = &mut interrupt => {
                    interrupted.context("failed to wait for Ctrl-C")?;
                    return Ok((End::Interrupted, all));
                }
                () = sleep_until(self.deadline) => return Ok((End::TimeOver, all)),
            };
            if let Some(ended) = ended {
                view.show(&ended)?;
                all.push(ended);
            }
        }
        Ok((End::AllEnded, all))
    }

    fn created(&self, round: &mut Round, (key, created): Created) -> Result<Option<Ended>> {
        match created {
            Ok(object) => Ok(round.seen(object)),
            Err(error) => {
                // Nobody is spared by going on where nothing may be created.
                let for_all = is_forbidden(&error) && *self.scope != Scope::AllNamespaces;
                let scope = Scope::Namespace(key.0.clone());
                let error = explained(error, Attempt { verb: "create", resource: POD_NOTIFICATIONS, scope: &scope });
                if for_all {
                    bail!(error);
                }
                Ok(round.not_created(&key, format!("{error:#}")))
            }
        }
    }

    fn event(&self, round: &mut Round, event: Result<Event<PodNotification>, watcher::Error>) -> Result<Option<Ended>> {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => Ok(round.seen(object)),
            Ok(Event::Delete(object)) => Ok(round.deleted(object)),
            Ok(Event::Init | Event::InitDone) => Ok(None),
            Err(watcher::Error::InitialListFailed(error)) => {
                self.give_up_if_refused(error, "list")?;
                Ok(None)
            }
            Err(watcher::Error::WatchStartFailed(error)) => {
                self.give_up_if_refused(error, "watch")?;
                Ok(None)
            }
            // The watcher goes on by itself, and the deadline is kept here.
            Err(_) => Ok(None),
        }
    }

    /// An answer that will not change ends it; anything else may be better the next time.
    fn give_up_if_refused(&self, error: kube::Error, verb: &'static str) -> Result<()> {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404) => {
                let hint = if status.code == 403 { " (--wait=false needs only the right to create them)" } else { "" };
                let error = explained(error, Attempt { verb, resource: POD_NOTIFICATIONS, scope: self.scope });
                bail!("{error:#}{hint}")
            }
            _ => Ok(()),
        }
    }

    /// Says, once, that nobody seems to be there to do it.
    fn hint(&self, round: &Round, view: &mut View, begun: Instant) -> bool {
        let untouched = round.ended() == 0 && round.under_way().all(|object| object.status.is_none());
        let hint = untouched && begun.elapsed() > PATIENCE;
        if hint {
            view.screen.warn(NOBODY_LOOKED);
        }
        hint
    }
}

pub(super) async fn create(client: Client, object: PodNotification) -> Created {
    let key = key(&object);
    let api: Api<PodNotification> = Api::namespaced(client, &key.0);
    let created = api.create(&PostParams::default(), &object).await;
    (key, created)
}
