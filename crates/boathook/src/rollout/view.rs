//! What a person sees of a rollout: a line for each step as it is made, what is waited for, and how it ended.

use std::{io, time::Duration};

use boathook_api::{
    deployment_lifecycle::{Rollout, RolloutPhase, StageRecord, StageState},
    words::condition,
};
use boathook_decide::deployment_lifecycle::Deployment;
use jiff::Timestamp;

use super::{
    progress::what_runs,
    stages::{details, table},
    steps::{FIRST_REVISION, steps, version, waiting_for},
    verdict::{Seen, Verdict},
};
use crate::{
    cli::called_as,
    output::{
        Colour, Screen,
        duration::shown,
        steps::{Step, Told},
        table::Columns,
    },
};

pub(super) struct View {
    pub(super) screen: Screen,
    told: Told,
    /// Which rollout is being told, and how it is called.
    telling: Option<(Timestamp, String)>,
}

impl View {
    pub(super) fn new(screen: Screen) -> Self {
        Self { screen, told: Told::default(), telling: None }
    }

    /// Tells what was not told yet; without a time if nobody was there to see it.
    pub(super) fn show(&mut self, seen: &Seen<'_>, since: Option<Duration>) -> io::Result<()> {
        let Some(rollout) = seen.rollout() else { return Ok(()) };
        let id = rollout.start_time.0;
        if let Some((before, name)) = self.telling.replace((id, version(rollout)))
            && before != id
        {
            let text = format!("{name}, by a newer template");
            let replaced = Step::new(format!("{before} replaced"), "replaced", Some(Colour::Odd), text);
            self.told.tell([replaced], since, &mut self.screen)?;
        }
        self.told.tell(steps(rollout, &seen.deployment), since, &mut self.screen)
    }

    /// Paints what is waited for.
    pub(super) fn progress(&mut self, seen: &Seen<'_>, since: Duration) {
        let text = match (seen.verdict(), seen.rollout()) {
            (Verdict::NotBegun(why), _) => format!("{why} ({}s)", since.as_secs()),
            (_, Some(rollout)) => waiting_for(rollout, &seen.deployment, &seen.said(condition::COMPLETE), since),
            (_, None) => return,
        };
        self.screen.progress(&text);
    }

    /// How all of it stands now, at once.
    pub(super) fn now(&mut self, seen: &Seen<'_>, now: Timestamp) -> io::Result<()> {
        let Some(rollout) = seen.rollout() else { return Ok(()) };
        let rows = table(rollout, now);
        if rows.len() < 2 {
            return Ok(());
        }
        let columns = Columns::fitting(rows.iter().map(Vec::as_slice));
        for row in &rows {
            let (lead, hook) = columns.parts(row);
            self.screen.text(&lead, None, hook)?;
            let record = rollout.stages.iter().find(|record| record.stage.as_str() == row[0]);
            for detail in record.iter().flat_map(|record| details(record)) {
                self.screen.text("  ", None, &detail)?;
            }
        }
        Ok(())
    }

    /// The last line, and what can be done if it is no good one.
    pub(super) fn verdict(&mut self, seen: &Seen<'_>, verdict: &Verdict) -> io::Result<()> {
        let name = format!("deployment.apps/{}", seen.deployment.name);
        let (colour, text) = match verdict {
            Verdict::Complete => (Colour::Good, seen.said(condition::COMPLETE)),
            Verdict::UnderWay => (Colour::Odd, format!("under way: {}", seen.said(condition::COMPLETE))),
            Verdict::NotBegun(why) => (Colour::Odd, format!("not begun: {why}")),
            Verdict::Failed(why) => (Colour::Bad, format!("FAILED: {why}")),
        };
        self.screen.text(&format!("{name}: "), Some(colour), &text)?;
        match (verdict, seen.rollout()) {
            (Verdict::Failed(_), Some(rollout)) => match failed(rollout) {
                Some(failed) => self.ways_on(seen, rollout, failed),
                None => self.ways_back(seen, rollout),
            },
            (Verdict::UnderWay, Some(rollout)) if is_stuck(rollout) => self.ways_back(seen, rollout),
            (Verdict::UnderWay | Verdict::NotBegun(_) | Verdict::Complete | Verdict::Failed(_), _) => Ok(()),
        }
    }

