//! Rollouts step by step: plans are carried out on plain values, and pods become ready at once.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::numbers::size;
use super::revision;
use super::rollout::{Plan, Step, after_a_failed_shrink, note_creation, plan};

/// A Deployment and its ReplicaSets, as an API server would hold them.
struct World {
    deployment: Deployment,
    sets: Vec<ReplicaSet>,
    pods: Vec<Arc<Pod>>,
    now: Timestamp,
    told: Vec<String>,
}

impl World {
    fn new(strategy: Value) -> Self {
        let template =
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "1"}]}});
        let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template,
                          "strategy": strategy, "revisionHistoryLimit": 1, "progressDeadlineSeconds": 60});
        let meta = json!({"name": "web", "namespace": "n", "uid": "u", "generation": 1});
        let deployment = serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap();
        let now = "2024-01-01T00:00:00Z".parse().unwrap();
        Self { deployment, sets: Vec::new(), pods: Vec::new(), now, told: Vec::new() }
    }

    fn rolling() -> Self {
        Self::new(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}))
    }

    fn change(&mut self, change: impl FnOnce(&mut k8s_openapi::api::apps::v1::DeploymentSpec)) {
        change(self.deployment.spec.as_mut().unwrap());
        *self.deployment.metadata.generation.as_mut().unwrap() += 1;
    }

    fn set_image(&mut self, image: &str) {
        self.change(|spec| spec.template.spec.as_mut().unwrap().containers[0].image = Some(image.to_owned()));
    }

    /// One look and its steps. Whether there were any.
    fn step(&mut self) -> bool {
        self.now += SignedDuration::from_secs(1);
        let Plan { steps, .. } = plan(self.deployment.clone(), self.sets.clone(), &self.pods, self.now);
        let acted = !steps.is_empty();
        for step in steps {
            match step {
                Step::WriteStatus(deployment) => self.deployment = *deployment,
                Step::Replace(set) | Step::Shrink(set) => {
                    let place = self.sets.iter_mut().find(|other| other.metadata.name == set.metadata.name);
                    *place.unwrap() = *set;
                }
                Step::Delete(name) => self.sets.retain(|set| set.metadata.name.as_ref() != Some(&name)),
                Step::Tell(message) => self.told.push(message),
                Step::Create(mut set) => {
                    set.metadata.uid = set.metadata.name.clone();
                    set.metadata.creation_timestamp =
                        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.now));
                    note_creation(&mut self.deployment, &set, true, self.now);
                    self.sets.push(*set);
                }
            }
        }
        acted
    }

    /// All pods come and go as wanted.
    fn pods_follow(&mut self) {
        for set in &mut self.sets {
            let count = size(set);
            set.status = Some(ReplicaSetStatus {
                replicas: count,
                ready_replicas: Some(count),
                available_replicas: Some(count),
                terminating_replicas: Some(0),
                ..ReplicaSetStatus::default()
            });
        }
    }

    /// Puts the rollout into a state: revision, size and available pods of each ReplicaSet.
    fn settle_sizes(&mut self, state: &[(i64, i32, i32)]) {
        self.step();
        for (revision, size, available) in state {
            let of_revision = |set: &&mut ReplicaSet| revision::revision(set) == Some(*revision);
            let set = self.sets.iter_mut().find(of_revision).unwrap();
            set.spec.as_mut().unwrap().replicas = Some(*size);
            let counts = json!({"replicas": available, "readyReplicas": available, "availableReplicas": available});
            set.status = serde_json::from_value(counts).unwrap();
        }
    }

    fn settle(&mut self) {
        while self.step() {
            self.pods_follow();
        }
    }

    /// Sizes by revision.
    fn sizes(&self) -> Vec<(i64, i32)> {
        let mut sizes: Vec<_> = self.sets.iter().map(|set| (revision::revision(set).unwrap(), size(set))).collect();
        sizes.sort_unstable();
        sizes
    }

    fn reason(&self, type_: &str) -> &str {
        let conditions = self.deployment.status.as_ref().unwrap().conditions.iter().flatten();
        let mut of_type = conditions.filter(|condition| condition.type_ == type_);
        of_type.next().and_then(|condition| condition.reason.as_deref()).unwrap_or_default()
    }
}

