//! `boathook thaw` as people run it, when all goes well and when it does not.

use super::database::Database;

#[tokio::test]
async fn a_hook_is_thawed_and_stays_to_be_read() {
    let database = Database::start("thaw").await;
    database.frozen("freeze-db", "files").await;
    let (code, thawed, err) = database.run("thaw freeze-db").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{thawed}");
    assert!(thawed.starts_with("POD   CONTAINER   RESULT   TRIES   TIME\ndb    main        thawed   1 "), "{thawed}");
    assert!(thawed.contains("\nexecutionhook.boathook.dev/freeze-db: thawed after "), "{thawed}");
    let (code, out, _) = database.run("thaw hook/freeze-db").await;
    assert_eq!((code, out), (Some(0), thawed), "it is told as before");
    let (code, _, err) = database.run("thaw nobody").await;
    assert_eq!(code, Some(1));
    assert!(err.contains("there is no ApplicationSnapshot `nobody`"), "{err}");
}

/// Only what cannot be thawed is given up.
#[tokio::test]
async fn what_can_be_thawed_is_thawed_with_force_too() {
    let database = Database::start("forced").await;
    database.frozen("freeze-db", "files").await;
    let (code, out, err) = database.run("thaw freeze-db --force --yes").await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("db    main        thawed   1 "), "{out}");
    assert!(out.contains("executionhook.boathook.dev/freeze-db: thawed after "), "{out}");
}

#[tokio::test]
async fn a_thaw_that_fails_again_is_said_at_once_and_can_be_given_up() {
    let database = Database::start("stuck").await;
    database.frozen("freeze-db", "stuck").await;
    // The second time it fails as it did before: that too is news to whoever asked.
    for _ in 0..2 {
        let (code, out, err) = database.run("thaw freeze-db --timeout 100s").await;
        assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
        assert!(out.contains("main        FAILED"), "{out}");
        assert!(out.ends_with("NOT thawed: Boathook retries until it succeeds; --force gives it up\n"), "{out}");
    }
    let (code, _, err) = database.run("thaw freeze-db --force").await;
    assert_eq!(code, Some(1));
    assert!(err.contains("add --yes to confirm it"), "{err}");
    let (code, out, _) = database.run("thaw freeze-db --force --yes").await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("given up, and recorded as given up"), "{out}");
    let (_, out, _) = database.run("hooks list").await;
    assert!(out.contains("ABANDONED"), "{out}");
}
