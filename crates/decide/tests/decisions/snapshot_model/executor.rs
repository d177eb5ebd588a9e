//! Handlers and undos run in pods, and end.

use boathook_api::PodNotification;
use boathook_decide::pod_notification::may_start;
use jiff::SignedDuration;
use kube::ResourceExt;

use super::{World, pods::CONTAINER, process::Record};
use crate::world::{
    process::Who,
    request::Failed,
    run::{End, Run, Running},
};

/// How long a handler or an undo takes, usually and at the longest.
const QUICK: SignedDuration = SignedDuration::from_millis(300);
const SLOW: SignedDuration = SignedDuration::from_secs(4);

impl World {
    pub(crate) fn start(&mut self, who: Who, object: &PodNotification) -> Result<(), Failed> {
        let name = object.name_any();
        // Asked again at the last moment: the writes before may have taken long.
        if who != Who::Agent && (self.lease != Some(who) || !may_start(object, self.clock(who))) {
            return Err(Failed);
        }
        if !self.process(who).child(&name).run.is_idle() {
            return Ok(());
        }
        let pod = object.spec.pod_uid.clone().unwrap_or_default();
        if who == Who::Agent && object.spec.undo.is_some() {
            // What will undo it is durable before anything is done.
            let after = object.spec.undo.as_ref().and_then(|undo| undo.after_seconds);
            let expires = after.map(|after| self.now + SignedDuration::from_secs(after.into()));
            self.process(who).ledger.insert(name.clone(), Record { pod: pod.clone(), expires });
        }
        let uid = object.uid().unwrap_or_default();
        let twice = self.pods.handlers.iter().any(|handler| handler.child_uid == uid);
        assert!(!twice, "I10: the handler of `{name}` ran twice");
        let place = self.pods.handler_starts((&name, &uid), &pod);
        let run = self.running(who, pod, place);
        let child = self.process(who).child(&name);
        child.handlers.extend(place);
        child.run = run;
        Ok(())
    }

    /// Unless it runs already.
    pub(crate) fn start_undo(&mut self, who: Who, name: &str, pod: &str) {
        if matches!(self.process(who).child(name).undo, Run::Running(_)) {
            return;
        }
        let place = self.pods.undo_starts(name, pod);
        let run = self.running(who, pod.to_owned(), place);
        let child = self.process(who).child(name);
        (child.undo, child.rounds) = (run, child.rounds + 1);
    }

    pub(crate) fn cancel(&mut self, who: Who, name: &str) {
        if let Run::Running(running) = &mut self.process(who).child(name).run {
            running.cancelled = true;
        }
    }

    pub(crate) fn forget_undo(&mut self, who: Who, name: &str) {
        let process = self.process(who);
        let child = process.child(name);
        (child.undo, child.rounds) = (Run::Idle, 0);
        process.ledger.remove(name);
    }

    fn running(&self, who: Who, pod: String, place: Option<usize>) -> Run {
        let deadline = self.now + if self.slow { SLOW } else { QUICK };
        let containers = vec![(CONTAINER.to_owned(), place)];
        Run::Running(Running { containers, pod, started: self.clock(who), deadline, restarts: 0, cancelled: false })
    }

    /// What this process runs ends like this: all of it, or what is due.
    pub(crate) fn runs_end(&mut self, who: Who, end: End, only_due: bool) -> bool {
        let now = self.now;
        let is_due = |run: &Run| match run {
            Run::Running(running) => !only_due || running.cancelled || running.deadline <= now,
            Run::Idle | Run::Ended { .. } => false,
        };
        let children = &self.process(who).memory.children;
        let due: Vec<_> = children
            .iter()
            .map(|(name, child)| (name.clone(), is_due(&child.run), is_due(&child.undo)))
            .filter(|(_, run, undo)| *run || *undo)
            .collect();
        for (name, run_ends, undo_ends) in &due {
            if *run_ends {
                let run = std::mem::take(&mut self.process(who).child(name).run);
                let ended = self.ended(who, run, end, 1, true);
                self.process(who).child(name).run = ended;
            }
            if *undo_ends {
                let child = self.process(who).child(name);
                let (run, round) = (std::mem::take(&mut child.undo), child.rounds);
                let ended = self.ended(who, run, end, round, false);
                self.process(who).child(name).undo = ended;
            }
            self.process(who).wake(&(super::objects::Kind::Notification, name.clone()), now);
        }
        !due.is_empty()
    }

    fn ended(&mut self, who: Who, run: Run, end: End, round: u32, is_handler: bool) -> Run {
        let Run::Running(running) = run else { return run };
        let place = running.containers.first().and_then(|(_, place)| *place);
        let well = matches!(end, End::Succeeded) && !running.cancelled;
        let (end, container_id) = match (place, self.pods.get(&running.pod).is_some()) {
            (Some(place), true) if is_handler => {
                let (well, id) = self.pods.handler_ends(place, well);
                (
                    if well {
                        End::Succeeded
                    } else if matches!(end, End::Unknown) {
                        end
                    } else {
                        End::Failed
                    },
                    Some(id),
                )
            }
            (Some(place), true) => {
                self.pods.undo_ends(place, well);
                (end, None)
            }
            (_, false) => (End::PodGone, None),
            (None, true) => (End::Failed, None),
        };
        let mut ended = end.ended(running.started, self.clock(who));
        ended.container_id = container_id;
        Run::Ended { results: vec![(CONTAINER.to_owned(), ended)], round }
    }
}
