//! A model of the world around one PodNotification, in which everything that can go wrong does.
//!
//! [`World::step`] plays one [`Step`](step::Step): two controllers and an agent look, act, crash, pause; the API server
//! answers late, twice or not at all; people change their minds; pods come and go. After each, `promises` checks what
//! must always hold. [`World::settle`] then lets the faults stop, and what was promised must come about.

mod act;
mod api_server;
mod held;
mod keeper;
mod look;
mod pod;
mod process;
mod promises;
mod properties;
mod step;
mod stories;
mod time;

use boathook_api::{
    PodNotification,
    pod_notification::{Executor, PodNotificationSpec, Retry, Undo},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::world::process::Who;
use api_server::ApiServer;
use pod::{CONTAINERS, Pods};
use process::{Memory, Process};

/// What is asked for, and of whom.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) executor: Executor,
    pub(crate) declaring: usize,
    /// Whether there is an undo, and after how many seconds it runs by itself.
    pub(crate) undo: Option<Option<i32>>,
    /// The handler's session is held until the undo; whether something then follows its release.
    pub(crate) holds: Option<Follows>,
    pub(crate) ttl: Option<i32>,
    /// In the end the node dies, and the agent with it.
    pub(crate) node_dies: bool,
}

/// What the undo does after it has released a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    Nothing,
    Thaw,
}

pub(crate) struct World {
    now: Timestamp,
    plan: Plan,
    server: ApiServer,
    pods: Pods,
    processes: [Process; 3],
    /// Which of the two controllers holds the lease.
    lease: Option<Who>,
    /// The feature gate.
    enabled: bool,
    /// Whether the agent reaches the API server.
    agent_is_cut_off: bool,
    /// Faults have stopped: whatever runs ends well, and at once.
    settling: bool,
    /// A person gave the undo up.
    abandoned: bool,
    /// Writes that were carried out and answered, before the handlers' end and after it.
    writes: [usize; 2],
    /// Up to which version the promises have been checked.
    checked: usize,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
        let undo = plan.undo.map(|after_seconds| Undo {
            notifier: Some("thaw".to_owned()).filter(|_| plan.holds != Some(Follows::Nothing)),
            action: None,
            timeout_seconds: None,
            after_seconds,
        });
        let spec = PodNotificationSpec {
            pod_name: "pod".to_owned(),
            pod_uid: None,
            notifier: Some("freeze".to_owned()).filter(|_| plan.holds.is_none()),
            action: plan.holds.map(|_| held::freeze()),
            containers: plan
                .holds
                .map(|_| CONTAINERS.iter().take(plan.declaring).map(|&name| name.to_owned()).collect()),
            start_deadline_seconds: 20,
            retry: Retry::Never,
            undo,
            undo_requested: false,
            ttl_seconds_after_finished: plan.ttl,
        };
        let mut object = PodNotification::new("notification", spec);
        object.metadata.creation_timestamp = Some(Time(now));
        object.metadata.uid = Some("notification-0".to_owned());
        Self {
            now,
            server: ApiServer::new(object),
            pods: Pods::new(plan.declaring),
            plan,
            processes: Who::ALL
                .map(|_| Process::new(Memory { wake: Some(now), steady_since: now, ..Memory::default() })),
            lease: Some(Who::First),
            enabled: true,
            agent_is_cut_off: false,
            settling: false,
            abandoned: false,
            writes: [0; 2],
            checked: 0,
        }
    }

    fn process(&mut self, who: Who) -> &mut Process {
        &mut self.processes[who as usize]
    }
}
