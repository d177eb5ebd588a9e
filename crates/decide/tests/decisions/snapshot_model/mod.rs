//! A model of the world around ApplicationSnapshots, their hooks and PodNotifications, in which everything that can go
//! wrong does.
//!
//! [`World::step`] plays one [`Step`](step::Step): two controllers and an agent look, act, crash, pause, and their clocks
//! differ; the API server answers late, twice or not at all, and shows what was; the storage cuts, fails, hangs or says
//! nothing; people and pods come and go. `promises` and `consistency` check what must always hold, against what really
//! happened; [`World::settle`] then lets the faults stop, and what was promised must come about.

mod act;
mod api_server;
mod consistency;
mod executor;
mod expiry;
mod keeper;
mod look;
mod look_at_snapshot;
mod objects;
mod people;
mod pods;
mod process;
mod promises;
mod properties;
mod settled;
mod step;
mod storage;
mod stories;
mod time;

use boathook_api::{ApplicationSnapshot, ExecutionHook, pod_notification::Executor};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::world::{process::Who, run::End};
use api_server::Server;
use objects::Object;
use people::Templates;
use pods::Pods;
use process::{Memory, Process};
use storage::Storage;

/// What is asked for, and of whom.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) wish: Wish,
    pub(crate) executor: Executor,
    /// The templates: after how long each expires, and whether it has a PostAction.
    pub(crate) hooks: Vec<(Option<i32>, bool)>,
    /// How many pods use the claim at first.
    pub(crate) pods: usize,
    pub(crate) crash_consistent: bool,
    /// By how many seconds the clocks of the second controller and the agent are wrong.
    pub(crate) skews: [i64; 2],
    /// Of several things that are due, processes do the last one first.
    pub(crate) last_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A hook by itself.
    Hook,
    Snapshot,
    /// Two of the same claim.
    Snapshots,
    /// Of a VolumeSnapshot that somebody else makes.
    DoorTwo,
}

pub(crate) struct World {
    now: Timestamp,
    plan: Plan,
    server: Server,
    pods: Pods,
    storage: Storage,
    templates: Templates,
    processes: [Process; 3],
    /// Which of the two controllers holds the lease.
    lease: Option<Who>,
    /// Whether the agent reaches the API server.
    agent_is_cut_off: bool,
    /// How whatever runs ends by itself, and whether that takes long.
    usual: End,
    slow: bool,
    settling: bool,
    /// When something last went wrong, or was done in another order than time has it.
    steady_since: Timestamp,
    /// Up to which revision the promises have been checked.
    checked: usize,
    /// How often somebody could not wait for the next round of an undo.
    impatience: usize,
    /// Writes that changed each object, by its UID, before and after its turning point.
    writes: std::collections::BTreeMap<String, [usize; 2]>,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
        let mut world = Self {
            now,
            server: Server::default(),
            pods: Pods::new(plan.pods),
            storage: Storage::default(),
            templates: Templates::new(&plan.hooks),
            processes: Who::ALL.map(|_| Process::new(Memory::default())),
            lease: Some(Who::First),
            agent_is_cut_off: false,
            usual: End::Succeeded,
            slow: false,
            settling: false,
            steady_since: now,
            checked: 0,
            impatience: 0,
            writes: std::collections::BTreeMap::new(),
            plan,
        };
        let names: &[&str] = match world.plan.wish {
            Wish::Hook => &[],
            Wish::Snapshot | Wish::DoorTwo => &["one"],
            Wish::Snapshots => &["one", "two"],
        };
        for name in names {
            let snapshot = world.snapshot(name);
            world.server.person_creates(Object::Snapshot(snapshot), now);
        }
        if world.plan.wish == Wish::Hook {
            let spec = json!({"executionHookTemplateName": "hook-0", "podSelector": {}});
            let hook = ExecutionHook::new("alone", serde_json::from_value(spec).expect("it is a spec"));
            world.server.person_creates(Object::Hook(hook), now);
        }
        world.note_changes();
        world
    }

    fn snapshot(&self, name: &str) -> ApplicationSnapshot {
        let infos: Vec<_> = (0..self.plan.hooks.len())
            .map(|place| json!({"executionHookTemplateName": format!("hook-{place}")}))
            .collect();
        let mut source = json!({"persistentVolumeClaimName": "data"});
        if self.plan.wish == Wish::DoorTwo {
            source["volumeSnapshotName"] = "theirs".into();
            source["volumeSnapshotUID"] = "theirs-uid".into();
        }
        let on_hook_failure = if self.plan.crash_consistent { "CrashConsistent" } else { "Fail" };
        let spec = json!({
            "source": source,
            "executionHookInfos": infos,
            "cutTimeoutSeconds": 10,
            "onHookFailure": on_hook_failure,
        });
        ApplicationSnapshot::new(name, serde_json::from_value(spec).expect("it is a spec"))
    }

    fn process(&mut self, who: Who) -> &mut Process {
        &mut self.processes[who as usize]
    }

    /// What this process' clock says.
    fn clock(&self, who: Who) -> Timestamp {
        self.now + self.skew(who)
    }

    fn skew(&self, who: Who) -> SignedDuration {
        let seconds = match who {
            Who::First => 0,
            Who::Second => self.plan.skews[0],
            Who::Agent => self.plan.skews[1],
        };
        SignedDuration::from_secs(seconds)
    }
}
