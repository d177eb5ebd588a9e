//! The ledger: what must be undone on this node, and by when, durable before anything is done.
//!
//! A file per record, in place only when it is whole and on disk. A deadline is kept as a moment of this boot's clock,
//! so that no change of the wall clock moves it; after another boot everything is overdue.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use boathook_api::{Action, PodNotification};
use boathook_process::private;
use boathook_runtime::execution::Subject;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use snafu::{Report, ResultExt, Snafu, ensure};
use tokio::sync::watch;

/// No record is longer: it holds commands of a few containers.
const LONGEST: u64 = 4 << 20;

#[derive(Debug, Snafu)]
pub enum LedgerError {
    #[snafu(display("failed to {what} `{}`", path.display()))]
    File { what: &'static str, path: PathBuf, source: io::Error },
    #[snafu(display("`{}` is in use: another agent runs with this --state-dir", path.display()))]
    InUse { path: PathBuf },
    #[snafu(display(
        "`{}` is not a valid undo record of this version, and its undo may be due: read the file, run the undo by \
         hand, then remove the file",
        path.display()
    ))]
    Unreadable { path: PathBuf, source: serde_json::Error },
    #[snafu(display("`{}` is longer than {LONGEST} bytes", path.display()))]
    TooLong { path: PathBuf },
}

/// One armed undo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub pod: String,
    #[serde(rename = "podUID")]
    pub pod_uid: String,
    /// What to run, by container.
    pub undo: BTreeMap<String, Action>,
    /// Sessions that are held, by container, and how many seconds each has to end when it is released; that comes first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub release: BTreeMap<String, i32>,
    /// The boot whose clock `expires` speaks of.
    pub boot: String,
    /// When it runs by itself.
    pub expires: Option<Duration>,
    /// It is undone, and is to be once more then: its handler may have gone on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last_round: bool,
}

impl Record {
    /// What an object that was just claimed owes; nothing if it has no undo.
    pub fn of(object: &PodNotification, boot: &str, now: Duration) -> Option<Self> {
        let undo = object.spec.undo.as_ref()?;
        let Subject { uid, namespace, name, pod, pod_uid, node: _ } = Subject::of(object);
        let containers = || object.status.iter().flat_map(|status| &status.containers);
        let recorded = containers().filter_map(|one| Some((one.name.clone(), one.undo.as_ref()?.action.clone()?)));
        let held = containers().filter_map(|one| Some((one.name.clone(), one.undo.as_ref()?.release_seconds?)));
        let after = undo.after_seconds.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs().into()));
        Some(Self {
            uid,
            namespace,
            name,
            pod,
            pod_uid,
            undo: recorded.collect(),
            release: held.collect(),
            boot: boot.to_owned(),
            expires: after.map(|after| now + after),
            last_round: false,
        })
    }

    /// The same, to be undone once more at this moment of this boot, in these containers.
    fn once_more(mut self, boot: &str, expires: Duration, containers: &[&str]) -> Self {
        self.undo.retain(|name, _| containers.contains(&name.as_str()));
        self.release.retain(|name, _| containers.contains(&name.as_str()));
        Self { boot: boot.to_owned(), expires: Some(expires), last_round: true, ..self }
    }

    /// The same, of which nobody holds a session any more.
    fn without_sessions(self) -> Self {
        match self.release.is_empty() {
            true => self,
            false => Self { expires: Some(Duration::ZERO), ..self },
        }
    }

    pub fn subject(&self) -> Subject {
        let Self { uid, namespace, name, pod, pod_uid, .. } = self.clone();
        // All records are of the agent's node.
        Subject { uid, namespace, name, pod, pod_uid, node: String::new() }
    }

    /// How long it is until it runs by itself: nothing after another boot.
    pub fn remaining(&self, boot: &str, now: Duration) -> Option<Duration> {
        match self.expires {
            _ if self.boot != boot => Some(Duration::ZERO),
            expires => expires.map(|expires| expires.saturating_sub(now)),
        }
    }
}

/// Every record, on disk and in memory.
pub struct Ledger {
    dir: PathBuf,
    boot: String,
    records: Mutex<BTreeMap<String, Record>>,
    changes: watch::Sender<()>,
    /// Held: no two agents write one ledger.
    _lock: File,
}

