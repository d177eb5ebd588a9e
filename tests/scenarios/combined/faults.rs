//! The faults: each process of Boathook has its own, in an order of its own drawn from the seed, so that several fail at
//! once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use boathook_api::pod_notification::Executor;
use boathook_tests::{
    DEADLINE,
    boathook::{
        api_relay::ApiRelay,
        installation::{AGENT_READY, CONTROLLER_READY, CONTROLLER_WAITING, Installation},
        process::Process,
        small_disk::SmallDisk,
    },
    random::Random,
};
use futures::{future::try_join_all, try_join};

/// Between two faults of one process no more than this many milliseconds pass.
const CALM: u64 = 5000;

/// A fault lasts no longer than this many milliseconds; one in [`RARE`] up to four times as long, which is longer than the
/// lease.
const FAULT: u64 = 6000;
const RARE: u64 = 4;

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// SIGKILL, and started again after a while.
    Kill,
    /// SIGSTOP, and SIGCONT after a while.
    Stop,
    /// Every connection to the API server is reset and new ones are refused.
    Refuse,
    /// Every connection to the API server is silent: nothing is answered and nothing reset.
    Stall,
    /// The wall clock of the process is stepped by [`STEP`] seconds, back or forth, and after a while the other way.
    Step,
}

const FAULTS: [Fault; 5] = [Fault::Kill, Fault::Stop, Fault::Refuse, Fault::Stall, Fault::Step];

/// Longer than any deadline of the load.
const STEP: i64 = 3600;

/// Every process of Boathook.
pub(super) struct Machinery {
    parts: Vec<Part>,
    /// Under the agent's ledger, where this user may mount one.
    disk: Option<(SmallDisk, Random)>,
}

impl Machinery {
    /// Two controllers, one of which leads and answers; and the agent if it is the executor.
    pub(super) async fn start(installation: &Installation, executor: Executor, random: &mut Random) -> Result<Self> {
        let mut parts = Vec::new();
        for name in ["controller-one", "controller-two"] {
            let (process, relay) = installation.replica_behind_relay(name, executor).await?;
            let role = Role::Controller(name, executor);
            let mut part = Part {
                role,
                installation: installation.clone(),
                process: Some(process),
                relay,
                random: random.another(),
                next: vec![],
            };
            if parts.is_empty() {
                part.process()?.says(CONTROLLER_READY).await?;
            }
            parts.push(part);
        }
        let mut disk = None;
        if executor == Executor::Agent {
            disk = match SmallDisk::at(&installation.agent_dir()) {
                Ok(disk) => Some((disk, random.another())),
                Err(error) => {
                    eprintln!("no disk is filled: {error:#}");
                    None
                }
            };
            let (process, relay) = installation.agent_behind_relay().await?;
            let (role, installation) = (Role::Agent, installation.clone());
            let (process, random) = (Some(process), random.another());
            parts.push(Part { role, installation, process, relay, random, next: vec![] });
        }
        Ok(Self { parts, disk })
    }

    /// Lets every part fail again and again. When this returns, every process works and reaches the API server.
    pub(super) async fn fail_until(&mut self, until: Instant) -> Result<()> {
        let parts = try_join_all(self.parts.iter_mut().map(|part| part.fail_until(until)));
        let disk = async {
            match &mut self.disk {
                Some((disk, random)) => fill_until(disk, random, until).await,
                None => Ok(()),
            }
        };
        try_join!(parts, disk)?;
        let all = tokio::time::timeout(DEADLINE, try_join_all(self.parts.iter_mut().map(Part::comes_up))).await;
        all.context("a process does not come up")?.map(drop)
    }

