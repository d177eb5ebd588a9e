//! Some attempts on one pod: their victims are made, the attempts sent, the victims used and deleted, and then what the pod
//! has recorded is checked.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use boathook_api::{ApplicationSnapshot, application_snapshot::Consistency, words::CONSISTENCY};
use boathook_tests::{
    Ctx, LATE,
    boathook::{application_snapshots, recording::recorder_on},
    claims::claim,
    poll::{self, Look},
    snapshots::VolumeSnapshot,
};
use kube::{ResourceExt, api::ListParams};

use super::{
    attacks::{LABEL, POD_LABEL, Place, Victim, What},
    attempts::Attempt,
    doors::Request,
    victims,
};

/// The most attempts of a round: their notifiers fit into its pod's annotations.
pub(super) const ROUND: usize = 100;

pub(super) struct Round<'a> {
    ctx: &'a Ctx,
    pod: String,
    attempts: Vec<Placed<'a>>,
}

/// An attempt, and what it is made with.
struct Placed<'a> {
    attempt: &'a Attempt<'a>,
    place: Place,
    /// The name of what it writes.
    object: String,
    /// What it sent, and how that was answered.
    sent: Vec<(Request, String)>,
}

impl<'a> Round<'a> {
    /// `silent_class` is a VolumeSnapshotClass whose storage never cuts.
    pub(super) async fn prepare(
        ctx: &'a Ctx,
        silent_class: &str,
        number: usize,
        attempts: &'a [Attempt<'a>],
    ) -> Result<Self> {
        let (pod, claim_name) = (format!("box-{number}"), format!("data-{number}"));
        ctx.create(&claim(&claim_name).build()).await?;
        let first = number * ROUND + 1;
        let recorder = recorder_on(ctx, &claim_name, &pod).label(POD_LABEL, &pod).notifier("main", "quiet", "true");
        let recorder = (first..).zip(attempts).fold(recorder, |recorder, (number, attempt)| {
            let (name, script) = (format!("did-{number}"), format!("echo did-{number} >> log/lines"));
            match attempt.attack.victim {
                // What the attempt itself would declare.
                Victim::Pod | Victim::Unscheduled => recorder,
                _ => recorder.notifier("main", &name, &script),
            }
        });
        let running = ctx.run_pod(recorder.build()).await?;
        let pod_uid = running.uid().context("a pod without UID")?;
        let node = running.spec.and_then(|spec| spec.node_name).context("a pod that runs nowhere")?;
        let mut placed = Vec::new();
        for (number, attempt) in (first..).zip(attempts) {
            let place = Place {
                number,
                pod: pod.clone(),
                pod_uid: pod_uid.clone(),
                claim: claim_name.clone(),
                node: node.clone(),
                silent_class: silent_class.to_owned(),
            };
            attempt.attack.victim.create(ctx, &place).await?;
            placed.push(Placed { attempt, place, object: String::new(), sent: Vec::new() });
        }
        for Placed { attempt, place, object, .. } in &mut placed {
            let victim = attempt.attack.victim.ready(ctx, place).await?;
            *object = match attempt.attack.what {
                What::Create(_) => attempt.object(place),
                What::Change(..) | What::Delete => victim,
            };
        }
        Ok(Self { ctx, pod, attempts: placed })
    }

    /// What broke a promise, each with the attempt that did.
    pub(super) async fn play(mut self) -> Result<Vec<String>> {
        let ctx = self.ctx;
        for placed in &mut self.attempts {
            placed.sent = placed.attempt.send(ctx, &placed.place, &placed.object).await?;
        }
        for Placed { attempt, place, .. } in &self.attempts {
            attempt.attack.victim.use_it(ctx, place).await?;
            victims::run_new_templates(ctx, place).await?;
        }
        victims::settle(ctx).await?;
        let verdicts = verdicts(ctx).await?;
        victims::delete_all(ctx).await?;
        let lines = self.record().await?;
        let mut failures = Vec::new();
        for placed in &self.attempts {
            let broke = placed.broke(&lines, &verdicts);
            failures.extend(broke.map(|what| placed.attempt.describe(what, &placed.sent)));
        }
        victims::delete_pods(ctx).await?;
        Ok(failures)
    }

    /// What the pod has recorded, when everything frozen is thawed, or had time enough to be.
    async fn record(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        let waited = poll::until(LATE, "everything is thawed", async || {
            lines = self.ctx.recorded(&self.pod).await?;
            let is_owed = |placed: &&Placed<'_>| placed.is_frozen(&lines) && !placed.attempt.may_leave_frozen();
            let open = self.attempts.iter().filter(is_owed).count();
            Ok(if open == 0 { Look::Done(()) } else { Look::NotYet(format!("{open} are frozen")) })
        });
        // The attempts whose victims stay frozen are the failure.
        _ = waited.await;
        Ok(lines)
    }
}

impl Placed<'_> {
    fn is_frozen(&self, lines: &[String]) -> bool {
        let last = |word: String| lines.iter().rposition(|line| *line == word);
        let (freeze, thaw) = (last(victims::freeze(&self.place)), last(victims::thaw(&self.place)));
        self.attempt.attack.victim.freezes() && freeze > thaw
    }

    /// The promise that it broke.
    fn broke(&self, lines: &[String], verdicts: &BTreeSet<String>) -> Option<&'static str> {
        let (attempt, trace) = (self.attempt, self.place.trace());
        let did = lines.contains(&trace);
        if did && !attempt.may_leave_trace() {
            return Some("its command ran");
        }
        if !did && attempt.is_control() {
            return Some("its command did not run, although the user has the right");
        }
        if self.is_frozen(lines) && !attempt.may_leave_frozen() {
            return Some("what it attacked was frozen and never thawed");
        }
        let forged = attempt.attack.forges_verdict && verdicts.contains(&self.place.number.to_string());
        forged.then_some("its object has the verdict Application")
    }
}

/// The attempts whose objects are said to be application-consistent.
async fn verdicts(ctx: &Ctx) -> Result<BTreeSet<String>> {
    let all = ListParams::default();
    let of_ours = ctx.api::<ApplicationSnapshot>().list(&all).await?.items.into_iter().filter_map(|object| {
        let consistency = application_snapshots::status(&object).consistency;
        (consistency == Some(Consistency::Application)).then(|| object.labels().get(LABEL).cloned()).flatten()
    });
    let of_storage = ctx.api::<VolumeSnapshot>().list(&all).await?.items.into_iter().filter_map(|object| {
        let is_application = object.annotations().get(CONSISTENCY).is_some_and(|said| said == "Application");
        is_application.then(|| object.labels().get(LABEL).cloned()).flatten()
    });
    Ok(of_ours.chain(of_storage).collect())
}