#[test]
fn a_first_rollout_makes_one_replica_set_of_full_size() {
    let mut world = World::rolling();
    assert!(world.step());
    assert_eq!(world.sizes(), [(1, 3)]);
    assert_eq!(world.reason("Progressing"), "NewReplicaSetCreated");
    world.settle();
    assert_eq!(world.reason("Progressing"), "NewReplicaSetAvailable");
    assert!(!world.step(), "a finished rollout writes nothing more");
}

#[test]
fn a_rolling_update_never_has_too_many_or_too_few() {
    let mut world = World::rolling();
    world.settle();
    world.set_image("2");
    let mut sizes = Vec::new();
    while world.step() {
        let total: i32 = world.sizes().iter().map(|(_, size)| size).sum();
        assert!((3..=4).contains(&total), "{:?}", world.sizes());
        sizes.push(world.sizes());
        world.pods_follow();
    }
    sizes.dedup();
    let wanted =
        [[(1, 3), (2, 1)], [(1, 2), (2, 1)], [(1, 2), (2, 2)], [(1, 1), (2, 2)], [(1, 1), (2, 3)], [(1, 0), (2, 3)]];
    assert_eq!(sizes, wanted);
    assert_eq!(
        world.told[0],
        format!("Scaled down replica set {} from 3 to 2", world.sets[0].metadata.name.as_ref().unwrap())
    );
}

#[test]
fn old_pods_stay_while_new_ones_do_not_become_ready() {
    let mut world = World::rolling();
    world.settle();
    world.set_image("2");
    while world.step() {}
    assert_eq!(world.sizes(), [(1, 3), (2, 1)]);
    world.now += SignedDuration::from_secs(60);
    world.step();
    assert_eq!(world.reason("Progressing"), "ProgressDeadlineExceeded");
    assert_eq!(world.reason("Available"), "MinimumReplicasAvailable");
}

#[test]
fn unhealthy_old_pods_are_the_first_to_go() {
    let mut world = World::rolling();
    world.settle();
    world.set_image("broken");
    while world.step() {}
    world.set_image("3");
    while world.step() {}
    assert_eq!(world.sizes(), [(1, 3), (2, 0), (3, 1)]);
}

#[test]
fn pods_that_are_about_to_go_do_not_count_as_spare() {
    let mut world = World::new(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}));
    world.change(|spec| spec.replicas = Some(5));
    world.settle();
    world.set_image("2");
    world.settle_sizes(&[(1, 3, 4), (2, 3, 2)]);
    world.step();
    assert_eq!(world.sizes(), [(1, 3), (2, 3)]);
    world.settle_sizes(&[(1, 3, 3), (2, 3, 2)]);
    world.step();
    assert_eq!(world.sizes(), [(1, 2), (2, 3)]);
}

#[test]
fn recreating_waits_until_the_last_old_pod_is_gone() {
    let mut world = World::new(json!({"type": "Recreate"}));
    world.settle();
    world.set_image("2");
    world.step();
    world.pods_follow();
    let owner = revision_owner(&world.sets[0]);
    let pod = json!({"metadata": {"name": "p", "ownerReferences": [owner]}, "status": {"phase": "Running"}});
    world.pods = vec![Arc::new(serde_json::from_value(pod).unwrap())];
    while world.step() {}
    assert_eq!(world.sizes(), [(1, 0)], "the pod still runs");
    world.pods.clear();
    world.settle();
    assert_eq!(world.sizes(), [(1, 0), (2, 3)]);
}

fn revision_owner(set: &ReplicaSet) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set.metadata.name, "uid": set.metadata.uid, "controller": true})
}

