//! The file of a durable store: a redb database with a row for each object, and the revision that all of it is at.
//!
//! The file appears under its name only when it is complete, and a file that is not ours or cannot be read is left as
//! it is. It is read once, when it is opened; afterwards it is only written.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io, panic};

use redb::backends::InMemoryBackend;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition, TableError};
use rpds::RedBlackTreeMapSync;

use super::{Key, Stored, View};

const FILE: &str = "objects.redb";
/// What is being made, before it gets its name.
const UNFINISHED: &str = "objects.redb.new";
const LOCK: &str = "objects.lock";

/// Resource, namespace and name to the revision and the object's JSON text.
const OBJECTS: TableDefinition<'_, (&str, &str, &str), (u64, &[u8])> = TableDefinition::new("objects");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("boathook-store");
const FORMAT: &str = "format";
const REVISION: &str = "revision";
/// Raised when an older Boathook would misread the file.
const CURRENT_FORMAT: u64 = 1;
/// Of an empty store, as of an empty etcd: no revision is 0, which means something else to clients.
pub(super) const FIRST_REVISION: u64 = 1;

/// Everything is in memory; redb only needs the inner pages that the next write touches.
const CACHE: usize = 8 << 20;

/// Why a store does not open. Nothing was changed.
#[derive(Debug)]
pub enum OpenError {
    /// Another process, or another store of this one, has the directory.
    InUse {
        dir: PathBuf,
    },
    /// There is a file of this name, but no store in it, or one of a newer kind.
    NotOurs {
        path: PathBuf,
        why: String,
    },
    Corrupt {
        path: PathBuf,
        why: String,
    },
    /// The file system refused.
    Failed {
        path: PathBuf,
        why: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { dir } => write!(f, "the data directory `{}` is in use by another process", dir.display()),
            Self::NotOurs { path, why } => {
                write!(
                    f,
                    "`{}` is not a store of this version of Boathook: {why}; it was left as it is",
                    path.display()
                )
            }
            Self::Corrupt { path, why } => write!(f, "`{}` is corrupt: {why}; it was left as it is", path.display()),
            Self::Failed { path, why } => write!(f, "failed to open `{}`: {why}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// Makes a database that holds exactly this, under the name of the store's file.
type Rewrite = Box<dyn Fn(&View) -> Result<Database, redb::Error> + Send>;

pub(super) struct Disk {
    database: Database,
    rewrite: Rewrite,
    /// Ours as long as it is open.
    _lock: File,
}

/// One change of one row; no text: it goes.
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) revision: u64,
    pub(super) text: Option<Vec<u8>>,
}

impl Disk {
    pub(super) fn open(dir: &Path) -> Result<(Self, View), OpenError> {
        let failed =
            |path: &Path, error: io::Error| OpenError::Failed { path: path.to_owned(), why: error.to_string() };
        fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
        let lock = lock(dir)?;
        let path = dir.join(FILE);
        if !path.try_exists().map_err(|error| failed(&path, error))? {
            let made = create(dir, &path, &empty());
            made.map_err(|error| OpenError::Failed { path: path.clone(), why: error.to_string() })?;
        }
        let (database, view) = read(&path)?;
        let dir = dir.to_owned();
        let rewrite = Box::new(move |view: &View| create(&dir, &path, view));
        Ok((Self { database, rewrite, _lock: lock }, view))
    }

    /// Replaces the file after a write has failed, when it is not known what the file holds: readers have seen exactly
    /// this view, and it has every write that was acknowledged.
    pub(super) fn renew(&mut self, view: &View) -> Result<(), redb::Error> {
        self.database = (self.rewrite)(view)?;
        Ok(())
    }

    /// An empty store on something else than a file; `backend` makes an empty one.
    #[cfg(test)]
    pub(super) fn on<Backend: redb::StorageBackend>(
        backend: impl Fn() -> Backend + Send + 'static,
    ) -> Result<(Self, View), redb::Error> {
        let rewrite = move |view: &View| {
            let database = builder().create_with_backend(backend())?;
            lay_out(&database, view)?;
            Ok(database)
        };
        let database = rewrite(&empty())?;
        Ok((Self { database, rewrite: Box::new(rewrite), _lock: File::open("/dev/null")? }, empty()))
    }