impl Ledger {
    /// Opens the ledger of this folder, which is made if it is not there. What an earlier agent held ended with it, and is
    /// overdue.
    pub fn open(dir: &Path, boot: &str) -> Result<Self, LedgerError> {
        private::directory(dir).context(FileSnafu { what: "make", path: dir })?;
        let path = dir.join("lock");
        let lock = private::create_file(&path).context(FileSnafu { what: "open", path: &path })?;
        ensure!(flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(), InUseSnafu { path: dir });
        let mut records = BTreeMap::new();
        for entry in fs::read_dir(dir).context(FileSnafu { what: "list", path: dir })? {
            let path = entry.context(FileSnafu { what: "list", path: dir })?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("json") => match read(&path) {
                    Ok(record) => drop(records.insert(record.uid.clone(), record.without_sessions())),
                    // The others are owed all the same. It stays: only a person can tell what it meant.
                    Err(error) => tracing::error!(error = %Report::from_error(error), "skipped an undo record"),
                },
                // Half a record: its handler never ran.
                Some("new") => fs::remove_file(&path).context(FileSnafu { what: "remove", path: &path })?,
                _ => {}
            }
        }
        let (records, changes) = (Mutex::new(records), watch::Sender::new(()));
        Ok(Self { dir: dir.to_owned(), boot: boot.to_owned(), records, changes, _lock: lock })
    }

    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Keeps a record. When this returns it is on disk.
    pub fn arm(&self, record: Record) -> Result<(), LedgerError> {
        let path = self.path(&record.uid);
        let new = path.with_extension("new");
        let text = serde_json::to_vec(&record).expect("a record is plain JSON");
        let write = || {
            let mut file = private::create_file(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.dir)?.sync_all()
        };
        write().context(FileSnafu { what: "write the undo record", path: &path })?;
        self.lock().insert(record.uid.clone(), record);
        self.changes.send_replace(());
        Ok(())
    }

    /// It is undone, and known to be: drops the record. A file that stays behind is undone once more after a restart.
    pub fn disarm(&self, uid: &str) {
        if self.lock().remove(uid).is_none() {
            return;
        }
        self.changes.send_replace(());
        let path = self.path(uid);
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "failed to remove the record of a finished undo");
        }
    }

    /// It is undone, and is to be once more at this moment of this boot, in these containers. Until that is kept, the
    /// record stays as it was.
    pub fn postpone(&self, uid: &str, expires: Duration, containers: &[&str]) -> Result<(), LedgerError> {
        match self.get(uid).filter(|record| !record.last_round) {
            Some(record) => self.arm(record.once_more(&self.boot, expires, containers)),
            None => Ok(()),
        }
    }

    /// Its time has come. This is not kept: whoever says so says it again after a restart.
    pub fn expire(&self, uid: &str) {
        let begun = match self.lock().get_mut(uid) {
            Some(record) => record.expires.replace(Duration::ZERO) != Some(Duration::ZERO),
            None => false,
        };
        if begun {
            self.changes.send_replace(());
        }
    }

    pub fn get(&self, uid: &str) -> Option<Record> {
        self.lock().get(uid).cloned()
    }

    /// Those of objects of this name: of one that was taken away with force another may have it.
    pub fn named(&self, namespace: &str, name: &str) -> Vec<Record> {
        let of_name = |record: &&Record| record.namespace == namespace && record.name == name;
        self.lock().values().filter(of_name).cloned().collect()
    }

    pub fn all(&self) -> Vec<Record> {
        self.lock().values().cloned().collect()
    }

    /// Tells when records come and go.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn path(&self, uid: &str) -> PathBuf {
        // A UID is a name of the API server's; whatever else it may be, it stays in this folder.
        let safe: String = uid.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
        self.dir.join(safe).with_extension("json")
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        // A map is whole between two writes, also when a panic came in between.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<Record, LedgerError> {
    let length = fs::metadata(path).context(FileSnafu { what: "read", path })?.len();
    ensure!(length <= LONGEST, TooLongSnafu { path });
    let text = fs::read(path).context(FileSnafu { what: "read", path })?;
    serde_json::from_slice(&text).context(UnreadableSnafu { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own, gone with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("boathook-ledger-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn other_users_cannot_read_records() {
        use std::os::unix::fs::PermissionsExt;

        let folder = Folder::new("modes");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::create_dir_all(&folder.0).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
        Ledger::open(&folder.0, "boot").unwrap().arm(record("a")).unwrap();
        assert_eq!((mode(&folder.0), mode(&folder.0.join("a.json"))), (0o700, 0o600));
    }

    fn record(uid: &str) -> Record {
        let undo: Action = serde_json::from_value(serde_json::json!({"exec": {"command": ["thaw"]}})).unwrap();
        Record {
            uid: uid.to_owned(),
            namespace: "default".to_owned(),
            name: "one".to_owned(),
            pod: "db-0".to_owned(),
            pod_uid: "p".to_owned(),
            undo: [("main".to_owned(), undo)].into(),
            release: BTreeMap::new(),
            boot: "first".to_owned(),
            expires: Some(Duration::from_secs(100)),
            last_round: false,
        }
    }

    #[test]
    fn what_was_armed_is_there_after_a_restart_until_it_is_undone() {
        let folder = Folder::new("restart");
        let ledger = Ledger::open(&folder.0, "first").unwrap();
        ledger.arm(record("a")).unwrap();
        ledger.arm(record("b")).unwrap();
        assert_eq!(ledger.named("default", "one"), [record("a"), record("b")]);
        assert_eq!(ledger.named("default", "two"), []);
        ledger.disarm("b");
        drop(ledger);
        let ledger = Ledger::open(&folder.0, "first").unwrap();
        assert_eq!(ledger.all(), [record("a")]);
        ledger.disarm("a");
        drop(ledger);
        assert_eq!(Ledger::open(&folder.0, "first").unwrap().all(), []);
    }

    #[test]
    fn what_an_earlier_agent_held_is_overdue() {
        let folder = Folder::new("held");
        let release = BTreeMap::from([("main".to_owned(), 10)]);
        Ledger::open(&folder.0, "first").unwrap().arm(Record { release, ..record("a") }).unwrap();
        let ledger = Ledger::open(&folder.0, "first").unwrap();
        assert_eq!(ledger.get("a").unwrap().remaining("first", Duration::ZERO), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_to_be_undone_once_more_is_kept_for_that_moment_and_that_is_said_once() {
        let folder = Folder::new("once-more");
        let ledger = Ledger::open(&folder.0, "first").unwrap();
        let mut two = record("a");
        two.undo.insert("other".to_owned(), two.undo["main"].clone());
        ledger.arm(two).unwrap();
        for seconds in [200, 300] {
            ledger.postpone("a", Duration::from_secs(seconds), &["main"]).unwrap();
        }
        ledger.postpone("b", Duration::from_secs(200), &["main"]).unwrap();
        drop(ledger);
        let expected = Record { expires: Some(Duration::from_secs(200)), last_round: true, ..record("a") };
        assert_eq!(Ledger::open(&folder.0, "first").unwrap().all(), [expected]);
    }

    #[test]
    fn half_a_record_is_none_and_a_broken_one_stops_no_other() {
        let folder = Folder::new("half");
        drop(Ledger::open(&folder.0, "first").unwrap());
        fs::write(folder.0.join("a.new"), "{").unwrap();
        assert_eq!(Ledger::open(&folder.0, "first").unwrap().all(), []);
        assert!(!folder.0.join("a.new").exists());
        Ledger::open(&folder.0, "first").unwrap().arm(record("b")).unwrap();
        fs::write(folder.0.join("a.json"), "{").unwrap();
        assert_eq!(Ledger::open(&folder.0, "first").unwrap().all(), [record("b")]);
        assert_eq!(fs::read_to_string(folder.0.join("a.json")).unwrap(), "{");
        let told = read(&folder.0.join("a.json")).unwrap_err().to_string();
        assert!(told.contains("a.json") && told.contains("by hand"), "{told}");
    }

    #[test]
    fn a_record_of_a_later_version_is_undone_by_this_one() {
        let mut later = serde_json::to_value(record("a")).unwrap();
        later["colour"] = "blue".into();
        assert_eq!(serde_json::from_value::<Record>(later).unwrap(), record("a"));
    }

    #[test]
    fn two_agents_cannot_have_one_ledger() {
        let folder = Folder::new("two");
        let _first = Ledger::open(&folder.0, "first").unwrap();
        assert!(matches!(Ledger::open(&folder.0, "first"), Err(LedgerError::InUse { .. })));
    }

    #[test]
    fn a_deadline_is_a_moment_of_its_boot() {
        let at = |seconds| Duration::from_secs(seconds);
        assert_eq!(record("a").remaining("first", at(70)), Some(at(30)));
        assert_eq!(record("a").remaining("first", at(170)), Some(Duration::ZERO));
        assert_eq!(record("a").remaining("second", at(1)), Some(Duration::ZERO));
        assert_eq!(Record { expires: None, ..record("a") }.remaining("first", at(1)), None);
    }
}
