//! One who wants to lead: looks at the Lease, takes it when it is free, renews it, gives it back.

use std::time::Duration;

use boathook_decide::Leadership;
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease as Record, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use snafu::{ResultExt, Snafu};
use tokio::sync::watch;

use super::{Lease, NAME, Options};
use crate::error_class::{Classified, ErrorClass, chain};

/// After this the call counts as lost; whether it has happened is seen by the next.
const CALL_DEADLINE: Duration = Duration::from_millis(2500);

/// How often one who waits looks: so long after a lease was given back, its successor leads.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How soon a failed renewal is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Runs for the lease. Dropped, it just stops renewing; [`Candidate::run`] gives the lease back in the end.
pub struct Candidate {
    api: Api<Record>,
    options: Options,
    lease: Lease,
    announce: watch::Sender<Option<Leadership>>,
    /// The lease as it was last seen, and when by our clock its spec was first seen to be that.
    seen: Option<(Record, Duration)>,
}

#[derive(Debug, Snafu)]
pub(super) enum Error {
    #[snafu(display("failed to {action} the lease `{NAME}` in namespace `{namespace}`"))]
    Call { action: &'static str, namespace: String, source: kube::Error },
    #[snafu(display("failed to {action} the lease `{NAME}` in namespace `{namespace}`: no answer in time"))]
    Late { action: &'static str, namespace: String },
}

impl Error {
    fn is(&self, class: ErrorClass) -> bool {
        matches!(self, Self::Call { source, .. } if source.class() == class)
    }
}

impl Candidate {
    pub(super) fn new(
        client: Client,
        options: Options,
        lease: Lease,
        announce: watch::Sender<Option<Leadership>>,
    ) -> Self {
        Self { api: Api::namespaced(client, &options.namespace), options, lease, announce, seen: None }
    }

    /// Runs until `stop`, then gives the lease back, if it has it.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut trouble = None;
        loop {
            let outcome = self.step().await;
            let now = outcome.as_ref().err().map(|error| chain(error));
            if let Some(error) = now.as_ref().filter(|_| now != trouble) {
                tracing::warn!(error, "failed to renew the lease, retrying");
            }
            trouble = now;
            let pause = match outcome {
                Ok(()) if self.lease.leads() => self.options.renew_every,
                Ok(()) => LOOK_EVERY,
                Err(_) => RETRY_AFTER,
            };
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        if let Err(error) = self.release().await {
            tracing::warn!(error = chain(&error), "failed to release the lease: it expires instead");
        }
    }

    /// One look, and what follows from it.
    pub(super) async fn step(&mut self) -> Result<(), Error> {
        let outcome = self.look_and_take().await;
        self.tell();
        outcome
    }

    async fn look_and_take(&mut self) -> Result<(), Error> {
        // Whoever holds it writes at once: if it is no longer as it was, the write fails.
        if let Some((record, _)) = &self.seen
            && self.is_ours(record)
        {
            let record = record.clone();
            match self.take(record).await {
                Err(error) if error.is(ErrorClass::Conflict) || error.is(ErrorClass::NotFound) => {}
                outcome => return outcome,
            }
        }
        let found = self.call("read", self.api.get_opt(NAME)).await?;
        if let Some(record) = &found {
            self.saw(record);
        }
        match (found, &self.seen) {
            (Some(record), _) if self.is_free(&record) => self.take(record).await,
            (Some(_), _) => {
                // The holder may be acting already.
                self.lease.lock().renewed = None;
                Ok(())
            }
            // A user deleted it. Its holder may not know that yet: it leads until it renews or the lease expires.
            (None, Some((last, _))) if !self.is_free(last) => Ok(()),
            (None, _) => self.create().await,
        }
    }

    /// Gives it back, so that a successor need not wait. From here on this process no longer leads.
    pub(super) async fn release(&mut self) -> Result<(), Error> {
        self.lease.lock().renewed = None;
        self.announce();
        let mut ours = self.seen.take().map(|(record, _)| record);
        while let Some(mut record) = ours.filter(|record| self.is_ours(record)) {
            if let Some(spec) = &mut record.spec {
                spec.holder_identity = None;
                spec.renew_time = Some(MicroTime(Timestamp::now()));
            }
            match self.call("release", self.api.replace(NAME, &PostParams::default(), &record)).await {
                // A renewal whose answer was lost has happened all the same.
                Err(error) if error.is(ErrorClass::Conflict) => {
                    ours = self.call("read", self.api.get_opt(NAME)).await?
                }
                Err(error) if error.is(ErrorClass::NotFound) => return Ok(()),
                outcome => return outcome.map(drop),
            }
        }
        Ok(())
    }

    fn is_ours(&self, record: &Record) -> bool {
        holder(record) == Some(&self.options.identity)
    }

    fn is_free(&self, record: &Record) -> bool {
        if holder(record).is_none() || self.is_ours(record) {
            return true;
        }
        let stated = record.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let duration =
            stated.and_then(|seconds| u64::try_from(seconds).ok()).map_or(self.options.duration, Duration::from_secs);
        self.seen.as_ref().is_some_and(|(_, since)| self.lease.clock.now() >= *since + duration)
    }

    fn saw(&mut self, record: &Record) {
        // Not by the resource's version: who labels a lease does not renew it.
        let since = match &self.seen {
            Some((before, since)) if before.spec == record.spec => *since,
            _ => self.lease.clock.now(),
        };
        self.seen = Some((record.clone(), since));
    }

    async fn create(&mut self) -> Result<(), Error> {
        let begun = self.lease.clock.now();
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        let record = Record { metadata, spec: Some(self.renewed(None)) };
        match self.call("create", self.api.create(&PostParams::default(), &record)).await {
            Ok(record) => self.has_it(record, begun),
            // Another was faster, or a lost answer was a success: the next look tells.
            Err(error) if error.is(ErrorClass::AlreadyExists) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Writes ourselves into the lease, if it is still as we saw it.
    async fn take(&mut self, mut record: Record) -> Result<(), Error> {
        let begun = self.lease.clock.now();
        record.spec = Some(self.renewed(record.spec.as_ref()));
        let record = self.call("renew", self.api.replace(NAME, &PostParams::default(), &record)).await?;
        self.has_it(record, begun);
        Ok(())
    }

    fn renewed(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let mut spec = before.cloned().unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(&self.options.identity) {
            spec.holder_identity = Some(self.options.identity.clone());
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(before.map_or(0, |before| before.lease_transitions.unwrap_or_default() + 1));
        }
        spec.lease_duration_seconds = i32::try_from(self.options.duration.as_secs()).ok();
        spec.renew_time = Some(now);
        spec
    }

    fn has_it(&mut self, record: Record, begun: Duration) {
        self.saw(&record);
        let mut held = self.lease.lock();
        (held.renewed, held.ever) = (Some(begun), true);
    }

    /// Announces a change, and logs it: a person must see why a controller starts nothing.
    fn tell(&self) {
        let identity = &self.options.identity;
        match self.announce() {
            Some((_, Some(Leadership::ThawOnly))) => {
                let why = self.why_lost();
                tracing::warn!(
                    identity,
                    "this controller no longer leads ({why}): until it leads again it only thaws what it froze"
                );
            }
            Some((Some(_), Some(Leadership::Leader))) => tracing::warn!(identity, "this controller leads again"),
            // The process itself says when it is ready.
            Some((None, Some(Leadership::Leader))) => tracing::info!(identity, "this controller leads"),
            Some((_, None)) | None => {}
        }
    }

    /// Tells those who wait for a change; before and after, if there was one.
    fn announce(&self) -> Option<(Option<Leadership>, Option<Leadership>)> {
        let (mut before, now) = (None, self.lease.leadership());
        let changed = self.announce.send_if_modified(|told| {
            before = std::mem::replace(told, now);
            before != now
        });
        changed.then_some((before, now))
    }

    fn why_lost(&self) -> String {
        let seen = self.seen.as_ref().filter(|(record, _)| !self.is_ours(record));
        match seen.and_then(|(record, _)| holder(record)) {
            Some(holder) => format!("`{holder}` holds the lease"),
            None => "it could not renew the lease in time".to_owned(),
        }
    }

    async fn call<T>(&self, action: &'static str, call: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
        let namespace = &self.options.namespace;
        match tokio::time::timeout(CALL_DEADLINE, call).await {
            Ok(answer) => answer.context(CallSnafu { action, namespace }),
            Err(_) => LateSnafu { action, namespace }.fail(),
        }
    }
}

/// Who holds it, if anyone.
pub(super) fn holder(record: &Record) -> Option<&String> {
    record.spec.as_ref()?.holder_identity.as_ref().filter(|holder| !holder.is_empty())
}

#[cfg(test)]
mod tests;
