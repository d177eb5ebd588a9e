//! The ReplicaSet controller, and the pods of the Deployment, which take their time to start and to end.

use jiff::{SignedDuration, Timestamp};

use super::{World, objects::Pod};

impl World {
    /// Every ReplicaSet is given the pods that it asks for, and what it had is counted.
    pub(crate) fn sets_sync(&mut self) {
        self.sets_changed = false;
        for place in 0..self.sets.len() {
            let (uid, wanted) = (self.sets[place].uid.clone(), self.sets[place].replicas);
            let own = |pod: &&Pod| pod.set == uid && pod.ends.is_none();
            let has = self.pods.iter().filter(own).count();
            let available = self.pods.iter().filter(own).filter(|pod| pod.ready <= self.now).count();
            let counted = [has, available].map(|count| i32::try_from(count).expect("a few"));
            for _ in counted[0]..wanted {
                self.check_new_pod(&uid);
                let ready = self.now + SignedDuration::from_secs(self.plan.starting);
                self.pods.push(Pod { set: uid.clone(), ready, ends: None });
                self.changed();
            }
            for _ in wanted..counted[0] {
                let ends = self.now + SignedDuration::from_secs(self.plan.ending);
                let mut own = self.pods.iter_mut().filter(|pod| pod.set == uid && pod.ends.is_none());
                // Those that are not ready yet go first.
                own.by_ref().max_by_key(|pod| pod.ready).expect("it has too many").ends = Some(ends);
                self.changed();
            }
            let set = &mut self.sets[place];
            if [set.has, set.available] != counted {
                [set.has, set.available] = counted;
                let version = self.changed();
                self.sets[place].version = version;
            }
        }
        self.collect_garbage();
    }

    /// Pods that are ready by now are counted, and those whose time is over go.
    pub(crate) fn pods_go_on(&mut self) -> bool {
        let before = self.pods.len();
        self.pods.retain(|pod| pod.ends.is_none_or(|ends| ends > self.now));
        let gone = self.pods.len() < before;
        if gone {
            self.changed();
        }
        self.sets_changed |= self.uncounted();
        gone || self.sets_changed
    }

    fn uncounted(&self) -> bool {
        self.sets.iter().any(|set| {
            let own = self.pods.iter().filter(|pod| pod.set == set.uid && pod.ends.is_none());
            let ready = own.filter(|pod| pod.ready <= self.now).count();
            usize::try_from(set.available) != Ok(ready)
        })
    }

    /// With its ReplicaSet a pod goes, and a hook's pod too.
    fn collect_garbage(&mut self) {
        let (now, sets) = (self.now, &self.sets);
        let lost = |uid: &str| uid.starts_with("set-") && sets.iter().all(|set| set.uid != uid);
        let ends = now + SignedDuration::from_secs(self.plan.ending);
        self.pods.iter_mut().filter(|pod| lost(&pod.set) && pod.ends.is_none()).for_each(|pod| pod.ends = Some(ends));
        let orphans: Vec<_> =
            self.hook_pods.iter().filter(|pod| lost(&pod.owner)).map(|pod| pod.name.clone()).collect();
        orphans.iter().for_each(|name| self.delete_hook_pod(name, true));
    }

    pub(crate) fn next_of_pods(&self) -> Option<Timestamp> {
        self.pods.iter().flat_map(|pod| [Some(pod.ready), pod.ends]).flatten().filter(|then| *then > self.now).min()
    }
}