    /// What to do about a version whose pods do not come up.
    fn ways_back(&mut self, seen: &Seen<'_>, rollout: &Rollout) -> io::Result<()> {
        for (what, how) in ways_back(seen, rollout) {
            self.screen.text(&format!("  {what:20}"), None, &how)?;
        }
        Ok(())
    }

    /// The same while the rollout is followed.
    pub(super) fn slow(&mut self, seen: &Seen<'_>, rollout: &Rollout, since: Duration) {
        let Deployment { available_replicas, replicas, .. } = &seen.deployment;
        let since = shown(Duration::from_secs(since.as_secs()));
        self.screen.note(&match rollout.phase {
            RolloutPhase::Rolling => {
                format!("the new version has {available_replicas} of {replicas} pods available after {since}:")
            }
            RolloutPhase::Pre
            | RolloutPhase::Mid
            | RolloutPhase::Post
            | RolloutPhase::Complete
            | RolloutPhase::Aborted => {
                format!("the hook has not succeeded after {since}:")
            }
        });
        for (what, how) in ways_back(seen, rollout) {
            self.screen.note(&format!("  {what:20}{how}"));
        }
    }

    fn ways_on(&mut self, seen: &Seen<'_>, rollout: &Rollout, failed: &StageRecord) -> io::Result<()> {
        let (stage, name) = (failed.stage, &seen.deployment.name);
        self.screen.text("  ", None, &what_runs(rollout, &seen.deployment))?;
        let namespace = seen.lifecycle.metadata.namespace.as_deref().unwrap_or("default");
        let place = format!("-n {namespace}");
        let boathook = called_as();
        let undo = undo(seen, rollout).map(|undo| format!(", or {undo}")).unwrap_or_default();
        let ways = [
            ("another version:", format!("change the template{undo}")),
            ("to try again:", format!("{boathook} rollout retry {name} --stage {stage} {place}")),
            ("to go on without:", format!("{boathook} rollout skip {name} --stage {stage} {place}")),
        ];
        // One that never came about wrote nothing.
        let ran = failed.pod.as_ref().filter(|_| failed.pod_uid.is_some());
        let log = ran.map(|pod| ("its whole output:", format!("kubectl logs {pod} {place}")));
        for (what, how) in ways.into_iter().chain(log) {
            self.screen.text(&format!("  {what:20}"), None, &how)?;
        }
        Ok(())
    }

    /// Nobody waits any more: what goes on by itself.
    pub(super) fn left(&mut self, name: &str, namespace: &str) {
        self.screen.note("the rollout continues without this command:");
        self.screen.note(&format!("  to look at it:  {} rollout status {name} -n {namespace}", called_as()));
    }
}

/// The command that goes back to the version before, if there is one.
fn undo(seen: &Seen<'_>, rollout: &Rollout) -> Option<String> {
    let is_first = seen.revision.is_none() || rollout.revision.as_deref() == Some(FIRST_REVISION);
    // While the new version has no revision, undo without one would go back too far.
    let to = seen.revision.as_ref().filter(|_| rollout.revision.is_none());
    let to = to.map(|revision| format!(" --to-revision={revision}")).unwrap_or_default();
    let namespace = seen.lifecycle.metadata.namespace.as_deref().unwrap_or("default");
    (!is_first).then(|| format!("kubectl rollout undo deployment/{}{to} -n {namespace}", seen.deployment.name))
}

fn ways_back(seen: &Seen<'_>, rollout: &Rollout) -> Vec<(&'static str, String)> {
    let namespace = seen.lifecycle.metadata.namespace.as_deref().unwrap_or("default");
    let running = rollout.stages.iter().find(|record| record.state == StageState::Running);
    let pod = running.and_then(|record| record.pod.as_ref()).filter(|_| rollout.phase != RolloutPhase::Rolling);
    let look = match pod {
        Some(pod) => format!("kubectl describe pod {pod} -n {namespace}"),
        None => format!("kubectl get pods -n {namespace}"),
    };
    let skip = running.filter(|_| pod.is_some()).map(|record| {
        let name = &seen.deployment.name;
        ("to go on without:", format!("{} rollout skip {name} --stage {} -n {namespace}", called_as(), record.stage))
    });
    let back = undo(seen, rollout).map(|undo| ("to go back:", undo));
    [("to see why:", look)].into_iter().chain(back).chain(skip).collect()
}

