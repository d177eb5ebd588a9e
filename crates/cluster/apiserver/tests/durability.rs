//! The store and its disk: what was acknowledged is there again, whatever ended the process; what is not a store is
//! left alone.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use boathook_apiserver::store::{CommitError, Expect, Key, OpenError, Prefix, Store, Stored, WatchError, Write};
use serde_json::{Value, json};

/// Set in the process that is killed: the directory of its store.
const VICTIM: &str = "BOATHOOK_TEST_DURABILITY_VICTIM";

/// A directory of the test's own, gone when it ends well.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("objects.redb")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

fn pod(name: &str) -> Key {
    Key::new("pods", "default", name)
}

fn create(name: &str, spec: Value) -> Write {
    let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec});
    Write { key: pod(name), expect: Expect::Absent, put: Some(object) }
}

fn all(store: &Store) -> Vec<(Key, Stored)> {
    let view = store.view();
    view.list(&Prefix::everywhere("pods"), None, None).map(|(key, stored)| (key.clone(), stored.clone())).collect()
}

#[tokio::test]
async fn a_store_opened_again_has_everything_and_its_revisions_go_on() {
    let dir = Directory::new("again");
    let store = Store::open(&dir.0).unwrap();
    let first = store.commit(create("first", json!({"weight": 0.1 + 0.2, "tiny": 5e-324}))).await.unwrap();
    let second = store.commit(create("second", json!({}))).await.unwrap();
    let update = Write { expect: Expect::Revision(first.revision), ..create("first", json!({"weight": 1.0e23})) };
    let first = store.commit(update).await.unwrap();
    let delete = Write { key: pod("second"), expect: Expect::Revision(second.revision), put: None };
    let deleted = store.commit(delete).await.unwrap();
    assert_eq!(deleted.object["metadata"]["resourceVersion"], json!(deleted.revision.to_string()));
    let before = all(&store);
    assert_eq!(before, [(pod("first"), first.clone())]);
    drop(store);

    let store = Store::open(&dir.0).unwrap();
    assert_eq!(all(&store), before);
    assert_eq!(store.view().revision(), deleted.revision);
    // Nothing happened since: a watcher goes on where it was. One that was further back has missed something.
    let mut watcher = store.watch(Prefix::everywhere("pods"), Some(deleted.revision)).unwrap();
    let further_back = store.watch(Prefix::everywhere("pods"), Some(first.revision));
    assert!(matches!(further_back, Err(WatchError::TooOld(_))));
    assert_eq!(store.commit(create("first", json!({}))).await, Err(CommitError::Exists(first)));
    let third = store.commit(create("third", json!({}))).await.unwrap();
    assert_eq!(third.revision, deleted.revision + 1);
    assert_eq!(watcher.next().await.unwrap().revision, third.revision);
}

#[tokio::test]
async fn the_deepest_object_and_odd_numbers_come_back_as_they_were() {
    let dir = Directory::new("deepest");
    let store = Store::open(&dir.0).unwrap();
    let deep = (2..boathook_apiserver::store::DEEPEST).fold(json!({}), |inner, _| json!([inner]));
    store.commit(create("deep", deep)).await.unwrap();
    let numbers = json!([0.1 + 0.2, 5e-324, 1.797_693_134_862_315_7e308, u64::MAX, i64::MIN, -0.0, 123_456.789e-30]);
    store.commit(create("numbers", numbers)).await.unwrap();
    let before = all(&store);
    drop(store);
    assert_eq!(all(&Store::open(&dir.0).unwrap()), before);
}

#[test]
fn a_directory_has_one_store_at_a_time() {
    let dir = Directory::new("in-use");
    let store = Store::open(&dir.0).unwrap();
    let second = Store::open(&dir.0).err();
    assert!(matches!(&second, Some(OpenError::InUse { dir: named }) if *named == dir.0), "{second:?}");
    drop(store);
    Store::open(&dir.0).unwrap();
}

