//! The agent, put together and started.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use boathook_actions::{
    Place,
    place::cri::{self, Notes, Runtime},
};
use boathook_api::{PodNotification, Signal};
use boathook_process::private;
use boathook_runtime::{
    Clock, Deadlines, Metrics, Reporter, RunLoop, Watches,
    execution::{Latest, Limits, Rooms, Runs},
    identity,
    lenient::Lenient,
};
use kube::{
    Client, Resource,
    runtime::{reflector::Store, watcher},
};
use snafu::{ResultExt, Snafu};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    declared::{DigestError, Digests},
    keeper::Keeper,
    ledger::{Ledger, LedgerError},
    readiness::Checked,
    reconcile::Desk,
};

/// How long handlers and undos that run may go on after the stop.
const GRACE: Duration = Duration::from_secs(30);
/// How long handlers that went on until then are given to be ended, and that to be written down.
const ENDING: Duration = Duration::from_secs(5);

/// How often digests of pods that are gone are looked for: each is a small file.
const FORGET_EVERY: Duration = Duration::from_secs(60 * 60);

/// What a person may choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// The node's name in the cluster.
    pub node: String,
    /// Where the node's container runtime listens.
    pub cri_socket: PathBuf,
    /// Where the ledger is kept.
    pub state_dir: PathBuf,
    /// Signals that end or stop a container, and may be sent all the same.
    pub allow_signals: BTreeSet<Signal>,
    /// How many notifications run at once.
    pub limit: usize,
}

#[derive(Debug, Snafu)]
pub enum StartError {
    #[snafu(display("failed to create the state directory `{}`", path.display()))]
    StateDir { path: PathBuf, source: io::Error },
    #[snafu(transparent)]
    Ledger { source: LedgerError },
    #[snafu(transparent)]
    Digests { source: DigestError },
    #[snafu(display("failed to read the boot ID of the node"))]
    Boot { source: io::Error },
    #[snafu(display("failed to read in `{}` the commands that an earlier agent left running", path.display()))]
    Notes { path: PathBuf, source: io::Error },
}

/// A running agent.
pub struct Agent {
    desk: Arc<Desk>,
    metrics: Arc<Metrics>,
    watches: Watches,
    checked: Checked,
    pub(crate) run_loop: JoinSet<&'static str>,
    /// The parts that never end by themselves.
    tasks: JoinSet<&'static str>,
    stop: watch::Sender<bool>,
}