    /// One transaction, one fsync.
    pub(super) fn commit(&self, rows: &[Row], revision: u64) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            for Row { key, revision, text } in rows {
                let key = (&*key.resource, &*key.namespace, &*key.name);
                match text {
                    Some(text) => objects.insert(key, (*revision, &**text))?,
                    None => objects.remove(key)?,
                };
            }
            transaction.open_table(FACTS)?.insert(REVISION, revision)?;
        }
        Ok(transaction.commit()?)
    }
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join(LOCK);
    let failed = |error: io::Error| OpenError::Failed { path: path.clone(), why: error.to_string() };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { dir: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn empty() -> View {
    View::new(FIRST_REVISION, RedBlackTreeMapSync::new_sync())
}

/// A store that holds this. Under another name first, so that one that was killed in the middle leaves nothing to mistake.
fn create(dir: &Path, path: &Path, view: &View) -> Result<Database, redb::Error> {
    let unfinished = dir.join(UNFINISHED);
    remove(&unfinished)?;
    match fill(&unfinished, view) {
        Ok(database) => {
            fs::rename(&unfinished, path)?;
            File::open(dir)?.sync_all()?;
            Ok(database)
        }
        Err(error) => {
            // What was written takes room that is missing.
            remove(&unfinished)?;
            Err(error)
        }
    }
}

fn fill(path: &Path, view: &View) -> Result<Database, redb::Error> {
    let database = builder().create(path)?;
    lay_out(&database, view)?;
    Ok(database)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn lay_out(database: &Database, view: &View) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for (key, stored) in view.all() {
            let text = stored.object.to_string();
            objects.insert((&*key.resource, &*key.namespace, &*key.name), (stored.revision, text.as_bytes()))?;
        }
        let mut facts = transaction.open_table(FACTS)?;
        facts.insert(FORMAT, CURRENT_FORMAT)?;
        facts.insert(REVISION, view.revision())?;
    }
    Ok(transaction.commit()?)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE);
    builder
}

/// redb mends what it opens, and trusts the pages of a file that was closed in order. So a copy in memory is opened
/// first, checked page by page and read; the file itself only once that went well.
fn read(path: &Path) -> Result<(Database, View), OpenError> {
    // Some damage makes redb panic. It has only the copy in its hands.
    let panicked = |_| Err(Unreadable::Garbled("its pages are not what they should be".to_owned()));
    let view = panic::catch_unwind(|| read_copy(path)).unwrap_or_else(panicked).map_err(|why| why.at(path))?;
    let database = builder().open(path).map_err(|error| Unreadable::from(error).at(path))?;
    Ok((database, view))
}

fn read_copy(path: &Path) -> Result<View, Unreadable> {
    let bytes = fs::read(path)?;
    if bytes.is_empty() {
        return Err(Unreadable::Foreign("it is empty".to_owned()));
    }
    let copy = InMemoryBackend::new();
    copy.set_len(bytes.len() as u64)?;
    copy.write(0, &bytes)?;
    drop(bytes);
    let mut database = builder().create_with_backend(copy)?;
    if !database.check_integrity()? {
        return Err(Unreadable::Garbled("pages do not match their checksums".to_owned()));
    }
    load(&database)
}

enum Unreadable {
    Database(redb::Error),
    Foreign(String),
    Garbled(String),
}

impl<E: Into<redb::Error>> From<E> for Unreadable {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

impl Unreadable {
    fn at(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Self::Foreign(why) => OpenError::NotOurs { path, why },
            Self::Garbled(why) => OpenError::Corrupt { path, why },
            Self::Database(redb::Error::DatabaseAlreadyOpen) => OpenError::InUse { dir: path },
            // How redb says that the file does not begin as its files do.
            Self::Database(redb::Error::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                OpenError::NotOurs { path, why: error.to_string() }
            }
            Self::Database(redb::Error::Io(error)) => OpenError::Failed { path, why: error.to_string() },
            Self::Database(error @ redb::Error::UpgradeRequired(_)) => {
                OpenError::NotOurs { path, why: error.to_string() }
            }
            Self::Database(error) => OpenError::Corrupt { path, why: error.to_string() },
        }
    }
}

fn load(database: &Database) -> Result<View, Unreadable> {
    let transaction = database.begin_read()?;
    let facts = match transaction.open_table(FACTS) {
        Ok(facts) => facts,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(error) => return Err(Unreadable::Foreign(error.to_string())),
    };
    let fact = |name| -> Result<u64, Unreadable> {
        let found = facts.get(name)?.map(|value| value.value());
        found.ok_or_else(|| Unreadable::Garbled(format!("it does not say its {name}")))
    };
    match fact(FORMAT)? {
        CURRENT_FORMAT => {}
        other => return Err(Unreadable::Foreign(format!("its format is {other}, not {CURRENT_FORMAT}"))),
    }
    let revision = fact(REVISION)?;
    let mut objects = RedBlackTreeMapSync::new_sync();
    let mut last: Option<Key> = None;
    for row in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = row?;
        let (resource, namespace, name) = key.value();
        let (written, text) = value.value();
        // Neighbours share their texts: thousands of objects have the same resource and namespace.
        let share = |text: &str, of: fn(&Key) -> &Arc<str>| match last.as_ref().map(of) {
            Some(known) if **known == *text => known.clone(),
            Some(_) | None => Arc::from(text),
        };
        let key = Key::new(share(resource, |key| &key.resource), share(namespace, |key| &key.namespace), name);
        let object = serde_json::from_slice(text).map_err(|error| Unreadable::Garbled(format!("{key}: {error}")))?;
        if written > revision {
            let why = format!("{key} is at revision {written}, the store at {revision}");
            return Err(Unreadable::Garbled(why));
        }
        last = Some(key.clone());
        objects.insert_mut(key, Stored::at(written, object));
    }
    Ok(View::new(revision, objects))
}