#[test]
fn a_store_that_was_killed_while_it_was_made_is_made_anew() {
    let dir = Directory::new("unfinished");
    fs::create_dir_all(&dir.0).unwrap();
    fs::write(dir.0.join("objects.redb.new"), [0; 5000]).unwrap();
    assert!(all(&Store::open(&dir.0).unwrap()).is_empty());
    assert!(dir.file().exists() && !dir.0.join("objects.redb.new").exists());
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    let dir = Directory::new("foreign");
    fs::create_dir_all(&dir.0).unwrap();
    let database = redb::Database::create(dir.file()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(redb::TableDefinition::<&str, u64>::new("theirs")).unwrap().insert("a", 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let foreign_database = fs::read(dir.file()).unwrap();
    for content in [b"".as_slice(), b"a letter to a friend", &[7; 100_000], &foreign_database] {
        fs::write(dir.file(), content).unwrap();
        let refused = Store::open(&dir.0).err();
        assert!(matches!(&refused, Some(OpenError::NotOurs { path, .. }) if *path == dir.file()), "{refused:?}");
        assert_eq!(fs::read(dir.file()).unwrap(), content);
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_as_it_is() {
    let dir = Directory::new("damaged");
    let store = Store::open(&dir.0).unwrap();
    for n in 0..200 {
        store
            .commit(create(&format!("pod-{n}"), json!({"text": "some text that fills pages ".repeat(20)})))
            .await
            .unwrap();
    }
    drop(store);
    let whole = fs::read(dir.file()).unwrap();
    let text = whole.windows(9).position(|window| window == b"some text").unwrap();
    let with = |damage: fn(&mut Vec<u8>, usize)| {
        let mut content = whole.clone();
        damage(&mut content, text);
        content
    };
    for (what, content) in [
        ("truncated", with(|content, _| content.truncate(content.len() / 2))),
        ("another text, still JSON", with(|content, text| content[text] = b'S')),
        ("a page begins otherwise", with(|content, text| content[text / 4096 * 4096] ^= 0xff)),
        ("header", with(|content, _| content[9..320].fill(0xff))),
    ] {
        fs::write(dir.file(), &content).unwrap();
        let refused = Store::open(&dir.0).err();
        assert!(
            matches!(&refused, Some(OpenError::Corrupt { path, .. }) if *path == dir.file()),
            "{what}: {refused:?}"
        );
        assert!(fs::read(dir.file()).unwrap() == content, "{what}: it was changed");
    }
    fs::write(dir.file(), &whole).unwrap();
    assert_eq!(all(&Store::open(&dir.0).unwrap()).len(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_race_for_one_object_all_count_and_watchers_see_each_write() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 25;
    let dir = Directory::new("race");
    let store = Store::open(&dir.0).unwrap();
    let begun = store.commit(create("counter", json!(0))).await.unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut current = store.view().get(&pod("counter")).unwrap();
                let mut counted = 0;
                while counted < EACH {
                    let mut object = Value::clone(&current.object);
                    object["spec"] = json!(object["spec"].as_u64().unwrap() + 1);
                    let expect = Expect::Revision(current.revision);
                    current = match store.commit(Write { key: pod("counter"), expect, put: Some(object) }).await {
                        Ok(stored) => {
                            counted += 1;
                            assert!(store.view().revision() >= stored.revision, "acknowledged before it can be read");
                            stored
                        }
                        Err(CommitError::Changed { current: Some(current) }) => current,
                        Err(error) => panic!("{error}"),
                    };
                }
            })
        })
        .collect();
    let mut watcher = store.watch(Prefix::everywhere("pods"), Some(begun.revision)).unwrap();
    for count in 1..=WRITERS * EACH {
        let next = tokio::time::timeout(Duration::from_secs(60), watcher.next()).await;
        let event = next.expect("every write is seen").unwrap();
        assert_eq!((event.revision, &event.object["spec"]), (begun.revision + count, &json!(count)));
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

#[test]
fn what_was_acknowledged_before_a_kill_is_there_after_it() {
    const ACKNOWLEDGED: usize = 300;
    if let Some(dir) = std::env::var_os(VICTIM) {
        return write_until_killed(Path::new(&dir));
    }
    let dir = Directory::new("killed");
    let mut known: Vec<(String, u64)> = Vec::new();
    for round in 0..3 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "what_was_acknowledged_before_a_kill_is_there_after_it", "--nocapture"])
            .env(VICTIM, &dir.0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut acknowledged = BufReader::new(victim.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .filter_map(|line| line.strip_prefix("wrote ").map(str::to_owned))
            .map(|line| line.split_once(' ').map(|(name, at)| (name.to_owned(), at.parse().unwrap())).unwrap());
        known.extend(acknowledged.by_ref().take(ACKNOWLEDGED));
        victim.kill().unwrap();
        // Written before the kill and not yet read: acknowledged as well.
        known.extend(acknowledged);
        assert!(!victim.wait().unwrap().success(), "it had ended before it was killed");
        assert!(known.len() >= (round + 1) * ACKNOWLEDGED, "only {} writes were acknowledged", known.len());

        let store = Store::open(&dir.0).unwrap();
        let view = store.view();
        for (name, revision) in &known {
            let stored = view.get(&pod(name)).unwrap_or_else(|| panic!("round {round}: {name} is missing"));
            assert_eq!((stored.revision, &stored.object["spec"]["name"]), (*revision, &json!(name)));
            assert!(*revision <= view.revision());
        }
    }
}

/// A thousand writers at the same time, each of which says what was acknowledged, in one line at once.
fn write_until_killed(dir: &Path) {
    let store = Store::open(dir).expect("the store opens");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime");
    runtime.block_on(async {
        let begun = store.view().revision();
        let writers: Vec<_> = (0..1000)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for n in 0.. {
                        let name = format!("pod-{begun}-{writer}-{n}");
                        let spec = json!({"name": name, "filling": "x".repeat(500)});
                        let stored = store.commit(create(&name, spec)).await.expect("the write holds");
                        // A whole line in one write: a pipe never splits one as short as this.
                        let line = format!("wrote {name} {}\n", stored.revision);
                        std::io::stdout().lock().write_all(line.as_bytes()).expect("someone reads");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.expect("writers go on until the kill");
        }
    });
}