/// Whether a hook has a problem: a running stage has a message only then.
pub(super) fn is_stuck(rollout: &Rollout) -> bool {
    rollout.stages.iter().any(|record| {
        record.state == StageState::Running && record.message.as_ref().is_some_and(|message| !message.is_empty())
    })
}

fn failed(rollout: &Rollout) -> Option<&StageRecord> {
    rollout.stages.iter().find(|record| record.state == StageState::Failed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::verdict::tests::{condition, deployment, lifecycle},
        *,
    };
    use crate::output::tests::Sheet;

    fn pre(state: &str, more: Value) -> Value {
        let mut record = json!({"stage": "Pre", "state": state, "pod": "web-pre-x", "podUID": "7", "pods": 1, "failures": 1,
            "startTime": "2026-01-01T00:00:01.000000Z", "completeTime": "2026-01-01T00:00:02.000000Z"});
        for (key, value) in more.as_object().unwrap() {
            record[key] = value.clone();
        }
        record
    }

    /// Nothing of the new version is there.
    fn held() -> Value {
        json!({"status": {"updatedReplicas": 0}})
    }

    #[test]
    fn an_abort_is_told_with_the_ways_on() {
        let stages = json!([pre("Failed", json!({"message": "exit code 1", "logTail": "no such table\n"}))]);
        let conditions = json!([condition("Failed", "True", "Aborted", "pre has failed: exit code 1")]);
        let aborted =
            lifecycle("Aborted", json!({"status": {"rollout": {"stages": stages}, "conditions": conditions}}));
        let seen = Seen::new(&deployment(held()), &aborted).unwrap();
        let results = Sheet::default();
        let mut view = View::new(Screen::on_paper(&results, &Sheet::default()));
        view.show(&seen, Some(Duration::from_millis(35))).unwrap();
        view.show(&seen, Some(Duration::from_millis(70))).unwrap();
        view.verdict(&seen, &seen.verdict()).unwrap();
        let wanted = "   +35ms  held      revision 2; the old version serves
   +35ms  pre       test now (pod web-pre-x)
   +35ms  pre       FAILED after 1s: exit code 1
                    | no such table
deployment.apps/web: FAILED: pre has failed: exit code 1
  the old version serves, as before; the new one is held
  another version:    change the template, or kubectl rollout undo deployment/web -n sea
  to try again:       boathook rollout retry web --stage pre -n sea
  to go on without:   boathook rollout skip web --stage pre -n sea
  its whole output:   kubectl logs web-pre-x -n sea
";
        assert_eq!(results.text(), wanted);

        let status = json!({"rollout": {"revision": null, "stages": stages}, "conditions": conditions});
        let aborted = lifecycle("Aborted", json!({"status": status}));
        let seen = Seen::new(&deployment(held()), &aborted).unwrap();
        view.verdict(&seen, &seen.verdict()).unwrap();
        assert!(
            results.text().contains("kubectl rollout undo deployment/web --to-revision=2 -n sea"),
            "{}",
            results.text()
        );
    }

    #[test]
    fn a_hook_that_cannot_run_is_told_while_the_old_version_serves() {
        for stage in ["Mid", "Post"] {
            let word = stage.to_lowercase();
            let more = json!({"stage": stage, "pod": null, "podUID": null, "message": "there is no container `x`"});
            let status = json!({"rollout": {"revision": null, "stages": [pre("Failed", more)]},
                "conditions": [condition("Failed", "True", "Aborted", "there is no container `x`")]});
            let aborted = lifecycle("Aborted", json!({"status": status}));
            let seen = Seen::new(&deployment(held()), &aborted).unwrap();
            let results = Sheet::default();
            let mut view = View::new(Screen::on_paper(&results, &Sheet::default()));
            view.show(&seen, None).unwrap();
            view.verdict(&seen, &seen.verdict()).unwrap();
            let wanted = format!(
                "       -  held      the new version; the old version serves
       -  {word:8}  FAILED after 1s: there is no container `x`
deployment.apps/web: FAILED: there is no container `x`
  the old version serves, as before; the new one is held
"
            );
            assert!(results.text().starts_with(&wanted), "{}", results.text());
        }
    }

    #[test]
    fn a_first_version_has_none_to_go_back_to_and_a_pod_that_never_was_no_log() {
        let stages = json!([pre("Failed", json!({"message": "no container `x`", "podUID": null}))]);
        let conditions = json!([condition("Failed", "True", "Aborted", "pre has failed")]);
        let status = json!({"rollout": {"revision": "1", "stages": stages}, "conditions": conditions});
        let aborted = lifecycle("Aborted", json!({"status": status}));
        let first = json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}},
            "status": {"replicas": 0, "updatedReplicas": 0, "availableReplicas": 0}});
        let seen = Seen::new(&deployment(first), &aborted).unwrap();
        let results = Sheet::default();
        let mut view = View::new(Screen::on_paper(&results, &Sheet::default()));
        view.verdict(&seen, &seen.verdict()).unwrap();
        let wanted = "deployment.apps/web: FAILED: pre has failed
  nothing runs: the new version is held, and no other has pods
  another version:    change the template
  to try again:       boathook rollout retry web --stage pre -n sea
  to go on without:   boathook rollout skip web --stage pre -n sea
