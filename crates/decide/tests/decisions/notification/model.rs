//! Two controllers tell the pods of one Notification, see them late, crash and take over from each other.

use std::collections::{BTreeMap, VecDeque};

use boathook_api::{
    Notification, PodNotification,
    notification::{NotificationStatus, PodSelectionPolicy},
    pod_notification::State,
};
use boathook_decide::{
    Leadership,
    notification::{Effect, Observed, Pod, decide},
};
use kube::ResourceExt;
use proptest::prelude::*;

use super::{at, ended, notification, pod};

type Children = BTreeMap<String, PodNotification>;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A controller looks; it sees what was told as it was so many changes ago.
    Look(usize, usize),
    /// It carries out its next effect, or that is lost, or the answer is.
    Act(usize, Answer),
    Crash(usize),
    Lease(usize),
    /// One of the children that have not ended does.
    ChildEnds(usize, bool),
    /// A pod comes, older or younger than the object.
    PodComes(i64),
    PodStops(usize),
    PodRuns(usize),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Heard,
    Lost,
    NeverAsked,
}

struct World {
    versions: Vec<Notification>,
    /// The children, as they were after each change.
    history: Vec<Children>,
    pods: Vec<Pod>,
    leader: usize,
    /// How often the lease has changed hands.
    term: usize,
    controllers: [Controller; 2],
    /// Whom each child that was ever created told.
    told: Vec<String>,
}

#[derive(Default)]
struct Controller {
    has_led: bool,
    /// It has seen no older children than these.
    seen: usize,
    /// Those that it has made itself: it knows of them before the watch does.
    made: Children,
    effects: VecDeque<Effect>,
    version: usize,
    /// When it looked.
    term: usize,
}

impl World {
    fn new(policy: PodSelectionPolicy, parallelism: i32) -> Self {
        let versions = vec![notification(policy, Some(parallelism))];
        let (history, controllers) = (vec![Children::new()], Default::default());
        Self { versions, history, pods: vec![pod(0, -5), pod(1, -5)], leader: 0, term: 0, controllers, told: vec![] }
    }

