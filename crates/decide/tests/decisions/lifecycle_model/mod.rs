//! A model of the world around a Deployment whose rollouts have hooks, in which everything that can go wrong does.
//!
//! [`World::step`] plays one [`Step`](step::Step): Kubernetes' Deployment controller syncs from what it has seen, late or
//! not; the gate judges what it writes, unless it is away; pods take their time to start and to end, hooks succeed, fail,
//! hang or are taken away; two controllers of ours look, act, crash and lose the lease; people change their minds.
//! `promises` checks what must always hold, against what really happened; [`World::settle`] then lets the faults stop,
//! and the rollout must come to its end.

mod act;
mod api_server;
mod deployment_controller;
mod hooks;
mod look;
mod objects;
mod people;
mod pods;
mod promises;
mod properties;
mod runs;
mod scaling;
mod settled;
mod step;
mod stories;
mod strategies;
mod time;

use std::collections::{BTreeMap, VecDeque};

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{DeploymentLifecycleSpec, FailurePolicy, Stage},
};
use boathook_decide::deployment_lifecycle::Strategy;
use jiff::{SignedDuration, Timestamp};

use crate::world::process::Who;
use act::{Controller, Late};
use deployment_controller::Native;
use hooks::HookPod;
use objects::{Deployment, Hook, Pod, Set};
use runs::Run;

/// A Deployment, and the hooks of its rollouts.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) strategy: Strategy,
    pub(crate) replicas: i32,
    pub(crate) surge: i32,
    pub(crate) unavailable: i32,
    pub(crate) history_limit: usize,
    pub(crate) pre: Option<FailurePolicy>,
    pub(crate) mid: Option<FailurePolicy>,
    pub(crate) post: Option<FailurePolicy>,
    /// Its first rollout is held already; else it is adopted.
    pub(crate) required: bool,
    /// How long pods take to start and to end, in seconds.
    pub(crate) starting: i64,
    pub(crate) ending: i64,
    /// Something is injected into the pods of hooks that never ends.
    pub(crate) sidecar: bool,
}

pub(crate) struct World {
    now: Timestamp,
    plan: Plan,
    /// Counts every change; an object has the count of its last one.
    revision: u64,
    lifecycle: Option<DeploymentLifecycle>,
    /// One was seen by our controller.
    looked_after: bool,
    deployment: Deployment,
    sets: Vec<Set>,
    pods: Vec<Pod>,
    hook_pods: Vec<HookPod>,
    native: Native,
    /// The ReplicaSet controller has something to look at.
    sets_changed: bool,
    controllers: [Controller; 2],
    /// Which of the two holds the lease.
    lease: Option<Who>,
    webhook: bool,
    /// Requests that arrive after their sender has given up.
    late: VecDeque<Late>,
    arrives_late: bool,
    /// How hooks end by themselves.
    usual: Hook,
    settling: bool,
    /// Every pod of a hook that there ever was.
    runs: Vec<Run>,
    /// Since the template last changed: whether it was held from the start.
    held: bool,
    /// How often the template was changed.
    templates: u32,
    /// Which stages a person wanted skipped, of which rollout.
    skips: Vec<(String, Stage)>,
    /// What people asked for, and what was taken away from hooks: each is worth a few writes more.
    disturbances: usize,
    /// Of ours, by rollout: those that changed something.
    writes: BTreeMap<String, usize>,
    nudges: usize,
    /// Only people, and adopting and removing, add to the Deployment's generation.
    generations: i64,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let now = Timestamp::from_second(1_700_000_000).expect("a moment");
        let deployment = Deployment::new(&plan);
        let held = deployment.lifecycle.is_some();
        let mut world = Self {
            now,
            revision: 1,
            lifecycle: None,
            looked_after: false,
            deployment,
            sets: vec![],
            pods: vec![],
            hook_pods: vec![],
            native: Native::default(),
            sets_changed: false,
            controllers: Default::default(),
            lease: Some(Who::First),
            webhook: true,
            late: VecDeque::new(),
            arrives_late: false,
            usual: Hook::Succeeds,
            settling: false,
            runs: vec![],
            held,
            templates: 0,
            skips: vec![],
            disturbances: 0,
            writes: BTreeMap::new(),
            nudges: 0,
            generations: 1,
            plan,
        };
        world.native.queued = true;
        // What there was before anybody thought of hooks.
        world.pass(SignedDuration::from_mins(1));
        world.create_lifecycle();
        world
    }

    fn spec(&self) -> DeploymentLifecycleSpec {
        let Plan { pre, mid, post, .. } = self.plan;
        DeploymentLifecycleSpec { pre: pre.map(hooks::hook), mid: mid.map(hooks::hook), post: post.map(hooks::hook) }
    }
}