#[test]
fn a_paused_deployment_is_scaled_but_not_rolled_out() {
    let mut world = World::rolling();
    world.settle();
    world.change(|spec| spec.paused = Some(true));
    world.set_image("2");
    world.change(|spec| spec.replicas = Some(5));
    world.settle();
    assert_eq!(world.sizes(), [(1, 5)]);
    assert_eq!(world.reason("Progressing"), "DeploymentPaused");
    world.change(|spec| spec.paused = None);
    world.settle();
    assert_eq!(world.sizes(), [(1, 0), (2, 5)]);
}

#[test]
fn scaling_amid_a_rollout_is_shared_out_and_the_rollout_goes_on() {
    let mut world = World::rolling();
    world.change(|spec| spec.replicas = Some(10));
    world.settle();
    world.set_image("2");
    while world.step() {}
    assert_eq!(world.sizes(), [(1, 10), (2, 1)]);
    world.change(|spec| spec.replicas = Some(20));
    world.step();
    assert_eq!(world.sizes(), [(1, 19), (2, 2)]);
    world.settle();
    assert_eq!(world.sizes(), [(1, 0), (2, 20)]);
}

#[test]
fn going_back_reuses_the_old_replica_set_under_a_new_revision() {
    let mut world = World::rolling();
    world.settle();
    world.set_image("2");
    world.settle();
    world.set_image("1");
    world.settle();
    assert_eq!(world.sizes(), [(2, 0), (3, 3)]);
    assert_eq!(revision::annotation(&world.deployment, revision::REVISION), Some("3"));
}

#[test]
fn only_so_many_old_replica_sets_are_kept_as_the_history_limit_says() {
    let mut world = World::rolling();
    for image in ["1", "2", "3", "4"] {
        world.set_image(image);
        world.settle();
    }
    assert_eq!(world.sizes(), [(3, 0), (4, 3)]);
}

#[test]
fn changed_annotations_reach_the_replica_set() {
    let mut world = World::rolling();
    world.settle();
    world.deployment.metadata.annotations.as_mut().unwrap().insert("team".to_owned(), "red".to_owned());
    world.settle();
    assert_eq!(revision::annotation(&world.sets[0], "team"), Some("red"));
}

#[test]
fn a_deployment_that_is_being_deleted_only_counts() {
    let mut world = World::rolling();
    world.settle();
    world.set_image("2");
    world.deployment.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time("2024-01-01T00:00:00Z".parse().unwrap()));
    world.settle();
    assert_eq!(world.sizes(), [(1, 3)]);
}

#[test]
fn a_shrink_that_fails_in_a_rolling_update_is_forgotten_and_the_status_is_written() {
    let mut world = World::rolling();
    world.settle();
    world.set_image("2");
    // The old version is broken: it goes as soon as there is room.
    world.settle_sizes(&[(1, 3, 0)]);
    world.step();
    world.settle_sizes(&[(1, 3, 0), (2, 1, 1)]);
    world.now += SignedDuration::from_secs(1);
    let mut steps = plan(world.deployment.clone(), world.sets.clone(), &[], world.now).steps.into_iter();
    let shrinks = steps.find(|step| !matches!(step, Step::WriteStatus(_)));
    assert!(matches!(shrinks, Some(Step::Shrink(_))), "{shrinks:?}");
    let left = after_a_failed_shrink(steps);
    assert!(matches!(left[..], [Step::WriteStatus(_)]), "{left:?}");
}

#[test]
fn one_that_fails_under_recreate_is_tried_again() {
    let mut world = World::new(json!({"type": "Recreate"}));
    world.settle();
    world.set_image("2");
    let steps = plan(world.deployment.clone(), world.sets.clone(), &[], world.now).steps;
    assert!(steps.iter().any(|step| matches!(step, Step::Replace(_))), "{steps:?}");
    assert!(!steps.iter().any(|step| matches!(step, Step::Shrink(_))), "{steps:?}");
}