    /// Each process ends in order when it is told to.
    pub(super) async fn stop(self) -> Result<()> {
        for part in self.parts {
            part.process.context("it does not run")?.stop().await?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Controller(&'static str, Executor),
    Agent,
}

impl Role {
    fn said_by_one_that_works(self) -> &'static [&'static str] {
        match self {
            Self::Controller(..) => &[CONTROLLER_READY, CONTROLLER_WAITING],
            Self::Agent => &[AGENT_READY],
        }
    }
}

/// A process of Boathook, and its way to the API server.
struct Part {
    role: Role,
    installation: Installation,
    /// Absent only while it is killed.
    process: Option<Process>,
    relay: ApiRelay,
    random: Random,
    /// The faults that come before any of them comes again, the next one last.
    next: Vec<Fault>,
}

impl Part {
    async fn fail_until(&mut self, until: Instant) -> Result<()> {
        loop {
            // The moments are random: nothing is waited for.
            tokio::time::sleep(Duration::from_millis(self.random.below(CALM))).await;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let fault = self.next_fault()?;
            let factor = if self.random.below(RARE) == 0 { 4 } else { 1 };
            let time = Duration::from_millis(self.random.below(FAULT * factor)).min(left);
            eprintln!("{:?}: {fault:?} for {time:?}", self.role);
            self.revive()?;
            self.fail(fault, time).await.with_context(|| format!("{:?}: {fault:?} for {time:?}", self.role))?;
        }
    }

    /// Each fault comes before one comes again: a short run has all of them.
    fn next_fault(&mut self) -> Result<Fault> {
        if self.next.is_empty() {
            self.next = self.random.shuffled(&FAULTS);
        }
        self.next.pop().context("there is no fault")
    }

    async fn fail(&mut self, fault: Fault, time: Duration) -> Result<()> {
        match fault {
            Fault::Kill => {
                self.process.take().context("it does not run")?.kill().await?;
                tokio::time::sleep(time).await;
                self.process = Some(self.start()?);
            }
            Fault::Stop => {
                self.process()?.pause()?;
                tokio::time::sleep(time).await;
                self.process()?.resume()?;
            }
            Fault::Refuse => {
                self.relay.close().await?;
                tokio::time::sleep(time).await;
                self.relay.open().await?;
            }
            Fault::Stall => {
                self.relay.stall()?;
                tokio::time::sleep(time).await;
                self.relay.close().await?;
                self.relay.open().await?;
            }
            Fault::Step => {
                let seconds = if self.random.below(2) == 0 { STEP } else { -STEP };
                self.process()?.step_clock(seconds).await?;
                tokio::time::sleep(time).await;
                self.process()?.step_clock(-seconds).await?;
            }
        }
        Ok(())
    }

    /// Starts the process again if it has ended by itself, as the kubelet does. A process may end so when it cannot start;
    /// one that has been ready may not.
    fn revive(&mut self) -> Result<()> {
        let role = self.role;
        let process = self.process()?;
        let Some(ended) = process.has_ended()? else { return Ok(()) };
        let log = process.log().clone();
        let has_worked = self.has_come_up()?;
        ensure!(ended.code() == Some(1) && !has_worked, "{role:?} ended by itself with {ended}\n{}", log.tail());
        eprintln!("{role:?} could not start");
        self.process = Some(self.start()?);
        Ok(())
    }

    /// Waits until the process works. One that is still starting may end: its first calls may have been reset, or the disk
    /// was full.
    async fn comes_up(&mut self) -> Result<()> {
        loop {
            self.revive()?;
            if self.has_come_up()? {
                return Ok(());
            }
            let said = self.role.said_by_one_that_works();
            self.process()?.says_or_ends(said).await?;
        }
    }

    fn has_come_up(&mut self) -> Result<bool> {
        let log = self.process()?.log().clone();
        for line in self.role.said_by_one_that_works() {
            if log.has_said(line)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn start(&self) -> Result<Process> {
        match self.role {
            Role::Controller(name, executor) => self.installation.start_replica(name, executor, &[]),
            Role::Agent => self.installation.start_agent(),
        }
    }

    fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("it does not run")
    }
}

/// Fills the disk again and again.
async fn fill_until(disk: &SmallDisk, random: &mut Random, until: Instant) -> Result<()> {
    loop {
        tokio::time::sleep(Duration::from_millis(random.below(3 * CALM))).await;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let time = Duration::from_millis(random.below(FAULT)).min(left);
        eprintln!("the agent's disk is full for {time:?}");
        disk.fill()?;
        tokio::time::sleep(time).await;
        disk.empty()?;
    }
}

/// Deletes the lease of the current leader.
pub(super) async fn delete_lease_again_and_again(
    installation: &Installation,
    mut random: Random,
    until: Instant,
) -> Result<()> {
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(random.below(2 * CALM))).await;
        eprintln!("the lease is deleted");
        installation.bury_leader().await?;
    }
    Ok(())
}