    fn children(&self) -> &Children {
        self.history.last().expect("there is always a last one")
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Look(who, ago) => self.look(who, ago),
            Step::Act(who, answer) => self.act(who, answer),
            Step::Crash(who) => {
                self.controllers[who] = Controller { seen: self.history.len() - 1, ..Controller::default() };
            }
            Step::Lease(who) => {
                self.term += usize::from(self.leader != who);
                self.leader = who;
                // Taking over takes seconds: the watch has caught up.
                self.controllers[who].seen = self.history.len() - 1;
            }
            Step::ChildEnds(which, well) => self.child_ends(which, well),
            Step::PodComes(created) => self.pods.push(pod(self.pods.len(), created)),
            Step::PodStops(which) => self.set_running(which, false),
            Step::PodRuns(which) => self.set_running(which, true),
        }
        self.check();
    }

    fn look(&mut self, who: usize, ago: usize) {
        let newest = self.history.len() - 1;
        let leads = self.leader == who;
        let controller = &mut self.controllers[who];
        controller.has_led |= leads;
        if !controller.effects.is_empty() || !controller.has_led {
            return;
        }
        controller.seen = newest.saturating_sub(ago).max(controller.seen);
        let seen = &self.history[controller.seen];
        controller.made.retain(|name, _| !seen.contains_key(name));
        let children = seen.values().chain(controller.made.values()).cloned().collect();
        (controller.version, controller.term) = (self.versions.len() - 1, self.term);
        let leadership = if leads { Leadership::Leader } else { Leadership::ThawOnly };
        let object = &self.versions[controller.version];
        let observed =
            Observed { object, leadership, enabled: true, author_checked: true, pods: Ok(self.pods.clone()), children };
        controller.effects = decide(&observed, at(10)).effects.into();
    }

    fn act(&mut self, who: usize, answer: Answer) {
        let still_leads = self.leader == who && self.controllers[who].term == self.term;
        let Some(effect) = self.controllers[who].effects.pop_front() else { return };
        // Whether it leads is asked again before each effect.
        let done = still_leads
            && match (answer, effect) {
                (Answer::NeverAsked, _) => false,
                (Answer::Heard | Answer::Lost, Effect::CreateChild(child)) => {
                    self.controllers[who].made.insert(child.name_any(), (*child).clone());
                    self.create(*child);
                    true
                }
                (Answer::Heard | Answer::Lost, Effect::WriteStatus(status)) => self.write(who, *status),
            };
        if !done || !matches!(answer, Answer::Heard) {
            let controller = &mut self.controllers[who];
            controller.effects.clear();
            // It does not know what it has made: it asks the API server, not its watch.
            controller.made.clear();
            controller.seen = self.history.len() - 1;
        }
    }

    fn create(&mut self, child: PodNotification) {
        if !self.children().contains_key(&child.name_any()) {
            self.told.extend(child.spec.pod_uid.clone());
            let mut children = self.children().clone();
            children.insert(child.name_any(), child);
            self.history.push(children);
        }
    }

    fn write(&mut self, who: usize, status: NotificationStatus) -> bool {
        let newest = self.versions.len() - 1;
        let object = &self.versions[newest];
        if self.controllers[who].version != newest {
            return false;
        }
        assert_ne!(object.status.as_ref(), Some(&status), "a write that changes nothing");
        let complete = |status: &NotificationStatus| {
            status.conditions.iter().any(|one| one.type_ == "Complete" && one.status == "True")
        };
        assert!(!object.status.as_ref().is_some_and(complete), "I8: it was complete, and changed");
        if complete(&status) {
            assert_eq!(object.spec.policy, PodSelectionPolicy::PreExistingPods, "under AllPods it never is");
            assert_eq!(self.counts(), (status.succeeded_count, status.failed_count), "the last counts are right");
            assert_eq!(self.running(), 0, "it is complete only when every child is");
        }
        self.versions.push(Notification { status: Some(status), ..object.clone() });
        true
    }

    fn child_ends(&mut self, which: usize, well: bool) {
        let open: Vec<_> = self.children().values().filter(|child| child.status.is_none()).cloned().collect();
        if !open.is_empty() {
            let child = ended(&open[which % open.len()], if well { State::Succeeded } else { State::Failed });
            let mut children = self.children().clone();
            children.insert(child.name_any(), child);
            self.history.push(children);
        }
    }

    fn set_running(&mut self, which: usize, running: bool) {
        let which = which % self.pods.len();
        self.pods[which].running = running;
    }

    fn running(&self) -> usize {
        self.children().values().filter(|child| child.status.is_none()).count()
    }

    fn counts(&self) -> (i32, i32) {
        let count = |state| {
            let ended =
                self.children().values().filter(|child| child.status.as_ref().is_some_and(|one| one.state == state));
            i32::try_from(ended.count()).expect("there are few")
        };
        (count(State::Succeeded), count(State::Failed))
    }

    fn check(&self) {
        let object = self.versions.last().expect("there is always a last one");
        let parallelism = usize::try_from(object.spec.parallelism.unwrap_or_default()).expect("it is positive");
        assert!(parallelism == 0 || self.running() <= parallelism, "{} at once", self.running());
        for (place, uid) in self.told.iter().enumerate() {
            assert!(!self.told[..place].contains(uid), "{uid} was told twice");
        }
        let all_pods = object.spec.policy == PodSelectionPolicy::AllPods;
        let complete_time = object.status.as_ref().and_then(|status| status.complete_time.as_ref());
        assert!(!all_pods || complete_time.is_none(), "completeTime under AllPods");
    }

    /// The faults stop: whoever leads looks and acts, and children end.
    fn settle(&mut self) {
        for _ in 0..100 {
            while !self.controllers[self.leader].effects.is_empty() {
                self.step(Step::Act(self.leader, Answer::Heard));
            }
            let before = (self.versions.len(), self.history.len());
            self.look(self.leader, 0);
            while !self.controllers[self.leader].effects.is_empty() {
                self.step(Step::Act(self.leader, Answer::Heard));
            }
            self.step(Step::ChildEnds(0, true));
            if before == (self.versions.len(), self.history.len()) {
                return self.check_settled();
            }
        }
        panic!("writes go on though nothing happens");
    }

    fn check_settled(&self) {
        let object = self.versions.last().expect("there is always a last one");
        let status = object.status.clone().expect("it was looked at");
        assert_eq!(self.counts(), (status.succeeded_count, status.failed_count));
        let complete = status.complete_time.is_some();
        assert_eq!(complete, object.spec.policy == PodSelectionPolicy::PreExistingPods);
        for pod in self.pods.iter().filter(|pod| pod.running && !complete) {
            assert!(self.told.contains(&pod.uid), "{} was not told", pod.name);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let answer = || prop_oneof![6 => Just(Answer::Heard), 1 => Just(Answer::Lost), 1 => Just(Answer::NeverAsked)];
    prop_oneof![
        6 => (0..2_usize, 0..4_usize).prop_map(|(who, ago)| Step::Look(who, ago)),
        10 => (0..2_usize, answer()).prop_map(|(who, answer)| Step::Act(who, answer)),
        1 => (0..2_usize).prop_map(Step::Crash),
        2 => (0..2_usize).prop_map(Step::Lease),
        4 => (0..9_usize, any::<bool>()).prop_map(|(which, well)| Step::ChildEnds(which, well)),
        2 => prop_oneof![Just(-9_i64), Just(-5), Just(0), Just(3)].prop_map(Step::PodComes),
        2 => (0..9_usize).prop_map(Step::PodStops),
        2 => (0..9_usize).prop_map(Step::PodRuns),
    ]
}

proptest! {
    #![proptest_config(crate::config(500))]

    #[test]
    fn no_pod_is_told_twice_nor_too_many_at_once_whoever_looks_and_whatever_is_lost(
        all_pods in any::<bool>(),
        parallelism in 0..3_i32,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let policy = if all_pods { PodSelectionPolicy::AllPods } else { PodSelectionPolicy::PreExistingPods };
        let mut world = World::new(policy, parallelism);
        for step in steps {
            world.step(step);
        }
        world.settle();
    }
}
