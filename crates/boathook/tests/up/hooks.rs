//! `boathook hooks` as people run it.

use super::database::Database;

#[tokio::test]
async fn hooks_are_listed_and_described() {
    let database = Database::start("hooks").await;
    let (code, out, err) = database.run("hooks list").await;
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(err.contains("there are no ExecutionHooks in namespace `default`"), "{err}");

    database.frozen("freeze-db", "files").await;
    let (code, out, _) = database.run("hooks list").await;
    assert_eq!(code, Some(0));
    let row: Vec<_> = out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..6], ["freeze-db", "files", "<none>", "Frozen", "<none>", "1"], "{out}");

    let (code, out, _) = database.run("hooks describe freeze-db").await;
    assert_eq!(code, Some(0));
    for wanted in [
        "Name:         freeze-db\n",
        "State:        Frozen\n",
        "Expires:      16m40s after the first PreAction: in ",
        "PreAction:    sh -c 'touch data/frozen' (at most 1m40s)\n",
        "  POD   CONTAINER   PREACTION   TIME ",
        "  db    main        ok ",
    ] {
        assert!(out.contains(wanted), "`{wanted}` is missing: {out}");
    }
    let condition = |line: &&str| line.split_whitespace().take(3).eq(["Frozen", "True", "Frozen"]);
    assert!(out.lines().any(|line| condition(&line)), "{out}");
    let (code, _, err) = database.run("hooks describe freeze").await;
    assert_eq!(code, Some(1));
    assert!(err.contains("there is no ExecutionHook `freeze`") && err.contains("`freeze-db`"), "{err}");
}