";
        assert_eq!(results.text(), wanted);
    }

    #[test]
    fn one_that_is_over_is_told_without_the_times() {
        let over = lifecycle("Complete", json!({"status": {"rollout": {"stages": [pre("Succeeded", json!({}))]}}}));
        let results = Sheet::default();
        let mut view = View::new(Screen::on_paper(&results, &Sheet::default()));
        view.show(&Seen::new(&deployment(json!({})), &over).unwrap(), None).unwrap();
        let wanted = "       -  held      revision 2
       -  pre       test now (pod web-pre-x)
       -  pre       ok in 1s
";
        assert!(results.text().starts_with(wanted), "{}", results.text());
    }

    #[test]
    fn how_it_stands_is_a_table() {
        let stages = json!([pre("Succeeded", json!({"requestedBy": "jane"}))]);
        let conditions = json!([condition("Complete", "False", "Draining", "the old version ends")]);
        let mid = lifecycle("Mid", json!({"status": {"rollout": {"stages": stages}, "conditions": conditions}}));
        let seen = Seen::new(&deployment(json!({})), &mid).unwrap();
        let results = Sheet::default();
        let mut view = View::new(Screen::on_paper(&results, &Sheet::default()));
        view.now(&seen, Timestamp::UNIX_EPOCH).unwrap();
        view.verdict(&seen, &seen.verdict()).unwrap();
        let wanted = "STAGE   RESULT    TIME   FAILURES   POD         HOOK
pre     ok        1s     1          web-pre-x   test now
  retried by jane
mid     to come   -      -          -           migrate now
post    to come   -      -          -           tell now
deployment.apps/web: under way: the old version ends
";
        assert_eq!(results.text(), wanted);
    }

    #[test]
    fn a_newer_template_is_told() {
        let results = Sheet::default();
        let mut view = View::new(Screen::on_paper(&results, &Sheet::default()));
        let deployment = deployment(json!({}));
        for (start, revision) in [("2026-01-01T00:00:00.000000Z", "2"), ("2026-01-01T00:00:09.000000Z", "3")] {
            let rollout = json!({"startTime": start, "revision": revision});
            let lifecycle = lifecycle("Pre", json!({"status": {"rollout": rollout}}));
            view.show(&Seen::new(&deployment, &lifecycle).unwrap(), Some(Duration::ZERO)).unwrap();
        }
        let told = results.text();
        assert!(told.contains("replaced  revision 2, by a newer template\n    +0ms  held      revision 3"), "{told}");
    }
}