impl Agent {
    /// Starts it. What an earlier agent left running is ended first; then what the ledger says is overdue is undone at
    /// once, whether or not the API server answers.
    pub async fn start(client: Client, options: Options, metrics: Arc<Metrics>) -> Result<Self, StartError> {
        let identity = identity();
        let (reporter, telling) = Reporter::new(client.clone(), "boathook-agent", &identity, Arc::clone(&metrics));
        let Options { node, cri_socket, state_dir, allow_signals, limit } = options;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").context(BootSnafu)?;
        private::directory(&state_dir).context(StateDirSnafu { path: &state_dir })?;
        let ledger = Arc::new(Ledger::open(&state_dir.join("ledger"), boot.trim())?);
        let digests = Digests::open(&state_dir.join("declared"))?;
        let notes = end_left_behind(&state_dir.join("running"), boot.trim()).await?;
        let runtime = Runtime::new(&cri_socket, cri::Options { allow_signals, notes: Some(notes) });
        let of_node = watcher::Config::default().fields(&format!("status.nodeName={node}"));
        let watches = Watches::default();
        let mut objects =
            RunLoop::<PodNotification>::new(client.clone(), of_node).metrics(Arc::clone(&metrics)).watches(&watches);
        let look_again = objects.channel();
        let rooms = Rooms::new(Limits { per_node: limit, per_namespace: limit }, look_again.clone());
        let runs = Runs::new(Place::Cri(runtime.clone()), Arc::clone(&metrics), rooms.clone(), look_again.clone());
        let clock = Clock::of_the_machine();
        let keeper = Arc::new(Keeper {
            ledger: Arc::clone(&ledger),
            runs: runs.clone(),
            clock: clock.clone(),
            retiring: Mutex::default(),
            broken: watch::Sender::default(),
        });
        let desk = Arc::new(Desk {
            client,
            identity,
            node,
            runtime,
            runs,
            rooms,
            latest: Latest::default(),
            look_again,
            ledger,
            keeper: Arc::clone(&keeper),
            digests,
            deadlines: Deadlines::new(clock.clone()),
            clock,
            reporter,
        });
        let stop = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            telling.await;
            "the writer of Events"
        });
        tasks.spawn(async move {
            keeper.run().await;
            "the keeper of the ledger"
        });
        let (store, listed, tidying) = (objects.store(), objects.listed(), Arc::clone(&desk));
        tasks.spawn(async move {
            listed.await;
            tidying.tidy(&store);
            std::future::pending().await
        });
        let checked = Checked::nothing();
        let checking = checked.clone().keep_checking(desk.client.clone(), desk.runtime.clone());
        tasks.spawn(async move {
            checking.await;
            "the check of readiness"
        });
        let forgetting = Arc::clone(&desk);
        tasks.spawn(async move {
            loop {
                forgetting.digests.forget_gone(&forgetting.runtime).await;
                tokio::time::sleep(FORGET_EVERY).await;
            }
        });
        let (mut stopped, working, mut run_loop) = (stop.subscribe(), Arc::clone(&desk), JoinSet::new());
        run_loop.spawn(async move {
            let stop = async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            };
            objects.run(working, stop).await;
            "the loop over PodNotifications"
        });
        Ok(Self { desk, metrics, watches, checked, run_loop, tasks, stop })
    }

    /// Brings those figures up to date that nobody counts as they change.
    pub fn figures(&self) -> impl Fn() + Send + Sync + 'static {
        let (metrics, ledger) = (Arc::clone(&self.metrics), Arc::clone(&self.desk.ledger));
        move || metrics.set_undos_owed(ledger.all().len())
    }

    /// Whether it can serve its node; else what is missing.
    pub fn is_ready(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let (checked, watches) = (self.checked.clone(), self.watches.clone());
        move || checked.is_ready(&watches)
    }

    /// Waits until a part has ended by itself, which none should, and says which.
    pub async fn died(&mut self) -> String {
        let ended = tokio::select! {
            Some(ended) = self.run_loop.join_next() => ended,
            Some(ended) = self.tasks.join_next() => ended,
            else => return "every part of the agent has ended".to_owned(),
        };
        match ended {
            Ok(part) => format!("{part} ended"),
            Err(error) => format!("a part of the agent panicked: {error}"),
        }
    }

    /// Starts nothing more, lets what runs end or ends it, releases what is held, and writes that down. What is armed
    /// stays in the ledger.
    pub async fn stop(mut self) {
        self.desk.rooms.close();
        self.desk.runs.let_go();
        let mut under_way = self.desk.runs.under_way();
        if tokio::time::timeout(GRACE, under_way.wait_for(|count| *count == 0)).await.is_err() {
            tracing::warn!("some handlers did not end within {GRACE:?} of the stop: ending them");
            self.desk.runs.cancel_all();
            // What is left then is noted, and the next agent ends it.
            let _ = tokio::time::timeout(ENDING, under_way.wait_for(|count| *count == 0)).await;
        }
        self.stop.send_replace(true);
        // The loop ends within its own time, or ended before the stop.
        while self.run_loop.join_next().await.is_some() {}
        self.tasks.shutdown().await;
    }
}

/// Nobody but this agent writes there: it has the ledger's lock. What has not ended in time has been killed, and does
/// nothing more of its own.
async fn end_left_behind(dir: &Path, boot: &str) -> Result<Notes, StartError> {
    let notes = Notes::open(dir, boot).context(NotesSnafu { path: dir })?;
    notes.end_left_behind().await.context(NotesSnafu { path: dir })?;
    Ok(notes)
}

impl Desk {
    /// Undoes what the ledger owes for objects that are not in the complete store: they were deleted by force.
    fn tidy(&self, store: &Store<Lenient<PodNotification>>) {
        let known: BTreeSet<_> = store.state().iter().filter_map(|object| object.meta().uid.clone()).collect();
        for record in self.ledger.all().into_iter().filter(|record| !known.contains(&record.uid)) {
            self.keeper.retire(record);
        }
    }
}
